package bootstrap

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

func fileFrom(secret, key string) bootstrapv1.KubeadmConfigSpec {
	return bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{
		Path: "/x", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: secret, Key: key}},
	}}}
}

func userFrom(secret, key string) bootstrapv1.KubeadmConfigSpec {
	return bootstrapv1.KubeadmConfigSpec{Users: []bootstrapv1.User{{
		Name: "ops", PasswdFrom: bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: secret, Key: key}},
	}}}
}

func templated(content string) bootstrapv1.KubeadmConfigSpec {
	return bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/x", Content: content, ContentFormat: bootstrapv1.FileContentFormatTemplate}}}
}

func TestContentIsReadAndRendered(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "stuff"}, Data: map[string][]byte{"k": []byte("value")}}
	r := &Reconciler{Live: newClient(t, secret)}
	tests := map[string]struct {
		in   bootstrapv1.KubeadmConfigSpec
		want bootstrapv1.KubeadmConfigSpec
	}{
		"a file from a Secret":     {fileFrom("stuff", "k"), bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/x", Content: "value"}}}},
		"a password from a Secret": {userFrom("stuff", "k"), bootstrapv1.KubeadmConfigSpec{Users: []bootstrapv1.User{{Name: "ops", Passwd: "value"}}}},
		"a template":               {templated("v={{ .controlPlane.version }}"), bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/x", Content: "v=v1.37.2"}}}},
		"what only looks like one": {
			bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/x", Content: "{{ local_hostname }}"}}},
			bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/x", Content: "{{ local_hostname }}"}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := r.resolve(context.Background(), "fleet", tc.in, "v1.37.2")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMissingContentNamesFieldSecretAndRemedy(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "stuff"}}
	r := &Reconciler{Live: newClient(t, secret)}
	tests := map[string]struct {
		in   bootstrapv1.KubeadmConfigSpec
		want string
	}{
		"no such Secret":         {fileFrom("gone", "k"), `spec.files[0] (/x).contentFrom: Secret "gone" does not exist in namespace "fleet": create it`},
		"no such key":            {userFrom("stuff", "k"), `spec.users[0] (ops).passwdFrom: Secret "stuff" has no key "k": add it`},
		"a template of nonsense": {templated("{{ if }}"), "spec.files[0] (/x).content is no valid template"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := r.resolve(context.Background(), "fleet", tc.in, "")
			var bad *inputError
			if !errors.As(err, &bad) || !strings.Contains(bad.message, tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTemplateCanTellThatTheVersionIsUnknown(t *testing.T) {
	got, err := renderTemplate("{{ if .controlPlane }}known{{ else }}unknown{{ end }}", "")
	if err != nil || got != "unknown" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestErrorsOfTemplatesQuoteNothing(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"syntax":              {"first\n{{ hunter2 }}", "line 2 cannot be parsed"},
		"an open action":      {"{{ \"hunter2", "line 1 cannot be parsed"},
		"evaluation":          {"first\nsecond {{ index \"hunter2\" \"x\" }}", "line 2 cannot be evaluated"},
		"a missing template":  {"{{ template \"hunter2\" }}", "line 1 cannot be evaluated"},
		"in another template": {"{{ define \"hunter2\" }}\n{{ len 1 }}{{ end }}{{ template \"hunter2\" }}", "line 2 cannot be evaluated"},
		"defined twice":       {"{{ define \"hunter2\" }}a{{ end }}{{ define \"hunter2\" }}b{{ end }}", "line 1 cannot be parsed"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := renderTemplate(tc.content, ""); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
