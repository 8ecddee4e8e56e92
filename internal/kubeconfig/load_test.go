package kubeconfig

import (
	"fmt"
	"strings"
	"testing"
)

func TestAKubeconfigThatReachesOutsideItselfIsRefused(t *testing.T) {
	const frame = `apiVersion: v1
kind: Config
current-context: x
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"%s}}]
users: [{name: u, user: {%s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
`
	for name, tc := range map[string]struct{ cluster, user, want string }{
		"a program":           {user: `exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}`, want: "runs a plugin"},
		"an auth provider":    {user: `auth-provider: {name: gcp}`, want: "runs a plugin"},
		"a token file":        {user: `tokenFile: /etc/passwd`, want: "refers to a file"},
		"a key file":          {user: `client-key: /etc/key, client-certificate: /etc/cert`, want: "refers to a file"},
		"a file with the CA":  {cluster: `, certificate-authority: /etc/ca`, user: `token: t`, want: "refers to a file"},
		"all that it needs":   {user: `token: t`},
		"not YAML of any use": {user: `}`, want: "cannot be parsed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := RESTConfig(fmt.Appendf(nil, frame, tc.cluster, tc.user))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want one that says %q", err, tc.want)
			}
		})
	}
}
