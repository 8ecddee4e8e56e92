//go:build unix

package guest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pubkeypin"
)

const controlPlaneFiles = `
<%- range $name, $content := .CA %>
- path: /etc/kubernetes/pki/<% $name %>
  owner: root:root
  permissions: '0600'
  content: |
    <% indent 4 $content %>
<%- end %>
- path: /etc/kubernetes/manifests/kube-vip.yaml
  content: |
    apiVersion: v1
    kind: Pod
    metadata: {name: kube-vip, namespace: kube-system}
    spec:
      hostNetwork: true
      containers:
      - name: kube-vip
        image: ghcr.io/kube-vip/kube-vip:v0.6.4
        args: [manager]
        env:
        - {name: address, value: <% .Endpoint %>}
        - {name: port, value: "6443"}
        - {name: cp_enable, value: "true"}
- path: /run/cluster-api/placeholder
  permissions: '0640'
  content: x
`

const initUserdata = `## template: jinja
#cloud-config

write_files:` + controlPlaneFiles + `
- path: /run/kubeadm/kubeadm.yaml
  permissions: '0640'
  content: |
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: ClusterConfiguration
    clusterName: lab
    controlPlaneEndpoint: <% .Endpoint %>:6443
    kubernetesVersion: <% .Version %>
    networking: {podSubnet: 192.168.0.0/16, serviceSubnet: 10.96.0.0/12, dnsDomain: cluster.local}
    controllerManager:
      extraArgs:
      - {name: cloud-provider, value: external}
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: InitConfiguration
    localAPIEndpoint: {}
    bootstrapTokens:
    - token: <% .Token %>
    nodeRegistration:
      criSocket: /var/run/containerd/containerd.sock
      imagePullPolicy: IfNotPresent
      name: '{{ local_hostname }}'
      kubeletExtraArgs:
      - {name: cloud-provider, value: external}
runcmd:
- hostnamectl set-hostname "{{ ds.meta_data.hostname }}"
- "kubeadm init --config /run/kubeadm/kubeadm.yaml && echo success > /run/cluster-api/bootstrap-success.complete"
`

const joinDocument = `
- path: /run/kubeadm/kubeadm-join-config.yaml
  permissions: '0640'
  content: |
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: JoinConfiguration
    timeouts: {discovery: <% with .Discovery %><% . %><% else %>5m<% end %>}
    <%- with .ControlPlane %>
    controlPlane:
      localAPIEndpoint: {}
    <%- end %>
    discovery:
      bootstrapToken:
        apiServerEndpoint: <% .Endpoint %>:6443
        token: <% .JoinToken %>
        caCertHashes: ["<% .Hash %>"]
    nodeRegistration:
      name: '{{ local_hostname }}'
      kubeletExtraArgs:
      <%- with .ProviderID %>
      - {name: provider-id, value: '<% . %>'}
      <%- end %>
      - {name: node-labels, value: tier=test}
      <%- with .Taints %>
      taints: <% . %>
      <%- end %>
runcmd:
- kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml && echo success > /run/cluster-api/bootstrap-success.complete
`

const workerUserdata = `## template: jinja
#cloud-config

write_files:
- path: /run/cluster-api/placeholder
  content: x
` + joinDocument

const controlPlaneJoinUserdata = `## template: jinja
#cloud-config

write_files:` + controlPlaneFiles + joinDocument

const sentinel = "/run/cluster-api/bootstrap-success.complete"

