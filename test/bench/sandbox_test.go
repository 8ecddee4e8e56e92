package bench

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// sandbox is a sandbox with instant guests and audit logs, for one test.
type sandbox struct {
	*testing.T
	dir, root string
}

// startSandbox starts one that ends with the test.
func startSandbox(t *testing.T) sandbox {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	s := sandbox{T: t, dir: t.TempDir(), root: filepath.Dir(filepath.Dir(filepath.Dir(file)))}
	t.Setenv("KUBECONFIG", filepath.Join(s.dir, "kubeconfig"))
	t.Setenv("PATH", filepath.Join(s.root, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(func() {
		if out, err := exec.Command("sandbox", "down", "--dir", s.dir).CombinedOutput(); err != nil {
			t.Errorf("sandbox down: %v\n%s", err, out)
		}
	})
	args := []string{"up", "--dir", s.dir, "--guests", "instant", "--audit"}
	if operator := os.Getenv("BENCH_OPERATOR"); operator != "" {
		args = append(args, "--operator", operator)
	}
	s.run("", "sandbox", args...)
	return s
}

// run runs a program with standard input and returns its standard output.
func (s sandbox) run(stdin, name string, args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin = s.root, strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		s.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// eventually calls check once a second until it returns "".
func (s sandbox) eventually(deadline time.Duration, check func() string) {
	s.Helper()
	timer, ticker := time.NewTimer(deadline), time.NewTicker(time.Second)
	defer timer.Stop()
	defer ticker.Stop()
	for {
		problem := check()
		if problem == "" {
			return
		}
		select {
		case <-timer.C:
			s.Fatalf("not within %s: %s", deadline, problem)
		case <-ticker.C:
		}
	}
}

// program is what the sandbox tells of a process that it supervises.
type program struct {
	Name     string `json:"name"`
	PID      int    `json:"pid"`
	Restarts int    `json:"restarts"`
}

// operator returns the operator's process.
func (s sandbox) operator() program {
	s.Helper()
	var status struct {
		Programs []program `json:"programs"`
	}
	if err := json.Unmarshal([]byte(s.run("", "sandbox", "status", "--dir", s.dir, "-o", "json")), &status); err != nil {
		s.Fatal(err)
	}
	for _, p := range status.Programs {
		if p.Name == "operator" {
			return p
		}
	}
	s.Fatalf("the sandbox runs no operator: %+v", status.Programs)
	return program{}
}

// createCluster creates the cluster whose workers are to be counted.
func (s sandbox) createCluster() {
	s.Helper()
	testdata := filepath.Join(s.root, "test", "bench", "testdata")
	s.run("", "kubectl", "apply", "-f", filepath.Join(testdata, "provider.yaml"))
	s.run("", "kubectl", "wait", "--for=condition=Established", "crd/sharedcontrolplanes.controlplane.bench.test")
	workload := filepath.Join(s.dir, "workload")
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(workload, "kubeconfig"))
	if err != nil {
		s.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		s.Fatal(err)
	}
	args := []string{
		"fill", "--env", filepath.Join(s.dir, "vsphere.env"), filepath.Join(testdata, "cluster.yaml"), "WORKLOAD_HOST=" + server.Hostname(),
	}
	for name, file := range map[string]string{"WORKLOAD_KUBECONFIG": "kubeconfig", "WORKLOAD_CA": "pki/ca.crt", "WORKLOAD_CA_KEY": "pki/ca.key"} {
		data, err := os.ReadFile(filepath.Join(workload, file))
		if err != nil {
			s.Fatal(err)
		}
		args = append(args, name+"="+base64.StdEncoding.EncodeToString(data))
	}
	s.run(s.run("", "sandbox", args...), "kubectl", "apply", "-f", "-")
	s.run("", "kubectl", "patch", "sharedcontrolplane", "bench", "--subresource=status", "--type=merge", "--patch",
		`{"status":{"initialization":{"controlPlaneInitialized":true},"version":"`+s.version()+`","externalManagedControlPlane":true}}`)
	s.run("", "kubectl", "wait", "--for=condition=Available", "--timeout=2m", "cluster/bench")
}

// version is the Kubernetes version of the cluster.
func (s sandbox) version() string {
	s.Helper()
	return s.run("", "kubectl", "get", "sharedcontrolplane", "bench", "-o", "jsonpath={.spec.version}")
}
