package patch_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/patch"
)

func TestStatusThatMayWaitIsWrittenOnceItsTimeIsUp(t *testing.T) {
	counted := &writes{}
	c := newClient(t, counted, machine())
	ctx := context.Background()
	news := &patch.Unhurried{Delay: time.Hour}

	m := get(t, c)
	helper := patch.New(m, c)
	m.Status.Phase = "Pending"
	m.Spec.ProviderID = "x://1"
	left, err := news.Patch(ctx, helper, m)
	if err != nil || left <= 0 || left > time.Hour {
		t.Errorf("left to wait %s, error %v", left, err)
	}
	if *counted != (writes{main: 1}) {
		t.Errorf("writes: %+v, want the spec alone", *counted)
	}
	if m.Status.Phase != "Pending" || m.ResourceVersion != get(t, c).ResourceVersion {
		t.Errorf("the object lost its status or is not as stored: %+v", m)
	}

	// The same helper, and news that may not wait.
	if err := news.PatchNow(ctx, helper, m); err != nil {
		t.Fatal(err)
	}
	if got := get(t, c).Status.Phase; got != "Pending" || *counted != (writes{main: 1, status: 1}) {
		t.Errorf("phase %q, writes: %+v", got, *counted)
	}

	news = &patch.Unhurried{}
	m.Status.Phase = "Running"
	if left, err := news.Patch(ctx, helper, m); err != nil || left != 0 {
		t.Errorf("left to wait %s, error %v; want none without a delay", left, err)
	}
	if got := get(t, c).Status.Phase; got != "Running" {
		t.Errorf("phase %q", got)
	}
	if left, err := news.Patch(ctx, helper, m); err != nil || left != 0 || counted.status != 2 {
		t.Errorf("left to wait %s, error %v, writes %+v; nothing had changed", left, err, *counted)
	}
}

func TestNewsWaitsLongerWhereManyObjectsHaveSome(t *testing.T) {
	ctx := context.Background()
	news := &patch.Unhurried{Delay: time.Hour, Each: time.Hour}
	var waits []time.Duration
	for _, name := range []string{"a", "b", "c"} {
		m := machine()
		m.Name = name
		c := newClient(t, &writes{}, m)
		if err := c.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			t.Fatal(err)
		}
		helper := patch.New(m, c)
		m.Status.Phase = "Pending"
		left, err := news.Patch(ctx, helper, m)
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, left.Round(time.Hour))
	}
	if want := []time.Duration{2 * time.Hour, 3 * time.Hour, 4 * time.Hour}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}

func TestAStatusIsNotMarkedAsComputedFromAnothersChange(t *testing.T) {
	for name, tc := range map[string]struct {
		theirs string
		want   int64
	}{
		"alone": {"", 2},
		"another changed the spec in the meantime": {`{"spec":{"version":"v1.2.3"}}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine()
			m.Generation = 1
			c := withGenerations(newClient(t, &writes{}, m))
			ctx := context.Background()
			mine := get(t, c)
			helper := patch.New(mine, c)
			if tc.theirs != "" {
				if err := c.Patch(ctx, get(t, c), client.RawPatch("application/merge-patch+json", []byte(tc.theirs))); err != nil {
					t.Fatal(err)
				}
			}
			mine.Spec.ProviderID = "x://1"
			mine.Status.ObservedGeneration = mine.Generation
			if err := helper.Patch(ctx, mine); err != nil {
				t.Fatal(err)
			}
			if got := get(t, c).Status.ObservedGeneration; got != tc.want {
				t.Errorf("observedGeneration is %d, want %d", got, tc.want)
			}
		})
	}
}

// withGenerations counts generations as the API server does; the fake client does not.
func withGenerations(c client.Client) client.Client { return generations{c} }

type generations struct{ client.Client }

func (g generations) Patch(ctx context.Context, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
	if err := g.Client.Patch(ctx, obj, p, opts...); err != nil {
		return err
	}
	obj.SetGeneration(obj.GetGeneration() + 1)
	return g.Update(ctx, obj)
}
