package contract

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Provisioned reads status.initialization.provisioned of an InfraCluster or InfraMachine. An object of the older
// contract has status.ready instead.
func Provisioned(obj *unstructured.Unstructured) bool {
	return initialized(obj, "provisioned", "ready")
}

// ControlPlaneInitialized reads status.initialization.controlPlaneInitialized of a control plane. An object of the
// older contract has status.initialized instead.
func ControlPlaneInitialized(obj *unstructured.Unstructured) bool {
	return initialized(obj, "controlPlaneInitialized", "initialized")
}

// ControlPlaneNotInitialized tells whether a control plane object says that it is not initialized, rather than nothing.
func ControlPlaneNotInitialized(obj *unstructured.Unstructured) bool {
	value, found, err := unstructured.NestedBool(obj.Object, "status", "initialization", "controlPlaneInitialized")
	return err == nil && found && !value
}

// DataSecret reads status.dataSecretName of a bootstrap config, and whether the Secret is complete:
// status.initialization.dataSecretCreated, or status.ready of the older contract.
func DataSecret(obj *unstructured.Unstructured) (name string, created bool) {
	return text(obj, "status", "dataSecretName"), initialized(obj, "dataSecretCreated", "ready")
}

// ProviderID reads spec.providerID of an InfraMachine.
func ProviderID(obj *unstructured.Unstructured) string {
	return text(obj, "spec", "providerID")
}

// Addresses reads status.addresses of an InfraMachine.
func Addresses(obj *unstructured.Unstructured) clusterv1.MachineAddresses {
	items, _, _ := unstructured.NestedSlice(obj.Object, "status", "addresses")
	var out clusterv1.MachineAddresses
	for _, item := range items {
		m, _ := item.(map[string]any)
		kind, _ := m["type"].(string)
		address, _ := m["address"].(string)
		if address != "" {
			out = append(out, clusterv1.MachineAddress{Type: clusterv1.MachineAddressType(kind), Address: address})
		}
	}
	return out
}

// FailureDomain reads status.failureDomain of an InfraMachine; spec.failureDomain in the older contract.
func FailureDomain(obj *unstructured.Unstructured) string {
	if domain := text(obj, "status", "failureDomain"); domain != "" {
		return domain
	}
	return text(obj, "spec", "failureDomain")
}

// FailureDomains reads status.failureDomains of an InfraCluster, sorted by name: a list, or a map of the older contract.
func FailureDomains(obj *unstructured.Unstructured) []clusterv1.FailureDomain {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "failureDomains")
	var out []clusterv1.FailureDomain
	add := func(name string, value any) {
		m, _ := value.(map[string]any)
		domain := clusterv1.FailureDomain{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &domain); err != nil {
			return
		}
		if name != "" {
			domain.Name = name
		}
		out = append(out, domain)
	}
	switch domains := value.(type) {
	case []any:
		for _, domain := range domains {
			add("", domain)
		}
	case map[string]any:
		for name, domain := range domains {
			add(name, domain)
		}
	}
	slices.SortFunc(out, func(a, b clusterv1.FailureDomain) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
	return out
}

// ControlPlaneEndpoint reads spec.controlPlaneEndpoint of an InfraCluster or a control plane; zero until both host and
// port are known.
func ControlPlaneEndpoint(obj *unstructured.Unstructured) clusterv1.APIEndpoint {
	port, _, _ := unstructured.NestedInt64(obj.Object, "spec", "controlPlaneEndpoint", "port")
	endpoint := clusterv1.APIEndpoint{Host: text(obj, "spec", "controlPlaneEndpoint", "host"), Port: int32(port)}
	if !endpoint.IsValid() {
		return clusterv1.APIEndpoint{}
	}
	return endpoint
}

// Version reads spec.version of a control plane.
func Version(obj *unstructured.Unstructured) string {
	return text(obj, "spec", "version")
}

// Capacity reads status.capacity of an infrastructure template: what a node made from it offers, by resource.
func Capacity(obj *unstructured.Unstructured) map[string]string {
	values, _, _ := unstructured.NestedMap(obj.Object, "status", "capacity")
	out := map[string]string{}
	for name, value := range values {
		// A quantity is a string or a number.
		out[name] = fmt.Sprint(value)
	}
	return out
}

// StatusVersion reads status.version of a control plane: the lowest that one of its machines runs. It is empty until the
// first machine is made.
func StatusVersion(obj *unstructured.Unstructured) string {
	return text(obj, "status", "version")
}

// Counters are the replica fields of a control plane; nil where the object does not have one.
type Counters struct {
	Desired, Replicas, UpToDate, Ready, Available *int32
}

// Replicas reads spec.replicas and the counters of status.
func Replicas(obj *unstructured.Unstructured) Counters {
	return Counters{
		Desired:   integer(obj, "spec", "replicas"),
		Replicas:  integer(obj, "status", "replicas"),
		UpToDate:  integer(obj, "status", "upToDateReplicas"),
		Ready:     integer(obj, "status", "readyReplicas"),
		Available: integer(obj, "status", "availableReplicas"),
	}
}

// Versions reads status.versions of a control plane.
func Versions(obj *unstructured.Unstructured) []clusterv1.StatusVersion {
	items, _, _ := unstructured.NestedSlice(obj.Object, "status", "versions")
	var out []clusterv1.StatusVersion
	for _, item := range items {
		m, _ := item.(map[string]any)
		version, _ := m["version"].(string)
		replicas, _ := m["replicas"].(int64)
		if version != "" {
			out = append(out, clusterv1.StatusVersion{Version: version, Replicas: int32(replicas)})
		}
	}
	return out
}

// Object gives conditions.Getter and conditions.Setter to an unstructured object.
type Object struct {
	*unstructured.Unstructured
}

// Conditions wraps obj for the functions of package conditions.
func Conditions(obj *unstructured.Unstructured) Object {
	return Object{obj}
}

// GetConditions reads status.conditions. Items without a status, as an unfinished provider may write, are left out.
func (o Object) GetConditions() []metav1.Condition {
	items, _, _ := unstructured.NestedSlice(o.Unstructured.Object, "status", "conditions")
	var out []metav1.Condition
	for _, item := range items {
		m, _ := item.(map[string]any)
		condition := metav1.Condition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &condition); err == nil && condition.Status != "" {
			out = append(out, condition)
		}
	}
	return out
}

// SetConditions writes status.conditions.
func (o Object) SetConditions(list []metav1.Condition) {
	items := make([]any, 0, len(list))
	for i := range list {
		if m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i]); err == nil {
			items = append(items, m)
		}
	}
	// The only error is a status that is no map, which the schema of every CRD excludes.
	_ = unstructured.SetNestedSlice(o.Unstructured.Object, items, "status", "conditions")
}

func initialized(obj *unstructured.Unstructured, field, older string) bool {
	value, found, err := unstructured.NestedBool(obj.Object, "status", "initialization", field)
	if err == nil && found {
		return value
	}
	value, _, _ = unstructured.NestedBool(obj.Object, "status", older)
	return value
}

func text(obj *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(obj.Object, path...)
	return value
}

func integer(obj *unstructured.Unstructured, path ...string) *int32 {
	value, found, err := unstructured.NestedInt64(obj.Object, path...)
	if err != nil || !found {
		return nil
	}
	n := int32(value)
	return &n
}

// Failure reads the terminal failure of the older contract, status.failureMessage or status.failureReason; empty when
// there is none. The contract v1beta2 knows no terminal failures.
func Failure(obj *unstructured.Unstructured) string {
	if message := text(obj, "status", "failureMessage"); message != "" {
		return message
	}
	return text(obj, "status", "failureReason")
}
