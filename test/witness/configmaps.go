package witness

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// label marks the ConfigMaps that stand for keys.
const label = "millwright.dev/witness"

// ConfigMaps keeps each key as a ConfigMap of the namespace default.
type ConfigMaps struct{ client kubernetes.Interface }

var _ Store = ConfigMaps{}

// Connect returns the store of the cluster that the kubeconfig file names.
func Connect(kubeconfig string) (ConfigMaps, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return ConfigMaps{}, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	return ConfigMaps{client}, err
}

// Write creates the ConfigMap.
func (s ConfigMaps) Write(ctx context.Context, key string) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: key, Labels: map[string]string{label: ""}}}
	_, err := s.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// Keys lists the ConfigMaps' names, as etcd's quorum has them.
func (s ConfigMaps) Keys(ctx context.Context) ([]string, error) {
	list, err := s.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, object := range list.Items {
		keys = append(keys, object.Name)
	}
	return keys, nil
}
