package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/internal/bundle"
)

func TestAddonsGoAfterWhatTheyDependOn(t *testing.T) {
	type addon struct {
		name  string
		needs []string
	}
	cases := map[string]struct {
		given     []addon
		installed []string
		want      []string
		missing   []string
		circle    bool
	}{
		"as given when nothing depends": {
			given: []addon{{"b", nil}, {"a", nil}},
			want:  []string{"b", "a"},
		},
		"a dependency goes first": {
			given: []addon{{"top", []string{"middle"}}, {"middle", []string{"bottom"}}, {"bottom", nil}},
			want:  []string{"bottom", "middle", "top"},
		},
		"an installed dependency is there": {
			given: []addon{{"top", []string{"bottom"}}}, installed: []string{"bottom"},
			want: []string{"top"},
		},
		"a dependency that is nowhere is told": {
			given: []addon{{"top", []string{"bottom"}}},
			want:  []string{"top"}, missing: []string{"top 1.0.0 needs add-on bottom, which is not installed"},
		},
		"a circle": {
			given:  []addon{{"a", []string{"b"}}, {"b", []string{"a"}}},
			circle: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var sets []*rendered
			for _, a := range tc.given {
				sets = append(sets, &rendered{Resolution: &bundle.Resolution{
					Addon:   &bundle.Addon{Name: a.name},
					Version: &bundle.Version{Version: "1.0.0", DependsOn: a.needs},
				}})
			}
			sorted, missing, err := inOrder(sets, tc.installed)
			if (err != nil) != tc.circle {
				t.Fatalf("error %v, want one: %v", err, tc.circle)
			}
			var got []string
			for _, set := range sorted {
				got = append(got, set.Addon.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.missing, missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}
