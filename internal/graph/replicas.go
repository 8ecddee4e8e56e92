package graph

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Replicas are the counts of an object that owns machines; nil is not reported.
type Replicas struct {
	Desired  *int32 `json:"desired,omitempty"`
	Current  *int32 `json:"current,omitempty"`
	Ready    *int32 `json:"ready,omitempty"`
	UpToDate *int32 `json:"upToDate,omitempty"`
}

// Replicas returns the counts of o, or nil for a kind that has none.
func (o *Object) Replicas() *Replicas {
	switch obj := o.Object.(type) {
	case *clusterv1.MachineDeployment:
		return &Replicas{obj.Spec.Replicas, obj.Status.Replicas, obj.Status.ReadyReplicas, obj.Status.UpToDateReplicas}
	case *clusterv1.MachineSet:
		return &Replicas{obj.Spec.Replicas, obj.Status.Replicas, obj.Status.ReadyReplicas, obj.Status.UpToDateReplicas}
	case *clusterv1.MachinePool:
		return &Replicas{obj.Spec.Replicas, obj.Status.Replicas, obj.Status.ReadyReplicas, obj.Status.UpToDateReplicas}
	case *unstructured.Unstructured:
		desired := count(obj, "spec", "replicas")
		if desired == nil {
			return nil
		}
		return &Replicas{desired, count(obj, "status", "replicas"), count(obj, "status", "readyReplicas"), count(obj, "status", "upToDateReplicas")}
	}
	return nil
}

func count(obj *unstructured.Unstructured, path ...string) *int32 {
	value, found, err := unstructured.NestedInt64(obj.Object, path...)
	if !found || err != nil {
		return nil
	}
	n := int32(value)
	return &n
}

// Version returns the Kubernetes version that o asks for, where its kind has one.
func (o *Object) Version() string {
	switch obj := o.Object.(type) {
	case *clusterv1.Machine:
		return obj.Spec.Version
	case *clusterv1.MachineDeployment:
		return obj.Spec.Template.Spec.Version
	case *clusterv1.MachineSet:
		return obj.Spec.Template.Spec.Version
	case *clusterv1.MachinePool:
		return obj.Spec.Template.Spec.Version
	case *clusterv1.Cluster:
		return obj.Spec.Topology.Version
	case *unstructured.Unstructured:
		version, _, _ := unstructured.NestedString(obj.Object, "spec", "version")
		return version
	}
	return ""
}
