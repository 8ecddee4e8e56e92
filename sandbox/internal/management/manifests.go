package management

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Manifests are what installs Millwright, in the order in which it is applied.
type Manifests struct {
	// First are the CRDs and Namespaces that the others need.
	First, Then []*unstructured.Unstructured
	// Operator is its Deployment. It is not applied: the sandbox has no nodes.
	Operator *appsv1.Deployment
}

// Render builds a kustomization from disk.
func Render(dir string) (Manifests, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return Manifests{}, fmt.Errorf("build the kustomization %s: %w", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, r := range resources.Resources() {
		content, err := r.Map()
		if err != nil {
			return Manifests{}, err
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return sortManifests(objects)
}

// sortManifests parts the objects by when they are applied.
func sortManifests(objects []*unstructured.Unstructured) (Manifests, error) {
	var m Manifests
	for _, obj := range objects {
		switch obj.GetKind() {
		case "CustomResourceDefinition", "Namespace":
			m.First = append(m.First, obj)
		case "Deployment":
			if m.Operator != nil {
				return m, fmt.Errorf("the manifests hold two Deployments, %s and %s: the sandbox runs one operator", m.Operator.Name, obj.GetName())
			}
			m.Operator = &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, m.Operator); err != nil {
				return m, fmt.Errorf("read Deployment %s: %w", obj.GetName(), err)
			}
		default:
			m.Then = append(m.Then, obj)
		}
	}
	return m, nil
}
