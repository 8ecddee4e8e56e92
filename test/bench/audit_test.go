package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const lines = `{"stage":"ResponseStarted","verb":"watch","user":{"username":"me"},"objectRef":{"resource":"machines"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"watch","user":{"username":"me"},"objectRef":{"resource":"machines"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"me"},"objectRef":{"resource":"machines","subresource":"status"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"me"},"objectRef":{"resource":"machines","subresource":"status"},"responseStatus":{"code":422}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"me"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":409}}
{"stage":"ResponseComplete","verb":"get","user":{"username":"me"}}
{"stage":"ResponseComplete","verb":"list","user":{"username":"you"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200}}
`

func TestEachRequestOfOursIsCountedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	half := len(lines) - 20
	if err := os.WriteFile(path, []byte(lines[:half]), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &auditLog{path: path, mine: func(e event) bool { return e.User.Username == "me" }}
	got, err := log.next()
	if err != nil {
		t.Fatal(err)
	}
	status, secrets := request{"patch", "machines/status"}, request{"create", "secrets"}
	want := tally{
		requests:  map[request]int{{"watch", "machines"}: 1, status: 2, secrets: 1, {"get", "(no resource)"}: 1},
		conflicts: map[request]int{secrets: 1},
		stale:     map[request]int{status: 1},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tally{}, request{})); diff != "" {
		t.Errorf("tally (-want +got):\n%s", diff)
	}

	// The line that was half written counts once it is whole.
	if err := os.WriteFile(path, []byte(lines+lines[:half]), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = log.next(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tally{}, request{})); diff != "" {
		t.Errorf("what was added (-want +got):\n%s", diff)
	}
}

func TestOnlyReadsThatAreNoListsAreIdle(t *testing.T) {
	for name, tc := range map[string]struct {
		request request
		want    bool
	}{
		"a write":               {request{"patch", "machines"}, true},
		"a list":                {request{"list", "nodes"}, true},
		"a watch":               {request{"watch", "nodes"}, false},
		"a probe":               {request{"get", "(no resource)"}, false},
		"the leader's own mark": {request{"update", "leases"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unrest(tc.request); got != tc.want {
				t.Errorf("unrest is %v, want %v", got, tc.want)
			}
		})
	}
}
