package kubeadm

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	initphases "k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/init"
	joinphases "k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/join"
	"k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

const configPath = "/run/kubeadm/kubeadm.yaml"

func guestWith(t *testing.T, config string) Guest {
	t.Helper()
	g := Guest{Root: rootfs.Root(t.TempDir()), Hostname: "vm-1", Address: "127.64.16.5", Placeholder: "198.18.16.5",
		KubeletVersion: "v1.37.2", CPUs: 2, MemoryMiB: 4096, StartKubelet: func() {}}
	if err := g.Root.WriteFile(configPath, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return g
}

const cluster = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.2\n"

func TestAnInitConfigurationIsLoadedByKubeadm(t *testing.T) {
	cases := map[string]struct {
		config  string
		name    string
		wantErr string
	}{
		"the machine's name by default": {config: cluster, name: "vm-1"},
		"the name that it gives": {
			config: cluster + "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nnodeRegistration: {name: node-1}\n", name: "node-1"},
		"a loopback address to advertise": {
			config: cluster + "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: 127.64.16.5}\n", name: "vm-1"},
		"no address": {
			config: cluster + "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: here}\n", wantErr: `couldn't use "here" as "apiserver-advertise-address"`},
		"a subnet that is none":    {config: cluster + "networking: {serviceSubnet: 10.96/12}\n", wantErr: "networking.serviceSubnet"},
		"nothing of kubeadm's":     {config: "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n", wantErr: "no InitConfiguration or ClusterConfiguration kind was found"},
		"a field of another type":  {config: cluster + "controlPlaneEndpoint: [a]\n", wantErr: "cannot unmarshal array"},
		"a registration of a list": {config: cluster + "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nnodeRegistration: [a]\n", wantErr: "cannot unmarshal array"},
		"users of the host":        {config: cluster + "featureGates: {RootlessControlPlane: true}\n", wantErr: "feature gate RootlessControlPlane adds users"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg, err := guestWith(t, tc.config).loadInit(configPath)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if cfg.NodeRegistration.Name != tc.name || cfg.LocalAPIEndpoint.AdvertiseAddress != "127.64.16.5" || cfg.CertificatesDir != "/etc/kubernetes/pki" {
				t.Errorf("node %q, address %s, certificates in %s", cfg.NodeRegistration.Name, cfg.LocalAPIEndpoint.AdvertiseAddress, cfg.CertificatesDir)
			}
		})
	}
}

func TestAJoinConfigurationIsLoadedByKubeadm(t *testing.T) {
	const join = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery: {bootstrapToken: {apiServerEndpoint: '127.64.0.10:6443', token: %, unsafeSkipCAVerification: true}}\n"
	good := strings.Replace(join, "%", "abcdef.0123456789abcdef", 1)
	cfg, err := guestWith(t, good+"controlPlane: {localAPIEndpoint: {}}\n").loadJoin(configPath)
	if err != nil || cfg.ControlPlane.LocalAPIEndpoint.AdvertiseAddress != "127.64.16.5" || cfg.NodeRegistration.Name != "vm-1" {
		t.Errorf("control plane: %v, %+v", err, cfg)
	}
	if cfg, err = guestWith(t, good).loadJoin(configPath); err != nil || cfg.ControlPlane != nil {
		t.Errorf("worker: %v, %+v", err, cfg)
	}
	if _, err = guestWith(t, strings.Replace(join, "%", "short", 1)).loadJoin(configPath); err == nil || !strings.Contains(err.Error(), "discovery.bootstrapToken.token") {
		t.Errorf("bad token: %v", err)
	}
}

