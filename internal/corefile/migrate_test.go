package corefile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edited is kubeadm's Corefile with a zone, a rewrite and a comment of the cluster's own.
const edited = `# Ask the network team before you change this.
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    rewrite name api.example.org api.prod.svc.cluster.local
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
example.org:53 {
    forward . 192.0.2.53
}
`

const old = `.:53 {
    errors
    health
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        upstream
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
stub.example:53 {
    forward . 192.0.2.53
}
`

func TestACorefileThatTheNewVersionReadsStaysAsItIs(t *testing.T) {
	for name, way := range map[string][2]string{
		"the same version":               {"1.12.1", "1.12.1"},
		"up":                             {"v1.11.1", "v1.14.6"},
		"down":                           {"1.14.6", "1.12.1"},
		"to one newer than the table":    {"1.14.6", "99.0.0"},
		"between two that it has not":    {"98.0.0", "99.0.0"},
		"from a patch that it passes by": {"1.14.5", "1.14.6"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Migrate(edited, way[0], way[1])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(edited, got.Corefile); diff != "" || got.Changed {
				t.Errorf("changed is %t (-before +after):\n%s", got.Changed, diff)
			}
		})
	}
}

func TestWhatANewVersionRemovedIsRewrittenAndTheRestSurvives(t *testing.T) {
	got, err := Migrate(old, "1.3.1", "1.14.6")
	if err != nil {
		t.Fatal(err)
	}
	if !got.Changed || strings.Contains(got.Corefile, "upstream") || !strings.Contains(got.Corefile, "ready") {
		t.Errorf("want the option upstream gone and the plugin ready added:\n%s", got.Corefile)
	}
	for _, own := range []string{"stub.example:53 {", "forward . 192.0.2.53", "kubernetes cluster.local"} {
		if !strings.Contains(got.Corefile, own) {
			t.Errorf("%q did not survive:\n%s", own, got.Corefile)
		}
	}
	if all := strings.Join(got.Notices, "\n"); !strings.Contains(all, "option upstream of plugin kubernetes") || !strings.Contains(all, "plugin ready is added") {
		t.Errorf("the notices do not tell what changed:\n%s", all)
	}
}

func TestWhatTheMigrationCannotKeepIsRefusedWithItsLine(t *testing.T) {
	for name, tc := range map[string]struct{ text, from, want string }{
		"a block in an option": {text: strings.Replace(old, "        upstream\n", "        upstream {\n            deep\n        }\n", 1), from: "1.3.1", want: `line 6`},
		"a brace too many":     {text: old + "}\n", from: "1.3.1", want: "line 19: a brace closes nothing"},
		"a brace too few":      {text: strings.TrimSuffix(old, "}\n"), from: "1.3.1", want: "1 braces are not closed"},
		"no name":              {text: "{\n errors\n}\n", from: "1.3.1", want: "line 1: a block without a name"},
		"an ancient version":   {text: old, from: "0.9.0", want: "CoreDNS 0.9.0 is older than"},
		"no version":           {text: old, from: "latest", want: `CoreDNS version "latest"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Migrate(tc.text, tc.from, "1.14.6")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %+v, error %v, want one that says %q", got, err, tc.want)
			}
		})
	}
}
