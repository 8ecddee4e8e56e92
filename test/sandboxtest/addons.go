package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// StartOperator runs a second operator with a token, until the test ends. It writes logs/NAME.log.
func (s *Sandbox) StartOperator(t *testing.T, name, token string, args ...string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(filepath.Join(s.Dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(s.Dir, "logs", name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(s.Root, "bin", "operator"), append([]string{"--kubeconfig", kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0"}, args...)...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		log.Close()
	})
}

// Release gives a cluster an add-on that follows its Kubernetes version, and waits until it is there at a version.
func (s *Sandbox) Release(t *testing.T, cluster, bundle, version string) {
	t.Helper()
	name := cluster + "." + bundle
	release := fmt.Sprintf("{apiVersion: addons.millwright.dev/v1alpha1, kind: AddonRelease, metadata: {name: %s}, spec: {clusterName: %s, bundle: %s}}", name, cluster, bundle)
	if got := s.Try(t, nil, release, "kubectl", "apply", "-f", "-"); got.Code != 0 {
		t.Fatalf("create AddonRelease %s: %s", name, got.Stderr)
	}
	Eventually(t, 3*time.Minute, func() string {
		got := s.Run(t, "kubectl", "get", "addonrelease", name, "-o", `jsonpath={.status.version} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}`)
		if strings.HasPrefix(got, version+" True") {
			return ""
		}
		return fmt.Sprintf("the add-on %s is %s, want %s True", name, got, version)
	})
}

// Addons adds to the chronicle when a DaemonSet or Deployment of kube-system gets another image, as the workload cluster
// tells of it. What is left then is counted against the version target of Machines.
func (c *Chronicle) Addons(t *testing.T, kubeconfig, target string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace("kube-system"))
	handler := cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		name, had := imageOf(before)
		if _, has := imageOf(after); had != has {
			c.note("addon "+name, has, target)
		}
	}}
	for _, informer := range []cache.SharedIndexInformer{factory.Apps().V1().DaemonSets().Informer(), factory.Apps().V1().Deployments().Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
}

// imageOf returns the name of a workload and the tag of its first image.
func imageOf(obj any) (name, tag string) {
	var containers []corev1.Container
	switch obj := obj.(type) {
	case *appsv1.DaemonSet:
		name, containers = obj.Name, obj.Spec.Template.Spec.Containers
	case *appsv1.Deployment:
		name, containers = obj.Name, obj.Spec.Template.Spec.Containers
	}
	if len(containers) > 0 {
		tag = containers[0].Image[strings.LastIndex(containers[0].Image, ":")+1:]
	}
	return name, tag
}
