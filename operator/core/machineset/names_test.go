package machineset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestNamesAreDistinctAndFitAHostName(t *testing.T) {
	const count = 2000
	set := makeSet(nil, func(s *clusterv1.MachineSet) {
		s.Name = "a-machine-set-with-a-name-that-is-nearly-as-long-as-a-dns-label-may-be"
	})
	for what, template := range map[string]string{
		"without a template": "", "with one that makes long names": "{{ .random }}-{{ .machineSet.name }}-{{ .cluster.name }}",
	} {
		t.Run(what, func(t *testing.T) {
			set.Spec.MachineNaming.Template = template
			name, err := namingOf(set)
			if err != nil {
				t.Fatal(err)
			}
			distinct := sets.New[string]()
			got := freePlaces(name, "uid", nil, count)
			for _, place := range got {
				distinct.Insert(place.name)
				if len(place.name) > maxMachineName {
					t.Fatalf("%q has %d characters", place.name, len(place.name))
				}
			}
			if distinct.Len() != count {
				t.Errorf("%d distinct names of %d", distinct.Len(), count)
			}
			if diff := cmp.Diff(got, freePlaces(name, "uid", nil, count), cmp.AllowUnexported(place{})); diff != "" {
				t.Errorf("the same set gets other names on a second try:\n%s", diff)
			}
		})
	}
}

func TestANamingTemplateIsFollowedOrRefused(t *testing.T) {
	cases := map[string]struct {
		template, want, wantErr string
	}{
		"none":                   {want: "workers-x2x2x"},
		"all variables":          {template: "{{ .cluster.name }}-{{.machineSet.name}}-{{ .random }}-a", want: "prod-workers-x2x2x-a"},
		"no random part":         {template: "{{ .machineSet.name }}", wantErr: "add {{ .random }}"},
		"an unknown variable":    {template: "{{ .zone }}-{{ .random }}", wantErr: "it may use .cluster.name"},
		"no template at all":     {template: "{{ .random", wantErr: "unclosed action"},
		"names that no host has": {template: "Web_{{ .random }}", wantErr: "makes names like"},
		"a random part cut away": {template: strings.Repeat("a", 70) + "{{ .random }}", want: strings.Repeat("a", 58) + "x2x2x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := makeSet(nil)
			set.Spec.MachineNaming.Template = tc.template
			naming, err := namingOf(set)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error is %v, want one that says %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := naming("x2x2x"); got != tc.want {
				t.Errorf("name is %q, want %q", got, tc.want)
			}
		})
	}
}
