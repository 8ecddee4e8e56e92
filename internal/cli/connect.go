package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MissingAPIError tells that the server does not serve an API which the command needs.
type MissingAPIError struct {
	Server, Context string
	// API is what is missing, in words; Hint is the next step.
	API, Hint string
}

func (e *MissingAPIError) Error() string {
	return fmt.Sprintf("the server at %s has no %s: %s", at(e.Server, e.Context), e.API, e.Hint)
}

// requireClusterAPI asks discovery (kept on disk) whether the server serves
// Cluster at v1beta2.
func (o *Options) requireClusterAPI() error {
	mapper, err := o.ToRESTMapper()
	if err != nil {
		return fmt.Errorf("make a REST mapper: %w", err)
	}
	cluster := schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "Cluster"}
	_, err = mapper.RESTMapping(cluster, clusterv1.GroupVersion.Version)
	if err == nil {
		return nil
	}
	if !meta.IsNoMatchError(err) {
		return err
	}
	missing := &MissingAPIError{Server: o.server(), Context: o.ContextName()}
	if other, otherErr := mapper.RESTMapping(cluster); otherErr == nil {
		missing.API = fmt.Sprintf("Cluster API %s (it serves %s)", clusterv1.GroupVersion.Version, other.GroupVersionKind.Version)
		missing.Hint = "upgrade Cluster API to v1.11 or later"
	} else {
		missing.API = "Cluster API"
		missing.Hint = "switch to the context of a management cluster (kubectl config use-context NAME, or --context NAME), " +
			"or install a Cluster API operator in this one"
	}
	return missing
}

// requireKubeconfig refuses a context that does not exist, and to fall back on
// localhost:8080, which kubectl does when it finds no kubeconfig and which nobody
// serves any more.
func (o *Options) requireKubeconfig() error {
	if *o.APIServer != "" {
		return nil
	}
	raw, err := o.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return o.configError(err)
	}
	if name := o.ContextName(); name != "" && raw.Contexts[name] == nil {
		return fmt.Errorf("context %q is not in kubeconfig %s: see kubectl config get-contexts", name, o.kubeconfigFiles())
	}
	inCluster := os.Getenv("KUBERNETES_SERVICE_HOST") != ""
	if len(raw.Clusters) > 0 || inCluster {
		return nil
	}
	return fmt.Errorf("no cluster is configured: %s has none: set KUBECONFIG or --kubeconfig to the kubeconfig of a cluster", o.kubeconfigFiles())
}

func (o *Options) kubeconfigFiles() string {
	if *o.KubeConfig != "" {
		return *o.KubeConfig
	}
	return strings.Join(clientcmd.NewDefaultClientConfigLoadingRules().GetLoadingPrecedence(), ", ")
}

// configError explains an error of reading the kubeconfig.
func (o *Options) configError(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the kubeconfig: %w: set KUBECONFIG or --kubeconfig to a file that exists", err)
	}
	return fmt.Errorf("kubeconfig %s: %w", o.kubeconfigFiles(), err)
}

func (o *Options) server() string {
	config, err := o.ToRESTConfig()
	if err != nil {
		return ""
	}
	return config.Host
}

func at(server, context string) string {
	if context == "" {
		return server
	}
	return fmt.Sprintf("%s (context %q)", server, context)
}

// connectionMessage explains errors of the way to the server: what cannot be
// reached, why, and what to look at. It returns false for any other error.
func (o *Options) connectionMessage(err error) (string, bool) {
	where := at(o.server(), o.ContextName())
	var urlErr *url.Error
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the server at %s does not accept your credentials: log in again, or look at the user of the context "+
			"(kubectl config view --minify)", where), true
	// Discovery, which is kept for hours, knew the resource.
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource"):
		return fmt.Sprintf("the server at %s no longer serves an API that it served lately: look whether this is the right context: %v", where, err), true
	case errors.Is(err, context.Canceled), !errors.As(err, &urlErr):
		return "", false
	}
	cause, next := urlErr.Err.Error(), "see that the server runs and that the address is right (kubectl config view --minify)"
	var dnsErr *net.DNSError
	switch {
	case errors.As(err, &dnsErr):
		next = fmt.Sprintf("the name %q does not resolve: look at the server address of the context, or at your network or VPN", dnsErr.Name)
	case strings.Contains(cause, "x509:"), strings.Contains(cause, "tls:"):
		next = "its certificate is not the one that the kubeconfig expects: fetch a new kubeconfig if the cluster was made anew"
	case urlErr.Timeout():
		cause = "it does not answer in time"
	}
	return fmt.Sprintf("cannot reach the server at %s: %s: %s", where, cause, next), true
}
