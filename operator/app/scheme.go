package app

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
)

// NewScheme returns the Go types that the controllers work with.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		clusterv1.AddToScheme,
		bootstrapv1.AddToScheme,
		controlplanev1.AddToScheme,
		ipamv1.AddToScheme,
		infrav1.AddToScheme,
		lifecyclev1.AddToScheme,
		addonsv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}