// TestGuestsFormACluster boots three machines from the user data of a bootstrap
// provider and looks at the cluster as its users do.
func TestGuestsFormACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t)
	first := l.create(2, "cp-1", initUserdata, nil).powerOn()
	first.reach(PhaseRunning, 4*time.Minute)
	if !first.config.root().Exists(sentinel) {
		t.Error("the bootstrap's sentinel is missing")
	}
	config, client := l.admin(first)

	hash := pubkeypin.Hash(l.caCert)
	worker := l.create(3, "worker-1", workerUserdata, map[string]any{
		"JoinToken": l.token, "Hash": hash, "ProviderID": "vsphere://worker-1", "Taints": "[{key: node.cluster.x-k8s.io/uninitialized, effect: NoSchedule}]",
	}).powerOn()
	second := l.create(4, "cp-2", controlPlaneJoinUserdata, map[string]any{"JoinToken": l.token, "Hash": hash, "ControlPlane": true}).powerOn()
	worker.reach(PhaseRunning, 4*time.Minute)
	second.reach(PhaseRunning, 4*time.Minute)

	t.Run("nodes are ready and say what they are", func(t *testing.T) { checkNodes(t, client, first, second, worker) })
	t.Run("static pods are mirrored as ready", func(t *testing.T) { checkMirrorPods(t, client, first, second) })
	t.Run("etcd is reached through the API server", func(t *testing.T) { checkEtcd(t, l, config, client, first, second) })
	t.Run("pods run, jobs end, deleted pods go", func(t *testing.T) { checkPods(t, client, worker) })
	t.Run("a log is read through the API server", func(t *testing.T) {
		raw, err := client.CoreV1().Pods(metav1.NamespaceSystem).GetLogs("etcd-cp-1", &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil || !bytes.Contains(raw, []byte("etcd")) {
			t.Errorf("log of etcd: %v, %.200s", err, raw)
		}
	})
	t.Run("a wrong CA hash is refused", func(t *testing.T) {
		v := l.create(5, "worker-2", workerUserdata, map[string]any{"JoinToken": l.token, "Hash": "sha256:" + strings.Repeat("0", 64)}).powerOn()
		v.mustFail(t, "cluster CA found in cluster-info ConfigMap is invalid")
	})
	t.Run("an expired token is refused", func(t *testing.T) {
		createToken(t, client, "eeeeee", "0123456789abcdef", time.Now().Add(-time.Minute))
		v := l.create(6, "worker-3", workerUserdata, map[string]any{"JoinToken": "eeeeee.0123456789abcdef", "Hash": hash, "Discovery": "3s"}).powerOn()
		v.mustFail(t, `could not find a JWS signature in the cluster-info ConfigMap for token ID "eeeeee"`)
	})
	t.Run("an invalid configuration is refused", func(t *testing.T) {
		v := l.create(7, "worker-4", workerUserdata, map[string]any{"JoinToken": "no token", "Hash": hash}).powerOn()
		v.mustFail(t, "discovery.bootstrapToken.token: Invalid value")
	})
	t.Run("a machine comes back after a power cut", func(t *testing.T) { checkPowerCut(t, l, client, second) })
}

// admin returns a client with the rights of the first machine's super-admin.conf.
func (l *lab) admin(v *vm) (*rest.Config, kubernetes.Interface) {
	l.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", v.config.root().Path("/etc/kubernetes/super-admin.conf"))
	if err != nil {
		l.t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		l.t.Fatal(err)
	}
	return config, client
}

// createToken makes a bootstrap token as a bootstrap provider does.
func createToken(t *testing.T, client kubernetes.Interface, id, secret string, expires time.Time) {
	t.Helper()
	_, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "expiration": expires.UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true", "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// mustFail waits for the machine's bootstrap to fail with the words, which the
// console has too, and sees that nothing claims success.
func (v *vm) mustFail(t *testing.T, words string) {
	t.Helper()
	eventually(t, time.Minute, func(context.Context) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, event := range v.seen {
			if event.Phase == PhaseFailed && strings.Contains(event.Message, words) {
				return nil
			}
		}
		return fmt.Errorf("no failure with %q among %v", words, v.seen)
	})
	if !strings.Contains(v.log(), words) {
		t.Errorf("the console does not say %q", words)
	}
	if v.config.root().Exists(sentinel) {
		t.Error("the sentinel of success is there")
	}
}
