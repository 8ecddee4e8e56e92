package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// serving starts a server that serves the discovery of the given versions of
// cluster.x-k8s.io, and returns the kubeconfig for it.
func serving(t *testing.T, versions ...string) string {
	t.Helper()
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api", func(w http.ResponseWriter, _ *http.Request) { answer(w, metav1.APIVersions{}) })
	groups := metav1.APIGroupList{}
	if len(versions) > 0 {
		group := metav1.APIGroup{Name: "cluster.x-k8s.io"}
		for _, version := range versions {
			groupVersion := "cluster.x-k8s.io/" + version
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: version})
			mux.HandleFunc("/apis/"+groupVersion, func(w http.ResponseWriter, _ *http.Request) {
				answer(w, metav1.APIResourceList{GroupVersion: groupVersion, APIResources: []metav1.APIResource{{Name: "clusters", Kind: "Cluster", Namespaced: true}}})
			})
		}
		group.PreferredVersion = group.Versions[0]
		groups.Groups = append(groups.Groups, group)
	}
	mux.HandleFunc("/apis", func(w http.ResponseWriter, _ *http.Request) { answer(w, groups) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return kubeconfig(t, server.URL)
}

func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"mgmt",
"contexts":[{"name":"mgmt","context":{"cluster":"mgmt","user":"me","namespace":"fleet"}}],
"clusters":[{"name":"mgmt","cluster":{"server":%q}}],"users":[{"name":"me","user":{}}]}`, server)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func testOptions(t *testing.T, kubeconfig string) *Options {
	t.Helper()
	t.Setenv("KUBECACHEDIR", t.TempDir())
	o := newOptions("kubectl-things", "kubectl things", genericiooptions.NewTestIOStreamsDiscard())
	*o.KubeConfig = kubeconfig
	return o
}

func TestClusterAPIIsAskedOfTheServer(t *testing.T) {
	cases := map[string]struct {
		versions []string
		want     []string // parts of the error; none for no error
	}{
		"served":                      {versions: []string{"v1beta2", "v1beta1"}},
		"served at another version":   {versions: []string{"v1beta1"}, want: []string{`context "mgmt"`, "it serves v1beta1", "upgrade Cluster API"}},
		"not served":                  {want: []string{`context "mgmt"`, "has no Cluster API", "--context"}},
		"served, but older preferred": {versions: []string{"v1beta1", "v1beta2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := testOptions(t, serving(t, tc.versions...)).ClusterAPI(t.Context())
			var missing *MissingAPIError
			if errors.As(err, &missing) != (tc.want != nil) {
				t.Fatalf("got error %v, want a MissingAPIError with %q", err, tc.want)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestErrorsOfTheConnectionNameServerContextAndNextStep(t *testing.T) {
	unreachable := "https://127.0.0.1:1"
	cases := map[string]struct {
		kubeconfig string
		context    string
		want       []string
	}{
		"nobody listens": {
			kubeconfig: kubeconfig(t, unreachable),
			want:       []string{unreachable, `context "mgmt"`, "connection refused", "kubectl config view"},
		},
		"the name does not resolve": {
			kubeconfig: kubeconfig(t, "https://mgmt.invalid"),
			want:       []string{"https://mgmt.invalid", `"mgmt.invalid" does not resolve`},
		},
		"the context does not exist": {
			kubeconfig: kubeconfig(t, unreachable), context: "prod",
			want: []string{"prod", "kubectl config get-contexts"},
		},
		"the file does not exist": {
			kubeconfig: "/nonexistent/kubeconfig",
			want:       []string{"/nonexistent/kubeconfig", "KUBECONFIG"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := testOptions(t, tc.kubeconfig)
			*o.Context = tc.context
			_, err := o.ClusterAPI(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			message := o.message(err)
			for _, part := range tc.want {
				if !strings.Contains(message, part) {
					t.Errorf("message %q does not say %q", message, part)
				}
			}
		})
	}
}

func TestNoKubeconfigAtAllIsSaid(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := testOptions(t, "").Client()
	if err == nil || !strings.Contains(err.Error(), "no cluster is configured") {
		t.Errorf("got %v, want that no cluster is configured", err)
	}
}

func TestNamespaceIsThatOfTheContext(t *testing.T) {
	o := testOptions(t, kubeconfig(t, "https://127.0.0.1:1"))
	if got, err := o.Namespace(); err != nil || got != "fleet" {
		t.Errorf("got %q, %v, want fleet", got, err)
	}
}
