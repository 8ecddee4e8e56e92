//go:build unix

package guest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

func checkNodes(t *testing.T, client kubernetes.Interface, first, second, worker *vm) {
	for _, v := range []*vm{first, second, worker} {
		eventually(t, time.Minute, func(ctx context.Context) error {
			node, err := client.CoreV1().Nodes().Get(ctx, v.config.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
					return fmt.Errorf("%s is not ready: %s", node.Name, c.Message)
				}
			}
			info := node.Status.NodeInfo
			if info.SystemUUID != v.config.UUID || info.KubeletVersion != kubernetesVersion || node.Status.Addresses[0].Address != v.config.Address {
				return fmt.Errorf("%s: %+v, %v", node.Name, info, node.Status.Addresses)
			}
			taints := map[string]bool{}
			for _, taint := range node.Spec.Taints {
				taints[taint.Key] = true
			}
			_, controlPlane := node.Labels["node-role.kubernetes.io/control-plane"]
			switch {
			case controlPlane == (v == worker):
				return fmt.Errorf("%s: labels %v", node.Name, node.Labels)
			case v == first && !taints["node.cloudprovider.kubernetes.io/uninitialized"]:
				return fmt.Errorf("%s: taints %v", node.Name, node.Spec.Taints)
			case v == worker && (!taints["node.cluster.x-k8s.io/uninitialized"] || node.Spec.ProviderID != "vsphere://worker-1" || node.Labels["tier"] != "test"):
				return fmt.Errorf("%s: taints %v, provider id %q, labels %v", node.Name, node.Spec.Taints, node.Spec.ProviderID, node.Labels)
			}
			if _, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node.Name, metav1.GetOptions{}); err != nil {
				return fmt.Errorf("%s: %w", node.Name, err)
			}
			return nil
		})
	}
}

func checkMirrorPods(t *testing.T, client kubernetes.Interface, machines ...*vm) {
	for _, v := range machines {
		for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-vip"} {
			eventually(t, time.Minute, func(ctx context.Context) error {
				pod, err := client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, component+"-"+v.config.Name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				if !isReady(pod) || pod.Status.PodIP != v.config.Address {
					return fmt.Errorf("%s: %s, %+v", pod.Name, pod.Status.Phase, pod.Status.Conditions)
				}
				return nil
			})
		}
		// What the guest writes names the guest's paths, not the host's.
		raw, err := os.ReadFile(v.config.root().Path("/etc/kubernetes/manifests/kube-apiserver.yaml"))
		if err != nil || bytes.Contains(raw, []byte(v.config.Dir)) {
			t.Errorf("manifest of %s: %v\n%s", v.config.Name, err, raw)
		}
	}
	cluster, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(), "kubeadm-config", metav1.GetOptions{})
	if err != nil || !strings.Contains(cluster.Data["ClusterConfiguration"], "certificatesDir: /etc/kubernetes/pki") {
		t.Errorf("kubeadm-config: %v\n%v", err, cluster.Data)
	}
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// checkEtcd forwards a port to each etcd pod, by both protocols that clients use,
// and asks it for its members.
func checkEtcd(t *testing.T, l *lab, config *rest.Config, client kubernetes.Interface, machines ...*vm) {
	pki := machines[0].config.root().Path("/etc/kubernetes/pki")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "apiserver-etcd-client.crt"), filepath.Join(pki, "apiserver-etcd-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	for n, v := range machines {
		transport, upgrader, err := spdy.RoundTripperFor(config)
		if err != nil {
			t.Fatal(err)
		}
		url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(metav1.NamespaceSystem).Name("etcd-" + v.config.Name).SubResource("portforward").URL()
		dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
		if n%2 == 1 {
			if dialer, err = portforward.NewSPDYOverWebsocketDialer(url, config); err != nil {
				t.Fatal(err)
			}
		}
		stop, ready := make(chan struct{}), make(chan struct{})
		var messages bytes.Buffer
		forwarder, err := portforward.New(dialer, []string{"0:2379"}, stop, ready, nil, &messages)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- forwarder.ForwardPorts() }()
		select {
		case <-ready:
		case err := <-ended:
			t.Fatalf("forward to etcd of %s: %v", v.config.Name, err)
		}
		ports, err := forwarder.GetPorts()
		if err != nil {
			t.Fatal(err)
		}
		// InsecureSkipVerify: the name is the forwarded address's.
		https := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}}}
		response, err := https.Post(fmt.Sprintf("https://%s/v3/cluster/member/list", net.JoinHostPort("localhost", fmt.Sprint(ports[0].Local))), "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatalf("etcd of %s: %v; %s", v.config.Name, err, messages.String())
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(response.Body)
		_ = response.Body.Close()
		close(stop)
		if n := strings.Count(body.String(), `"peerURLs"`); n != len(machines) || strings.Contains(body.String(), "isLearner") {
			t.Errorf("etcd of %s has not %d full members: %s", v.config.Name, len(machines), body.String())
		}
	}
}

func checkPods(t *testing.T, client kubernetes.Interface, worker *vm) {
	ctx := t.Context()
	eventually(t, time.Minute, func(ctx context.Context) error {
		proxies, err := client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, "kube-proxy", metav1.GetOptions{})
		if err == nil && proxies.Status.NumberReady != 3 {
			err = fmt.Errorf("kube-proxy is ready on %d nodes of 3", proxies.Status.NumberReady)
		}
		return err
	})
	spec := corev1.PodSpec{NodeName: worker.config.Name, Containers: []corev1.Container{{Name: "c", Image: "example.org/c:1"}}}
	eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	pod, err := client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		if pod, err = client.CoreV1().Pods("default").Get(ctx, "p", metav1.GetOptions{}); err != nil {
			return err
		}
		if !isReady(pod) || !strings.HasPrefix(pod.Status.PodIP, "192.168.") {
			return fmt.Errorf("phase %s, address %q, conditions %+v", pod.Status.Phase, pod.Status.PodIP, pod.Status.Conditions)
		}
		return nil
	})
	job := spec
	job.RestartPolicy = corev1.RestartPolicyNever
	if _, err := client.BatchV1().Jobs("default").Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: job}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		job, err := client.BatchV1().Jobs("default").Get(ctx, "j", metav1.GetOptions{})
		if err == nil && job.Status.Succeeded != 1 {
			err = fmt.Errorf("job: %+v", job.Status)
		}
		return err
	})
	if err := client.CoreV1().Pods("default").Delete(ctx, "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func(ctx context.Context) error {
		_, err := client.CoreV1().Pods("default").Get(ctx, "p", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("pod is still there: %v", err)
	})
}

// checkPowerCut kills a control plane and starts it on the same disk.
func checkPowerCut(t *testing.T, l *lab, client kubernetes.Interface, v *vm) {
	v.kill()
	v.powerOn().reach(PhaseRunning, time.Minute)
	if n := strings.Count(v.log(), "+ kubeadm join"); n != 1 {
		t.Errorf("kubeadm ran %d times", n)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, v.config.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.backends[v.config.Address+":6443"] {
			return fmt.Errorf("%s does not hold the endpoint again; boot %s", node.Name, node.Status.NodeInfo.BootID)
		}
		return nil
	})
}
