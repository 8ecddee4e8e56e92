package addons

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	kubectlapply "k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/millwright-dev/millwright/internal/apply"
)

func TestKubectlSeesOurSetAndLeavesItAlone(t *testing.T) {
	install(t, &apply.Engine{Client: admin}, set(t, "seen", "1.0.0", configMap("kube-system", "seen")))
	t.Setenv("KUBECTL_APPLYSET", "true")

	got := kubectlApply(t, configMap("kube-system", "other"),
		"--server-side", "--prune", "--applyset=configmap/millwright-addon-seen", "--namespace=kube-system")
	if want := `is managed by tooling "millwright" instead of "kubectl"`; !strings.Contains(got, want) {
		t.Errorf("kubectl says %q, want that the set %s", got, want)
	}
	if live(t, object("v1", "ConfigMap", "kube-system", "seen")) == nil {
		t.Error("kubectl pruned our object")
	}
}

func TestASetThatKubectlKeepsIsRefused(t *testing.T) {
	create(t, "kubectl", `
apiVersion: v1
kind: ConfigMap
metadata:
  name: millwright-addon-kubectls
  namespace: kube-system
  annotations: {applyset.kubernetes.io/tooling: kubectl/v1.37}
`)
	_, err := (&apply.Engine{Client: admin}).Plan(testContext(t), set(t, "kubectls", "1.0.0", configMap("default", "kubectls")))
	if err == nil || !strings.Contains(err.Error(), "kept by kubectl/v1.37") {
		t.Errorf("error %v, want that kubectl keeps the set", err)
	}
}

// kubectlApply runs kubectl's own apply command and returns what it dies of.
func kubectlApply(t *testing.T, documents string, args ...string) (fatal string) {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	namespace := "kube-system"
	flags.Namespace = &namespace
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return rest.CopyConfig(server.Admin) }
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(documents), 0o644); err != nil {
		t.Fatal(err)
	}
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	cmd := kubectlapply.NewCmdApply("kubectl", cmdutil.NewFactory(flags), streams)
	cmd.Flags().StringVar(&namespace, "namespace", namespace, "")

	// kubectl ends the process when a command fails; a panic ends only the command.
	type died struct{ message string }
	cmdutil.BehaviorOnFatal(func(message string, _ int) { panic(died{message}) })
	defer cmdutil.DefaultBehaviorOnFatal()
	defer func() {
		if why, ok := recover().(died); ok {
			fatal = why.message
		}
	}()
	cmd.SetArgs(append(args, "-f", file))
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return ""
}
