package addons

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/test/apiserver"
)

// The API server of all tests of this package; each test has a set and a namespace of its own.
var (
	server *apiserver.Server
	admin  client.WithWatch
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if server, err = apiserver.Start(); err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := server.Stop(); err == nil {
			err = stopErr
		}
	}()
	if admin, err = client.NewWithWatch(server.Admin, client.Options{}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// testContext bounds a test that would otherwise wait for ever.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// set makes a set of YAML documents.
func set(t *testing.T, name, version, documents string) apply.Set {
	t.Helper()
	objects, err := apiserver.Decode([]byte(documents))
	if err != nil {
		t.Fatal(err)
	}
	return apply.Set{Name: name, Version: version, Objects: objects}
}

// install plans and applies a set; the plan tells what was done.
func install(t *testing.T, engine *apply.Engine, set apply.Set) *apply.Plan {
	t.Helper()
	ctx := testContext(t)
	plan, err := engine.Plan(ctx, set)
	if err != nil {
		t.Fatalf("plan %s %s: %v", set.Name, set.Version, err)
	}
	if err := engine.Apply(ctx, plan, false); err != nil {
		t.Fatalf("apply %s %s: %v", set.Name, set.Version, err)
	}
	return plan
}

// create makes an object as another tool would.
func create(t *testing.T, manager, document string) *unstructured.Unstructured {
	t.Helper()
	objects, err := apiserver.Decode([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Create(testContext(t), objects[0], client.FieldOwner(manager)); err != nil {
		t.Fatalf("create %s: %v", objects[0].GetName(), err)
	}
	return objects[0]
}

// live reads an object of the kind and name of like; nil when it is not there.
func live(t *testing.T, like *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return readFrom(t, admin, like)
}

func readFrom(t *testing.T, c client.Client, like *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(like.GroupVersionKind())
	err := c.Get(testContext(t), client.ObjectKeyFromObject(like), object)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return object
}

// object is a reference to an object to read.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// resourceVersions are those of all objects of a set and of its record.
func resourceVersions(t *testing.T, c client.Client, set apply.Set) map[string]string {
	t.Helper()
	versions := map[string]string{}
	record := object("v1", "ConfigMap", apply.ParentNamespace, "millwright-addon-"+set.Name)
	for _, o := range append([]*unstructured.Unstructured{record}, set.Objects...) {
		found := readFrom(t, c, o)
		if found == nil {
			t.Fatalf("%s %s is not there", o.GetKind(), o.GetName())
		}
		versions[o.GetKind()+"/"+o.GetName()] = found.GetResourceVersion()
	}
	return versions
}
