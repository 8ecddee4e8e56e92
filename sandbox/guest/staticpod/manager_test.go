//go:build unix

package staticpod

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

// TestMain lets the test binary be a component: one that serves /livez at its
// --bind-address until a file named broken appears in its root, and ends with
// code 3 when asked to.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "kube-scheduler" {
		serveComponent()
	}
	os.Exit(m.Run())
}

func serveComponent() {
	listen := ""
	for _, arg := range os.Args {
		if address, ok := strings.CutPrefix(arg, "--bind-address="); ok {
			listen = net.JoinHostPort(address, "10259")
		}
	}
	fmt.Println("component starts with", os.Args[1:])
	http.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat("broken"); err == nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	http.HandleFunc("/die", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	fmt.Println(http.ListenAndServe(listen, nil))
	os.Exit(1)
}

const schedulerManifest = `apiVersion: v1
kind: Pod
metadata: {name: kube-scheduler, namespace: kube-system, labels: {component: kube-scheduler}}
spec:
  hostNetwork: true
  containers:
  - name: kube-scheduler
    image: registry.k8s.io/kube-scheduler:v1.37.2
    command: [kube-scheduler, --bind-address=127.0.0.1, --v=%d]
    ports: [{name: probe-port, containerPort: 10259}]
    startupProbe: {httpGet: {host: 127.0.0.1, path: /livez, port: probe-port}}
    readinessProbe: {httpGet: {host: 127.0.0.1, path: /livez, port: probe-port}}
    livenessProbe: {httpGet: {host: 127.0.0.1, path: /livez, port: probe-port}}
`

const folder = "/etc/kubernetes/manifests"

// running starts a manager with the test binary as its only component.
func running(t *testing.T) (*Manager, rootfs.Root, *consoleText) {
	t.Helper()
	root, bin := rootfs.Root(t.TempDir()), t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(bin, "kube-scheduler"))
	}
	if err != nil {
		t.Fatal(err)
	}
	pid := os.Getpid()
	said := &consoleText{}
	m := NewManager(Host{
		Root: root, BinDir: bin, Version: "v1.37.2", Address: fmt.Sprintf("127.%d.%d.9", 192+pid>>8&31, pid&255),
	}, said.log)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Run(ctx, folder) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if conn, err := net.Dial("tcp", m.host.Address+":10259"); err == nil {
			_ = conn.Close()
			t.Error("the component outlives its manager")
		}
	})
	return m, root, said
}

type consoleText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (c *consoleText) log(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(&c.text, format+"\n", args...)
}

func (c *consoleText) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// await waits until the states are as wanted.
func await(t *testing.T, m *Manager, what string, want func([]State) bool) {
	t.Helper()
	changed := m.Subscribe()
	timeout := time.After(30 * time.Second)
	for !want(m.States()) {
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("not %s: %+v", what, m.States())
		}
	}
}

func write(t *testing.T, root rootfs.Root, name, content string) {
	t.Helper()
	if err := root.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func ready(restarts int32) func([]State) bool {
	return func(states []State) bool {
		return len(states) == 1 && states[0].Ready && states[0].Live && states[0].Restarts == restarts
	}
}

func TestAComponentIsRunRestartedReplacedAndStopped(t *testing.T) {
	m, root, said := running(t)
	write(t, root, "kube-scheduler.yaml", fmt.Sprintf(schedulerManifest, 1))
	await(t, m, "ready", ready(0))
	first := m.States()[0]

	_, _ = http.Get("http://" + m.host.Address + ":10259/die")
	await(t, m, "restarted after it died", ready(1))
	if exit := m.States()[0].LastExit; exit == nil || exit.Code != 3 || exit.Reason != "Error" {
		t.Errorf("last exit %+v", exit)
	}

	write(t, root, "kube-scheduler.yaml", fmt.Sprintf(schedulerManifest, 2))
	await(t, m, "replaced by the new manifest", func(states []State) bool {
		return ready(0)(states) && states[0].Hash != first.Hash
	})
	log, err := os.ReadFile(first.Log)
	if err != nil || !strings.Contains(string(log), "--v=2") {
		t.Errorf("log: %v\n%s", err, log)
	}

	if err := os.Remove(root.Path(folder + "/kube-scheduler.yaml")); err != nil {
		t.Fatal(err)
	}
	await(t, m, "gone with its manifest", func(states []State) bool { return len(states) == 0 })
	if !strings.Contains(said.String(), `Container "kube-scheduler" exited with code 3`) {
		t.Errorf("console:\n%s", said)
	}
}

func TestAnUnhealthyComponentIsNotReady(t *testing.T) {
	m, root, _ := running(t)
	write(t, root, "kube-scheduler.yaml", fmt.Sprintf(schedulerManifest, 1))
	await(t, m, "ready", ready(0))
	if err := root.WriteFile("/broken", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	await(t, m, "unready", func(states []State) bool { return !states[0].Ready && states[0].Running })
}

func TestOtherPodsAndBrokenFilesLeaveTheRestAlone(t *testing.T) {
	m, root, said := running(t)
	write(t, root, "kube-vip.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-vip}\nspec: {containers: [{name: kube-vip, image: kube-vip:1, args: [manager]}]}\n")
	write(t, root, "broken.yaml", "apiVersion: v1\nkind: Pod\nmetadata: [")
	write(t, root, "kube-scheduler.yaml", fmt.Sprintf(schedulerManifest, 1))
	await(t, m, "both there and ready", func(states []State) bool {
		return len(states) == 2 && states[0].Ready && states[1].Ready && states[0].Process && !states[1].Process
	})
	if !strings.Contains(said.String(), "could not process manifest file /etc/kubernetes/manifests/broken.yaml") {
		t.Errorf("console:\n%s", said)
	}
}

func TestAComponentThatIsNotBuiltWaits(t *testing.T) {
	m, root, _ := running(t)
	write(t, root, "kube-apiserver.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-apiserver}\nspec: {containers: [{name: a, image: 'registry.k8s.io/kube-apiserver:v1.37.2', command: [kube-apiserver]}]}\n")
	await(t, m, "waiting", func(states []State) bool {
		return len(states) == 1 && states[0].Waiting == "CreateContainerError" && strings.Contains(states[0].Message, "the sandbox has not built it")
	})
}
