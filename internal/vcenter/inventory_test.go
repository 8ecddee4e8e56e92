package vcenter

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/internal/vcenter/vcentertest"
)

func TestAMissingNameIsToldWithWhatIsThere(t *testing.T) {
	v := vcentertest.Start(t)
	pool, _ := newTestPool(t, Options{})
	s := newTestSession(t, v, pool)
	for name, tc := range map[string]struct {
		change func(*CloneRequest)
		want   NotFoundError
	}{
		"a missing template": {func(r *CloneRequest) { r.Template = "debian" },
			NotFoundError{KindTemplate, "debian", `datacenter "DC0"`, []string{"ubuntu-2404-kube-v1.37.2"}}},
		"a missing network": {func(r *CloneRequest) { r.Networks[0].Name = "dmz" },
			NotFoundError{KindNetwork, "dmz", `datacenter "DC0"`, []string{"DC0_DVPG0", "VM Network"}}},
		"a missing datastore": {func(r *CloneRequest) { r.Datastore = "ssd" },
			NotFoundError{KindDatastore, "ssd", `datacenter "DC0"`, []string{"LocalDS_0"}}},
		"a missing folder": {func(r *CloneRequest) { r.Folder = "prod/k8s" },
			NotFoundError{KindFolder, "prod/k8s", `datacenter "DC0"`, nil}},
		"a missing resource pool": {func(r *CloneRequest) { r.ResourcePool = "gold" },
			NotFoundError{KindResourcePool, "gold", `datacenter "DC0"`, []string{"Resources"}}},
		"a missing datacenter": {func(r *CloneRequest) { r.Datacenter = "DC7" },
			NotFoundError{KindDatacenter, "DC7", "vCenter", []string{"DC0"}}},
		"a missing snapshot": {func(r *CloneRequest) { r.Linked, r.Snapshot = true, "base" },
			NotFoundError{KindSnapshot, "base", `template "ubuntu-2404-kube-v1.37.2"`, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request("a1")
			tc.change(&r)
			_, err := s.PrepareClone(t.Context(), r)
			var got *NotFoundError
			if !errors.As(err, &got) {
				t.Fatalf("error is %T: %v", err, err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
