package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// fieldOwner applies manifests as a user's kubectl would.
const fieldOwner = "kubectl"

// Install applies folders of manifests/ and waits until the CRDs among them are served.
func (s *Server) Install(ctx context.Context, folders ...string) error {
	for _, folder := range folders {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), manifests(folder))
		if err != nil {
			return fmt.Errorf("build manifests/%s: %w", folder, err)
		}
		data, err := built.AsYaml()
		if err != nil {
			return fmt.Errorf("build manifests/%s: %w", folder, err)
		}
		if err := s.Apply(ctx, data); err != nil {
			return fmt.Errorf("install manifests/%s: %w", folder, err)
		}
	}
	return s.waitForCRDs(ctx)
}

// Apply applies a stream of YAML documents server-side, as `kubectl apply --server-side -f` does.
func (s *Server) Apply(ctx context.Context, data []byte) error {
	c, err := client.New(s.Admin, client.Options{})
	if err != nil {
		return err
	}
	objects, err := Decode(data)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %q: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// Decode reads the objects of a stream of YAML documents.
func Decode(data []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var out []*unstructured.Unstructured
	for {
		document := runtime.RawExtension{}
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read document %d: %w", len(out)+1, err)
		}
		if raw := bytes.TrimSpace(document.Raw); len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		// Not into a plain map, in which whole numbers would become floats.
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(document.Raw); err != nil {
			return nil, fmt.Errorf("read document %d: %w", len(out)+1, err)
		}
		out = append(out, obj)
	}
}

// waitForCRDs returns when every CRD is established, or with the name of one that is not.
func (s *Server) waitForCRDs(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(s.Admin, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	pending := ""
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := c.List(ctx, list); err != nil {
			return false, err
		}
		pending = ""
		for _, crd := range list.Items {
			if !established(crd) {
				pending = crd.Name
			}
		}
		return pending == "", nil
	})
	if err != nil {
		return fmt.Errorf("wait until CRD %q is served: %w", pending, err)
	}
	return nil
}

func established(crd apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
