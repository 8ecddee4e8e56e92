package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every infrastructure provider of Cluster API.
const GroupName = "infrastructure.cluster.x-k8s.io"

var (
	// GroupVersion is the group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta2"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme makes the types of this package known to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&VSphereCluster{}, &VSphereClusterList{},
		&VSphereClusterTemplate{}, &VSphereClusterTemplateList{},
		&VSphereMachine{}, &VSphereMachineList{},
		&VSphereMachineTemplate{}, &VSphereMachineTemplateList{},
		&VSphereClusterIdentity{}, &VSphereClusterIdentityList{},
		&VSphereFailureDomain{}, &VSphereFailureDomainList{},
		&VSphereDeploymentZone{}, &VSphereDeploymentZoneList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
