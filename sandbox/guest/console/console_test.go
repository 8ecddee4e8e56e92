package console

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var line = regexp.MustCompile(`^\[ +\d+\.\d{6}\] ([^:]+): (.*)$`)

func messages(t *testing.T, out string) []string {
	t.Helper()
	var got []string
	for l := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		m := line.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("line %q is no console line", l)
		}
		got = append(got, m[1]+"|"+m[2])
	}
	return got
}

func TestEachLineBearsTimeAndUnit(t *testing.T) {
	var out, copied bytes.Buffer
	c := New(&out, func(s string) string { return strings.ReplaceAll(s, "/host", "") })
	c.Copy("kubeadm", &copied)
	c.Printf("kubeadm", "one\n/host/two\n")
	w := c.Writer("kubelet")
	fmt.Fprint(w, "three\nfo")
	fmt.Fprint(w, "ur\n")
	got := strings.Join(messages(t, out.String()), " ")
	if want := "kubeadm|one kubeadm|/two kubelet|three kubelet|four"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if copied.String() != "one\n/two\n" {
		t.Errorf("copy has %q", copied.String())
	}
}

func TestWhatIsPrintedAppearsOnTheConsole(t *testing.T) {
	var out bytes.Buffer
	c := New(&out, nil)
	restore, err := c.Capture("cloud-init[1]")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("[init] Using Kubernetes version: v1.37.2")
	restore()
	got := messages(t, out.String())
	if len(got) != 1 || got[0] != "cloud-init[1]|[init] Using Kubernetes version: v1.37.2" {
		t.Errorf("got %q", got)
	}
}
