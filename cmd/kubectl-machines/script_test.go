package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/test/testserver"
)

var update = flag.Bool("update", false, "write the output that the scripts got into them")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubectl-machines":          main,
		"kubectl_complete-machines": main,
	})
}

// TestScripts runs each script in a namespace of its own, which holds the fleet
// of testdata/fleet.yaml and is that of the script's kubeconfig.
func TestScripts(t *testing.T) {
	server := testserver.Start(t, "testdata/crds/acme.yaml")
	c, err := client.NewWithWatch(server.Config, client.Options{Scheme: cli.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := testserver.Parse("testdata/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			namespace := filepath.Base(env.WorkDir)[len("script-"):]
			if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
				return err
			}
			objects := make([]*unstructured.Unstructured, 0, len(fleet))
			for _, obj := range fleet {
				moved := obj.DeepCopy()
				moved.SetNamespace(namespace)
				objects = append(objects, moved)
			}
			if err := testserver.Create(t.Context(), c, objects); err != nil {
				return err
			}
			path := filepath.Join(env.WorkDir, "kubeconfig")
			if err := writeKubeconfig(server.Kubeconfig, path, namespace); err != nil {
				return err
			}
			env.Setenv("KUBECONFIG", path)
			env.Setenv("KUBECACHEDIR", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("NAMESPACE", namespace)
			env.Values[clientKey{}] = c
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"show":     show,
			"patch":    patch,
			"secret":   secret,
			"control":  control,
			"workload": workload,
			"create":   createFile,
		},
	})
}

type clientKey struct{}

// writeKubeconfig copies a kubeconfig with another namespace in its context.
func writeKubeconfig(from, to, namespace string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	for _, context := range config.Contexts {
		context.Namespace = namespace
	}
	return clientcmd.WriteToFile(*config, to)
}

var (
	ages   = regexp.MustCompile(`\b(\d+[dhms]){1,2}\b`)
	spaces = regexp.MustCompile(`(\S) {2,}`)
)

// show runs the plugin and writes its output into the file out, with AGE for
// every age and two spaces between columns, whose width depends on the ages.
func show(ts *testscript.TestScript, neg bool, args []string) {
	if err := ts.Exec("kubectl-machines", args...); (err != nil) != neg {
		ts.Fatalf("kubectl machines %v: %v", args, err)
	}
	text := spaces.ReplaceAllString(ages.ReplaceAllString(ts.ReadFile("stdout"), "AGE"), "$1  ")
	ts.Check(os.WriteFile(ts.MkAbs("out"), []byte(text), 0o600))
}
