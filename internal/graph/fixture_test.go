package graph

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/test/testserver"
)

// testScheme knows the core types only: control planes, too, are read as those of
// a provider that nobody knows.
func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	return scheme
}

// fixture reads the objects of a file, typed where the scheme knows them.
func fixture(t *testing.T, path string) []client.Object {
	t.Helper()
	parsed, err := testserver.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	scheme := testScheme()
	var objects []client.Object
	for _, u := range parsed {
		if !scheme.Recognizes(u.GroupVersionKind()) {
			objects = append(objects, u)
			continue
		}
		typed, err := scheme.New(u.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, typed.(client.Object))
	}
	return objects
}

// rolling is the graph of the fixture after changes to its objects; change
// returns false for an object that is not to be there.
func rolling(t *testing.T, change func(client.Object) bool) *Graph {
	t.Helper()
	var objects []client.Object
	for _, obj := range fixture(t, "testdata/rolling.yaml") {
		if change == nil || change(obj) {
			objects = append(objects, obj)
		}
	}
	g, err := Build(testScheme(), client.ObjectKey{Namespace: "default", Name: "c1"}, objects)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// outline writes a tree so that a test can compare it: one node a line.
func outline(n *Node) string {
	var b strings.Builder
	writeOutline(&b, n, 0)
	return b.String()
}

func writeOutline(b *strings.Builder, n *Node, depth int) {
	what := strings.Trim(n.Role+" "+n.Kind+"/"+n.Name, " /")
	if len(n.Names) > 0 {
		what = fmt.Sprintf("%s %s", n.Kind, strings.Join(n.Names, ","))
	}
	fmt.Fprintf(b, "%s%s", strings.Repeat("  ", depth), what)
	if n.Ready != metav1.ConditionTrue && n.Ready != "" {
		fmt.Fprintf(b, " %s(%s)", n.Ready, n.Reason)
	}
	if len(n.Doing) > 0 {
		fmt.Fprintf(b, " %v", n.Doing)
	}
	b.WriteString("\n")
	for _, child := range n.Children {
		writeOutline(b, child, depth+1)
	}
}
