package rootfs

import "testing"

func TestAPathCannotLeaveTheRoot(t *testing.T) {
	for guest, want := range map[string]string{
		"/etc/kubernetes":      "/vm/root/etc/kubernetes",
		"etc/hosts":            "/vm/root/etc/hosts",
		"/../../etc/passwd":    "/vm/root/etc/passwd",
		"/var/lib/../../../up": "/vm/root/up",
		"/":                    "/vm/root",
	} {
		if got := Root("/vm/root").Path(guest); got != want {
			t.Errorf("Path(%q) = %q, want %q", guest, got, want)
		}
	}
}

func TestTextReadsAsOnTheGuest(t *testing.T) {
	got := Root("/vm/root").Guest(`wrote "/vm/root/etc/kubernetes/pki/ca.crt"`)
	if want := `wrote "/etc/kubernetes/pki/ca.crt"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
