package contract

import (
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// CloneInput says what an object made from a template is called and to whom it belongs. A zero Owner means none.
type CloneInput struct {
	Template                     *unstructured.Unstructured
	Namespace, Name, ClusterName string
	Owner                        metav1.OwnerReference
	Labels, Annotations          map[string]string
}

// FromTemplate returns the object that a template describes: its spec.template.spec, the labels and annotations of
// spec.template.metadata below those of the input, the cluster's name as a label and the template's name as
// annotations. The kind is the template's without the suffix "Template".
func FromTemplate(in CloneInput) (*unstructured.Unstructured, error) {
	kind, ok := strings.CutSuffix(in.Template.GetKind(), clusterv1.TemplateSuffix)
	if !ok {
		return nil, fmt.Errorf("%s %q is no template: the kind must end with %q", in.Template.GetKind(), in.Template.GetName(), clusterv1.TemplateSuffix)
	}
	template, found, err := unstructured.NestedMap(in.Template.Object, "spec", "template")
	if err != nil || !found {
		return nil, fmt.Errorf("%s %q has no spec.template: it cannot be cloned", in.Template.GetKind(), in.Template.GetName())
	}

	out := &unstructured.Unstructured{Object: map[string]any{}}
	if spec, ok := template["spec"]; ok {
		out.Object["spec"] = spec
	}
	gvk := in.Template.GroupVersionKind()
	out.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind))
	out.SetNamespace(in.Namespace)
	out.SetName(in.Name)

	labels, annotations := map[string]string{}, map[string]string{}
	given := unstructured.Unstructured{Object: map[string]any{"metadata": template["metadata"]}}
	if _, ok := template["metadata"].(map[string]any); ok {
		maps.Copy(labels, given.GetLabels())
		maps.Copy(annotations, given.GetAnnotations())
	}
	maps.Copy(labels, in.Labels)
	maps.Copy(annotations, in.Annotations)
	labels[clusterv1.ClusterNameLabel] = in.ClusterName
	annotations[clusterv1.TemplateClonedFromNameAnnotation] = in.Template.GetName()
	annotations[clusterv1.TemplateClonedFromGroupKindAnnotation] = gvk.GroupKind().String()
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	if in.Owner.UID != "" {
		out.SetOwnerReferences([]metav1.OwnerReference{in.Owner})
	}
	return out, nil
}
