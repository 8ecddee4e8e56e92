package graph

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func machineNamed(name string) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// waitForNames waits until the follower holds exactly these objects.
func waitForNames(t *testing.T, f *Follower, want ...string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		objects, err := f.Objects()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, obj := range objects {
			got = append(got, obj.GetName())
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-f.Changed():
		case <-deadline:
			t.Fatalf("follower holds %q, want %q", got, want)
		}
	}
}

func TestFollowerHoldsWhatIsThere(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The fake has no history: what happens before the watch is not told.
	watching := make(chan struct{})
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(machineNamed("a"), machineNamed("b")).Build(), interceptor.Funcs{
		Watch: func(ctx context.Context, under client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			defer close(watching)
			return under.Watch(ctx, list, opts...)
		},
	})
	f := NewFollower(c)
	if err := f.Follow(ctx, Source{List: &clusterv1.MachineList{}}); err != nil {
		t.Fatal(err)
	}
	waitForNames(t, f, "a", "b")

	<-watching
	if err := c.Create(ctx, machineNamed("c")); err != nil {
		t.Fatal(err)
	}
	waitForNames(t, f, "a", "b", "c")

	if err := c.Delete(ctx, machineNamed("a")); err != nil {
		t.Fatal(err)
	}
	waitForNames(t, f, "b", "c")
}

func TestFollowerListsAgainWhenTheServerForgotItsVersion(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watches atomic.Int32
	c := fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(machineNamed("a")).Build()
	expiring := interceptor.NewClient(c, interceptor.Funcs{
		Watch: func(ctx context.Context, under client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			if watches.Add(1) == 1 {
				// Missed by the watch: only another list can bring it.
				if err := under.Create(ctx, machineNamed("b")); err != nil {
					return nil, err
				}
				return nil, apierrors.NewResourceExpired("too old resource version")
			}
			return under.Watch(ctx, list, opts...)
		},
	})
	f := NewFollower(expiring)
	if err := f.Follow(ctx, Source{List: &clusterv1.MachineList{}}); err != nil {
		t.Fatal(err)
	}
	waitForNames(t, f, "a", "b")
}

func TestFollowerGivesUpOnWhatDoesNotHeal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	forbidden := apierrors.NewForbidden(clusterv1.GroupVersion.WithResource("machines").GroupResource(), "", nil)
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testScheme()).Build(), interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return nil, forbidden
		},
	})
	f := NewFollower(c)
	if err := f.Follow(ctx, Source{List: &clusterv1.MachineList{}}); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(10 * time.Second)
	for {
		if _, err := f.Objects(); err != nil {
			if !apierrors.IsForbidden(err) {
				t.Errorf("got %v, want that it is forbidden", err)
			}
			return
		}
		select {
		case <-f.Changed():
		case <-deadline:
			t.Fatal("no error after the watch was forbidden")
		}
	}
}

func TestFollowerGoesWithoutOptionalKinds(t *testing.T) {
	forbidden := apierrors.NewForbidden(clusterv1.GroupVersion.WithResource("machines").GroupResource(), "", nil)
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testScheme()).Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden
		},
	})
	f := NewFollower(c)
	if err := f.Follow(t.Context(), Source{List: &clusterv1.MachineList{}, Optional: true}); err != nil {
		t.Errorf("an optional kind failed the follower: %v", err)
	}
	if err := f.Follow(t.Context(), Source{List: &clusterv1.MachineSetList{}}); !apierrors.IsForbidden(err) {
		t.Errorf("a needed kind gave %v, want that it is forbidden", err)
	}
}
