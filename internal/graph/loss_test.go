package graph

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// waitForLoss waits until the follower tells a loss that is as wanted.
func waitForLoss(t *testing.T, f *Follower, wanted func(*Loss) bool) *Loss {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		if _, err := f.Objects(); err != nil {
			t.Fatal(err)
		}
		if loss := f.Lost(); wanted(loss) {
			return loss
		}
		select {
		case <-f.Changed():
		case <-deadline:
			t.Fatalf("the follower tells the loss %+v", f.Lost())
		}
	}
}

func TestFollowerTellsWhileTheServerDoesNotAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused := errors.New("connection refused")
	// What a server says on the way up is not what it says once it is there.
	forbidden := apierrors.NewForbidden(clusterv1.GroupVersion.WithResource("machines").GroupResource(), "", nil)
	tries := make(chan error)
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(machineNamed("a")).Build(), interceptor.Funcs{
		Watch: func(ctx context.Context, under client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			select {
			case err := <-tries:
				if err != nil {
					return nil, err
				}
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return under.Watch(ctx, list, opts...)
		},
	})
	f := NewFollower(c)
	if err := f.Follow(ctx, Source{List: &clusterv1.MachineList{}}); err != nil {
		t.Fatal(err)
	}
	if loss := f.Lost(); loss != nil {
		t.Fatalf("a server that answers is lost: %+v", loss)
	}

	tries <- &url.Error{Op: "Get", URL: "https://127.0.0.1:6443/apis?watch=true", Err: refused}
	first := waitForLoss(t, f, func(loss *Loss) bool { return loss != nil })
	if first.Err != refused {
		t.Errorf("the loss is told as %q, want %q without the request", first.Err, refused)
	}
	tries <- forbidden
	second := waitForLoss(t, f, func(loss *Loss) bool { return loss != nil && loss.Err != refused })
	if !second.Since.Equal(first.Since) {
		t.Errorf("the loss began at %s and then at %s", first.Since, second.Since)
	}
	waitForNames(t, f, "a")

	tries <- nil
	waitForLoss(t, f, func(loss *Loss) bool { return loss == nil })
}
