package management

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/millwright-dev/millwright/sandbox/internal/process"
	"github.com/millwright-dev/millwright/sandbox/internal/state"
)

// tokenLifetime is what a kubelet asks for; like it we renew at four fifths.
const tokenLifetime = time.Hour

// Operator runs the operator as its Deployment would: the same arguments, and
// the token of its ServiceAccount instead of the administrator's certificate.
type Operator struct {
	Cluster Cluster
	// Path is the binary, Dir holds its kubeconfig and token.
	Path, Dir  string
	Deployment *appsv1.Deployment
}

func (o Operator) container() (corev1.Container, error) {
	containers := o.Deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		return corev1.Container{}, fmt.Errorf("deployment %s has %d containers, want the operator's alone", o.Deployment.Name, len(containers))
	}
	return containers[0], nil
}

// Spec returns the operator's process. A pod has an address of its own, so an
// argument that says only a port gets the sandbox's address.
func (o Operator) Spec() (process.Spec, error) {
	c, err := o.container()
	if err != nil {
		return process.Spec{}, err
	}
	args := make([]string, len(c.Args))
	for i, arg := range c.Args {
		args[i] = strings.Replace(arg, "=:", "="+o.Cluster.Host+":", 1)
	}
	env := append(os.Environ(), "KUBECONFIG="+o.kubeconfig())
	for _, v := range c.Env {
		switch {
		case v.ValueFrom == nil:
			env = append(env, v.Name+"="+v.Value)
		case v.ValueFrom.FieldRef == nil:
			return process.Spec{}, fmt.Errorf("deployment %s: variable %s has a source that the sandbox cannot give", o.Deployment.Name, v.Name)
		case v.ValueFrom.FieldRef.FieldPath == "metadata.name":
			env = append(env, v.Name+"="+o.Deployment.Name+"-0")
		case v.ValueFrom.FieldRef.FieldPath == "metadata.namespace":
			env = append(env, v.Name+"="+o.Deployment.Namespace)
		default:
			return process.Spec{}, fmt.Errorf("deployment %s: variable %s is %s, which the sandbox cannot give",
				o.Deployment.Name, v.Name, v.ValueFrom.FieldRef.FieldPath)
		}
	}
	return process.Spec{Name: "operator", Path: o.Path, Args: args, Env: env}, nil
}

// Listen returns the address of the metrics, or of the first port there is.
func (o Operator) Listen() string {
	c, err := o.container()
	if err != nil || len(c.Ports) == 0 {
		return ""
	}
	return net.JoinHostPort(o.Cluster.Host, fmt.Sprint(c.Ports[0].ContainerPort))
}

func (o Operator) kubeconfig() string { return filepath.Join(o.Dir, "kubeconfig") }
func (o Operator) token() string      { return filepath.Join(o.Dir, "token") }

// Authorize gets the first token and writes the kubeconfig that refers to it.
func (o Operator) Authorize(ctx context.Context, config *rest.Config) error {
	if err := o.renew(ctx, config); err != nil {
		return err
	}
	return o.Cluster.write(o.kubeconfig(), "operator", &clientcmdapi.AuthInfo{TokenFile: o.token()})
}

// KeepAuthorized renews the token until ctx is done; clients read the file
// again by themselves. report gets failures, after which it tries again soon.
func (o Operator) KeepAuthorized(ctx context.Context, config *rest.Config, report func(error)) {
	for next := tokenLifetime * 4 / 5; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		next = tokenLifetime * 4 / 5
		if err := o.renew(ctx, config); err != nil && ctx.Err() == nil {
			report(err)
			next = 10 * time.Second
		}
	}
}

func (o Operator) renew(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	seconds := int64(tokenLifetime / time.Second)
	account := o.Deployment.Spec.Template.Spec.ServiceAccountName
	token, err := client.CoreV1().ServiceAccounts(o.Deployment.Namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("token of ServiceAccount %s/%s for the operator: %w", o.Deployment.Namespace, account, err)
	}
	return state.WriteFile(o.token(), []byte(token.Status.Token))
}

// WaitReady waits until the operator passes its own readiness probe.
func (o Operator) WaitReady(ctx context.Context) error {
	url, err := o.probe()
	if err != nil {
		return err
	}
	if err := waitOK(ctx, http.DefaultClient, url); err != nil {
		return fmt.Errorf("the operator is not ready, see `sandbox logs operator`: %w", err)
	}
	return nil
}

// probe returns the URL of the container's readiness probe.
func (o Operator) probe() (string, error) {
	c, err := o.container()
	if err != nil {
		return "", err
	}
	if c.ReadinessProbe == nil || c.ReadinessProbe.HTTPGet == nil {
		return "", fmt.Errorf("deployment %s has no HTTP readiness probe to ask", o.Deployment.Name)
	}
	port := c.ReadinessProbe.HTTPGet.Port.String()
	for _, p := range c.Ports {
		if p.Name == port {
			port = fmt.Sprint(p.ContainerPort)
		}
	}
	return "http://" + net.JoinHostPort(o.Cluster.Host, port) + c.ReadinessProbe.HTTPGet.Path, nil
}
