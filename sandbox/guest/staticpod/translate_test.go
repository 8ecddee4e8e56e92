package staticpod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var host = Host{Root: "/vm/root", Address: "127.64.16.5", BinDir: "/cache/v1.37.2-linux-amd64", Version: "v1.37.2"}

func pod(image string, command ...string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name = command[0]
	p.Spec.Containers = []corev1.Container{{Name: command[0], Image: image, Command: command}}
	return p
}

func TestACommandLineIsMadeToWorkBesideOthers(t *testing.T) {
	mounted := pod("registry.k8s.io/kube-apiserver:v1.37.2", "kube-apiserver", "--audit-policy-file=/audit/policy.yaml", "--audit-log-path=/var/log/a.log")
	mounted.Spec.Volumes = []corev1.Volume{{Name: "audit", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/kubernetes/audit"}}}}
	mounted.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "audit", MountPath: "/audit"}}
	cases := map[string]struct {
		pod  *corev1.Pod
		path string
		want []string
	}{
		"kube-apiserver": {
			pod: pod("registry.k8s.io/kube-apiserver:v1.37.2", "kube-apiserver",
				"--advertise-address=127.64.16.5", "--client-ca-file=/etc/kubernetes/pki/ca.crt", "--etcd-servers=https://127.0.0.1:2379",
				"--etcd-prefix=/registry", "--authorization-always-allow-paths=/healthz,/livez", "--secure-port=6443",
				"--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--service-account-key-file=/etc/kubernetes/pki/sa.pub,/etc/kubernetes/pki/old.pub"),
			path: "/cache/v1.37.2-linux-amd64/kube-apiserver",
			want: []string{
				"--advertise-address=198.18.16.5", "--client-ca-file=/vm/root/etc/kubernetes/pki/ca.crt", "--etcd-servers=https://127.64.16.5:2379",
				"--etcd-prefix=/registry", "--authorization-always-allow-paths=/healthz,/livez", "--secure-port=6443",
				"--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--service-account-key-file=/vm/root/etc/kubernetes/pki/sa.pub,/vm/root/etc/kubernetes/pki/old.pub",
				"--bind-address=127.64.16.5",
			},
		},
		"etcd": {
			pod: pod("registry.k8s.io/etcd:3.7.0-0", "etcd", "--listen-client-urls=https://127.0.0.1:2379,https://127.64.16.5:2379",
				"--listen-metrics-urls=http://127.0.0.1:2381", "--data-dir=/var/lib/etcd", "--initial-cluster=a=https://127.64.16.4:2380,b=https://127.64.16.5:2380"),
			path: "/cache/v1.37.2-linux-amd64/etcd",
			want: []string{"--listen-client-urls=https://127.64.16.5:2379", "--listen-metrics-urls=http://127.64.16.5:2381",
				"--data-dir=/vm/root/var/lib/etcd", "--initial-cluster=a=https://127.64.16.4:2380,b=https://127.64.16.5:2380", "--unsafe-no-fsync"},
		},
		"an external etcd stays": {
			pod:  pod("registry.k8s.io/kube-apiserver:v1.37.2", "kube-apiserver", "--etcd-servers=https://10.0.0.1:2379", "--bind-address=0.0.0.0"),
			path: "/cache/v1.37.2-linux-amd64/kube-apiserver",
			want: []string{"--etcd-servers=https://10.0.0.1:2379", "--bind-address=127.64.16.5"},
		},
		"another version beside this one": {
			pod:  pod("registry.k8s.io/kube-scheduler:v1.36.3", "kube-scheduler", "--bind-address=127.0.0.1", "--kubeconfig=/etc/kubernetes/scheduler.conf"),
			path: "/cache/v1.36.3-linux-amd64/kube-scheduler",
			want: []string{"--bind-address=127.64.16.5", "--kubeconfig=/vm/root/etc/kubernetes/scheduler.conf"},
		},
		"paths inside a container": {
			pod: mounted, path: "/cache/v1.37.2-linux-amd64/kube-apiserver",
			want: []string{"--audit-policy-file=/vm/root/etc/kubernetes/audit/policy.yaml", "--audit-log-path=/vm/root/var/log/a.log", "--bind-address=127.64.16.5"},
		},
		"a path that is on the host already": {
			pod:  pod("registry.k8s.io/kube-controller-manager:v1.37.2", "kube-controller-manager", "--root-ca-file=/vm/root/etc/ca.crt", "--bind-address=127.0.0.1"),
			path: "/cache/v1.37.2-linux-amd64/kube-controller-manager",
			want: []string{"--root-ca-file=/vm/root/etc/ca.crt", "--bind-address=127.64.16.5"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Translate(tc.pod, host)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Args); diff != "" {
				t.Error(diff)
			}
			if got.Path != tc.path {
				t.Errorf("runs %s, want %s", got.Path, tc.path)
			}
		})
	}
}

func TestOtherPodsAreNotTranslated(t *testing.T) {
	for name, p := range map[string]*corev1.Pod{
		"kube-vip":      pod("ghcr.io/kube-vip/kube-vip:v0.6.4", "manager"),
		"a host binary": pod("example.org/x:1", "/bin/sh", "-c", "reboot"),
	} {
		if _, known := Component(p); known {
			t.Errorf("%s is taken for a component", name)
		}
		if _, err := Translate(p, host); err == nil || !strings.Contains(err.Error(), "is not a component") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestAVirtualAddressIsReadFromKubeVip(t *testing.T) {
	vip := func(env map[string]string) *corev1.Pod {
		p := pod("ghcr.io/kube-vip/kube-vip:v0.6.4", "manager")
		for name, value := range env {
			p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
		}
		return p
	}
	cases := map[string]struct {
		pod     *corev1.Pod
		address string
		port    int
	}{
		"address and port":        {vip(map[string]string{"address": "127.64.0.10", "port": "8443"}), "127.64.0.10", 8443},
		"the older name":          {vip(map[string]string{"vip_address": "127.64.0.10"}), "127.64.0.10", 6443},
		"services only":           {vip(map[string]string{"address": "127.64.0.10", "cp_enable": "false"}), "", 0},
		"no address":              {vip(nil), "", 0},
		"another pod's addresses": {pod("example.org/x:1", "x"), "", 0},
	}
	for name, tc := range cases {
		address, port, ok := VirtualAddress(tc.pod)
		if address != tc.address || port != tc.port || ok != (tc.address != "") {
			t.Errorf("%s: %q, %d, %v", name, address, port, ok)
		}
	}
}
