package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-dev/millwright/sandbox/guest/staticpod"
)

func TestAConfigurationWithoutAMachineIsRefused(t *testing.T) {
	good := Config{Name: "vm", UUID: "4210AA", Address: "127.64.16.5", KubernetesVersion: "v1.37.2", Dir: "/vm", BinDir: "/bin"}
	cases := map[string]struct {
		change  func(*Config)
		wantErr string
	}{
		"as the daemon writes it": {func(*Config) {}, ""},
		"nothing in it":           {func(c *Config) { *c = Config{} }, "missing"},
		"an outside address":      {func(c *Config) { c.Address = "10.0.0.1" }, `address "10.0.0.1" is not in 127.0.0.0/8`},
		"a relative folder":       {func(c *Config) { c.Dir = "vm" }, "must be absolute paths"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := good
			tc.change(&config)
			raw, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "guest.json")
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := LoadConfig(path)
			switch {
			case tc.wantErr == "" && (err != nil || got.UUID != "4210aa"):
				t.Errorf("%+v, %v", got, err)
			case tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)):
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
		})
	}
}

// output is what a machine writes, safe to read while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// bootUntil boots a machine until it says a phase, switches it off and returns
// its events and console.
func bootUntil(t *testing.T, config Config, phase Phase) (events, console string) {
	t.Helper()
	out, serial := &output{more: make(chan struct{}, 1)}, &output{}
	ctx, off := context.WithTimeout(context.Background(), 30*time.Second)
	defer off()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config, out, serial) }()
	for !strings.Contains(out.String(), `"phase":"`+string(phase)+`"`) {
		select {
		case <-out.more:
		case err := <-ended:
			t.Fatalf("the machine ended before it was %s: %v\n%s%s", phase, err, out, serial)
		}
	}
	off()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return out.String(), serial.String()
}

func vmWith(t *testing.T, userdata string) Config {
	t.Helper()
	return Config{Name: "vm-1", UUID: "4210aa", Address: "127.64.16.5", KubernetesVersion: "v1.37.2", Dir: t.TempDir(), BinDir: "/nowhere",
		NumCPUs: 2, MemoryMiB: 4096, Guestinfo: map[string]string{"userdata": userdata, "metadata": "instance-id: i-1\nlocal-hostname: node-1.example.org\n"}}
}

func TestABootstrapThatFailsSaysWhyAndLeavesTheMachineOn(t *testing.T) {
	cases := map[string]struct{ userdata, want string }{
		"user data that is no cloud-config": {"#!/bin/sh\n", "the first line must be #cloud-config"},
		"broken YAML":                       {"#cloud-config\nruncmd: [", "failed loading yaml blob"},
		"a template that does not render":   {"## template: jinja\n#cloud-config\nx: {{ a.b }}\n", `\"a\" is undefined`},
		"a configuration that is not there": {"#cloud-config\nruncmd:\n- kubeadm init --config /run/kubeadm.yaml\n", `kubeadm init: unable to read config from \"/run/kubeadm.yaml\"`},
		"a node name that jinja lacks": {
			"## template: jinja\n#cloud-config\nwrite_files:\n- path: /run/k.yaml\n  content: |\n    apiVersion: kubeadm.k8s.io/v1beta4\n    kind: ClusterConfiguration\n    kubernetesVersion: v1.37.2\n    ---\n" +
				"    apiVersion: kubeadm.k8s.io/v1beta4\n    kind: InitConfiguration\n    nodeRegistration: {name: '{{ ds.meta_data.nope }}'}\nruncmd:\n- kubeadm init --config /run/k.yaml\n",
			"kubeadm init: nodeRegistration.name: Invalid value",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			events, console := bootUntil(t, vmWith(t, tc.userdata), PhaseFailed)
			if !strings.Contains(events, tc.want) || !strings.Contains(events, `"phase":"done"`) {
				t.Errorf("events do not say %s:\n%s\n%s", tc.want, events, console)
			}
			if !strings.Contains(console, strings.ReplaceAll(tc.want, `\"`, `"`)) {
				t.Errorf("the console does not say %s:\n%s", tc.want, console)
			}
		})
	}
}

