package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestPrint(t *testing.T) {
	cluster := func(name string) client.Object {
		return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	}
	two := []client.Object{cluster("a"), cluster("b")}
	cases := map[string]struct {
		args    []string
		objects []client.Object
		single  bool
		want    string
	}{
		"table": {
			objects: two,
			want:    "NAME   STATE\na      <none>\nb      <none>\n",
		},
		"table, by its name": {
			args: []string{"-o", "table", "--no-headers"}, objects: two,
			want: "a     <none>\nb     <none>\n",
		},
		"wide has all columns": {
			args: []string{"-o", "wide"}, objects: two,
			want: "NAME   STATE    MORE\na      <none>   x\nb      <none>   x\n",
		},
		"name": {
			args: []string{"-o", "name"}, objects: two,
			want: "cluster.cluster.x-k8s.io/a\ncluster.cluster.x-k8s.io/b\n",
		},
		"jsonpath sees a list": {
			args: []string{"-o", "jsonpath={.kind} {.items[*].kind} {.items[1].metadata.name}"}, objects: two,
			want: "List Cluster Cluster b",
		},
		"custom columns": {
			args: []string{"-o", "custom-columns=N:.metadata.name,K:.kind"}, objects: two,
			want: "N     K\na     Cluster\nb     Cluster\n",
		},
		"go-template of a single object": {
			args: []string{"-o", "go-template={{.apiVersion}} {{.metadata.name}}"}, objects: two[:1], single: true,
			want: "cluster.x-k8s.io/v1beta2 a",
		},
		"template without a format is a go-template": {
			args: []string{"--template", "{{len .items}}"}, objects: two,
			want: "2",
		},
		"yaml of nothing is an empty list": {
			args: []string{"-o", "yaml"},
			want: "apiVersion: v1\nitems: []\nkind: List\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			flags := NewPrintFlags()
			cmd := &cobra.Command{}
			flags.AddFlags(cmd)
			if err := cmd.ParseFlags(tc.args); err != nil {
				t.Fatal(err)
			}
			if err := flags.Validate(); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := flags.Print(&out, NewScheme(), Result{Objects: tc.objects, Single: tc.single, Table: func() *metav1.Table {
				table := Columns{{Name: "Name"}, {Name: "State"}, {Name: "More", Wide: true}}.Table()
				for _, obj := range tc.objects {
					AddRow(table, obj, obj.GetName(), "", "x")
				}
				return table
			}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnUnknownFormatIsUsage(t *testing.T) {
	flags := NewPrintFlags()
	flags.Output = "xml"
	if got := ExitCode(flags.Validate()); got != ExitUsage {
		t.Errorf("exit code %d, want %d", got, ExitUsage)
	}
}