func TestArgumentsAreKubeadms(t *testing.T) {
	cases := map[string]struct {
		args    []string
		wantErr string
	}{
		"no configuration":    {[]string{"init"}, "with --config only"},
		"an unknown flag":     {[]string{"init", "--config", configPath, "--nope"}, "unknown flag: --nope"},
		"flags that conflict": {[]string{"init", "--config", configPath, "--certificate-key", "x"}, "can not mix '--config' with arguments [certificate-key]"},
		"a stray argument":    {[]string{"join", "--config", configPath, "x"}, `unknown command "x" for "kubeadm"`},
		"a missing file":      {[]string{"join", "--config", "/nowhere"}, `unable to read config from "/nowhere"`},
		"another command":     {[]string{"reset", "--config", configPath}, "not something that a process guest does"},
		"an unknown phase":    {[]string{"init", "--config", configPath, "--skip-phases=nope", "--v=0"}, "invalid phase name: nope"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := guestWith(t, cluster)
			err := Run(g, tc.args)
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) || strings.Contains(err.Error(), string(g.Root)) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func TestPreflightJudgesTheMachineAndNotTheHost(t *testing.T) {
	g := guestWith(t, cluster)
	g.CPUs, g.MemoryMiB, g.KubeletVersion = 1, 1024, "v1.38.0"
	if err := g.Root.WriteFile("/etc/kubernetes/manifests/etcd.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Run(g, []string{"init", "--config", configPath, "--ignore-preflight-errors=Mem"})
	if err == nil {
		t.Fatal("preflight passed")
	}
	for _, words := range []string{
		"[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2",
		"[ERROR FileAvailable--etc-kubernetes-manifests-etcd.yaml]",
		"[ERROR KubeletVersion]: the kubelet version is higher than the control plane version",
	} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q is not in\n%v", words, err)
		}
	}
	if strings.Contains(err.Error(), "ERROR Mem") {
		t.Error("an ignored check fails")
	}
}

func TestAddonsAreSkippedEitherWay(t *testing.T) {
	cases := map[string]struct {
		skip               []string
		dns                bool
		want               []string
		wantDNS, wantProxy bool
	}{
		"none":             {},
		"by phase":         {skip: []string{"addon/kube-proxy"}, want: []string{"addon/kube-proxy"}, wantProxy: true},
		"all":              {skip: []string{"addon"}, want: []string{"addon"}, wantDNS: true, wantProxy: true},
		"by configuration": {dns: true, want: []string{"addon/coredns"}, wantDNS: true},
	}
	for name, tc := range cases {
		cfg := &kubeadmapi.ClusterConfiguration{}
		cfg.DNS.Disabled = tc.dns
		got := skipAddons(cfg, tc.skip)
		if diff := cmp.Diff(tc.want, got); diff != "" || cfg.DNS.Disabled != tc.wantDNS || cfg.Proxy.Disabled != tc.wantProxy {
			t.Errorf("%s: %s dns %v, proxy %v", name, diff, cfg.DNS.Disabled, cfg.Proxy.Disabled)
		}
	}
}

func names(phase workflow.Phase, above string) []string {
	path := above + phase.Name
	out := []string{path}
	for _, p := range phase.Phases {
		out = append(out, names(p, path+"/")...)
	}
	return out
}

func TestReplacedPhasesKeepTheirNames(t *testing.T) {
	ran := 0
	count := func() error { ran++; return nil }
	for _, original := range []func() workflow.Phase{
		initphases.NewPreflightPhase, initphases.NewKubeletFinalizePhase, joinphases.NewKubeletStartPhase, joinphases.NewWaitControlPlanePhase,
	} {
		want := names(original(), "")
		replaced := replace(original(), count)
		if got := names(replaced, ""); !slices.Equal(got, want) {
			t.Errorf("phases %v, want %v", got, want)
		}
		runner := workflow.NewRunner()
		runner.AppendPhase(replaced)
		ran = 0
		if err := runner.Run(nil); err != nil || ran != 1 {
			t.Errorf("%s ran %d times: %v", want[0], ran, err)
		}
	}
}

func TestAPhaseDoesNotRunWhenItsPreparationFails(t *testing.T) {
	want := errors.New("no paths")
	phase := around(workflow.Phase{Name: "p", Run: func(workflow.RunData) error { t.Error("it ran"); return nil }}, func() error { return want })
	if err := phase.Run(nil); !errors.Is(err, want) {
		t.Errorf("error %v", err)
	}
}

func TestManifestsLoseTheHostsPaths(t *testing.T) {
	root := rootfs.Root(t.TempDir())
	cfg := &kubeadmapi.ClusterConfiguration{CertificatesDir: "/etc/kubernetes/pki", Etcd: kubeadmapi.Etcd{Local: &kubeadmapi.LocalEtcd{DataDir: "/var/lib/etcd"}}}
	paths := newClusterPaths(root, cfg)
	if err := paths.onHost(); err != nil {
		t.Fatal(err)
	}
	if cfg.CertificatesDir != root.Path("/etc/kubernetes/pki") || cfg.Etcd.Local.DataDir != root.Path("/var/lib/etcd") {
		t.Errorf("on the host: %s, %s", cfg.CertificatesDir, cfg.Etcd.Local.DataDir)
	}
	file := "/etc/kubernetes/manifests/etcd.yaml"
	if err := root.WriteFile(file, []byte("--data-dir="+cfg.Etcd.Local.DataDir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := paths.onGuest(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(root.Path(file))
	if err != nil || string(raw) != "--data-dir=/var/lib/etcd\n" || cfg.CertificatesDir != "/etc/kubernetes/pki" {
		t.Errorf("on the guest: %v, %q, %s", err, raw, cfg.CertificatesDir)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(root.Path(file)), ".*.yaml")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