func TestAnInstanceIsSetUpOnce(t *testing.T) {
	config := vmWith(t, "#cloud-config\nwrite_files:\n- {path: /etc/once, content: a, append: true}\nruncmd:\n- echo ran >> /etc/ran\n")
	for range 2 {
		bootUntil(t, config, PhaseRunning)
	}
	for path, want := range map[string]string{"/etc/once": "a", "/etc/ran": "ran\n", "/etc/hostname": "node-1\n"} {
		if got, err := os.ReadFile(config.root().Path(path)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	// Another instance id is another machine on the same disk.
	config.Guestinfo["metadata"] = "instance-id: i-2\nlocal-hostname: node-2\n"
	bootUntil(t, config, PhaseRunning)
	if got, _ := os.ReadFile(config.root().Path("/etc/ran")); string(got) != "ran\nran\n" {
		t.Errorf("a new instance ran %q", got)
	}
}

func TestAnImageWithIgnitionRunsItsScriptUntilALineFails(t *testing.T) {
	config := vmWith(t, "")
	delete(config.Guestinfo, "userdata")
	config.Guestinfo["ignition.config.data"] = `{"ignition": {"version": "3.3.0"}, "storage": {"files": [
		{"path": "/etc/kubeadm.sh", "mode": 448, "contents": {"source": "data:,set%20-e%0Aecho%20ran%20>>%20/etc/ran%0Akubeadm%20join%20--config%20/etc/none.yml%0Aecho%20after%20>>%20/etc/ran"}}
	]}, "systemd": {"units": [{"name": "kubeadm.service", "enabled": true, "contents": "[Service]\nExecStart=/etc/kubeadm.sh\n"}]}}`
	events, console := bootUntil(t, config, PhaseFailed)
	if !strings.Contains(events, "kubeadm.service: kubeadm join") {
		t.Errorf("events do not say what failed:\n%s\n%s", events, console)
	}
	for path, want := range map[string]string{"/etc/ran": "ran\n", "/etc/hostname": "node-1\n"} {
		if got, err := os.ReadFile(config.root().Path(path)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

func TestABootThatWasCutShortIsNotRepeated(t *testing.T) {
	config := vmWith(t, "#cloud-config\nruncmd:\n- kubeadm init --config /run/none.yaml\n")
	bootUntil(t, config, PhaseFailed)
	events, console := bootUntil(t, config, PhaseFailed)
	if !strings.Contains(events, errBefore.Error()) || strings.Contains(console, "+ kubeadm") {
		t.Errorf("%s\n%s", events, console)
	}
}

func TestAVirtualAddressIsHeldWhileTheAPIServerLives(t *testing.T) {
	manifest := func(name, command string, env ...corev1.EnvVar) staticpod.Manifest {
		pod := &corev1.Pod{}
		pod.Name = name
		pod.Spec.Containers = []corev1.Container{{Name: name, Command: []string{command}, Env: env}}
		return staticpod.Manifest{Pod: pod}
	}
	vip := staticpod.State{Manifest: manifest("kube-vip", "manager", corev1.EnvVar{Name: "address", Value: "127.64.0.10"}), Live: true}
	server := func(live bool) staticpod.State {
		return staticpod.State{Manifest: manifest("kube-apiserver", "kube-apiserver"), Live: live}
	}
	at := endpoint{"127.64.0.10", 6443}
	cases := map[string]struct {
		states []staticpod.State
		want   map[endpoint]bool
	}{
		"a live server":    {[]staticpod.State{vip, server(true)}, map[endpoint]bool{at: true}},
		"one that is not":  {[]staticpod.State{vip, server(false)}, map[endpoint]bool{at: false}},
		"none":             {[]staticpod.State{vip}, map[endpoint]bool{at: false}},
		"without kube-vip": {[]staticpod.State{server(true)}, map[endpoint]bool{}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, heldEndpoints(tc.states), cmp.AllowUnexported(endpoint{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
