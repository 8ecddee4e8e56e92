package fill

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFillPutsInValuesAndDefaultsAndNamesWhatIsMissing(t *testing.T) {
	vars := map[string]string{"NAME": "prod", "EMPTY": ""}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }

	cases := map[string]struct {
		template    string
		want        string
		wantMissing []string
	}{
		"a value replaces its variable wherever it stands": {
			template: "name: '${NAME}-worker', ns: ${NAME}",
			want:     "name: 'prod-worker', ns: prod",
		},
		"a default stands in for an unset variable": {
			template: "port: ${PORT:=6443}, dash: ${PORT:-1}, bare: ${PORT=2}",
			want:     "port: 6443, dash: 1, bare: 2",
		},
		"a default may be a quoted empty string": {
			template: `value: ${VIP_NETWORK_INTERFACE:=""}`,
			want:     `value: ""`,
		},
		"an empty value counts as unset only with a colon": {
			template: "[${EMPTY:=x}] [${EMPTY=x}] [${EMPTY}]",
			want:     "[x] [] []",
		},
		"a value wins over the default": {
			template: "${NAME:=other}",
			want:     "prod",
		},
		"a script in the template keeps its dollar signs": {
			template: `V="$(kubeadm version | cut -d '.' -f 2)"; echo $V ${1} ${V%%.*} $$`,
			want:     `V="$(kubeadm version | cut -d '.' -f 2)"; echo $V ${1} ${V%%.*} $$`,
		},
		"all that is missing is named at once, once, in order": {
			template:    "${B} ${A} ${NAME} ${B} ${C:=c}",
			wantMissing: []string{"A", "B"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Fill(tc.template, lookup)
			var missing *MissingError
			if errors.As(err, &missing) {
				if diff := cmp.Diff(tc.wantMissing, missing.Names); diff != "" {
					t.Fatalf("missing variables (-want +got):\n%s", diff)
				}
				return
			}
			if err != nil || tc.wantMissing != nil {
				t.Fatalf("Fill() error = %v, want missing %v", err, tc.wantMissing)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("filled (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEnvironmentFileReadsBackAsItWasWritten(t *testing.T) {
	vars := map[string]string{"A": "", "PASSWORD": "it's $HOME\"x\"", "PATH_LIKE": "/Datacenter/vm/a b"}
	got, err := ParseEnvironment("# comment\n\n" + Environment(vars))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(vars, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestAnEnvironmentFileThatIsNoneIsRefusedWithItsLine(t *testing.T) {
	for _, text := range []string{"A=1\nnonsense", "A=1\n1B=2"} {
		if _, err := ParseEnvironment(text); err == nil || err.Error()[:7] != "line 2:" {
			t.Errorf("ParseEnvironment(%q) error = %v, want one about line 2", text, err)
		}
	}
}
