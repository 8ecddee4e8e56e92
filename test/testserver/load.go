package testserver

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/test/apiserver"
)

// Parse reads the objects of a file of YAML documents.
func Parse(path string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects, err := apiserver.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objects, nil
}

// Create creates objects with their status. Their uids, which the server gives
// anew, are put right in the references of those that come later: an owner must
// come before what it owns.
func Create(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	uids := map[types.UID]types.UID{}
	for _, obj := range objects {
		created := obj.DeepCopy()
		created.SetUID("")
		created.SetResourceVersion("")
		owners := created.GetOwnerReferences()
		for i := range owners {
			if uid, ok := uids[owners[i].UID]; ok {
				owners[i].UID = uid
			}
		}
		created.SetOwnerReferences(owners)
		if err := c.Create(ctx, created); err != nil {
			return fmt.Errorf("create %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		uids[obj.GetUID()] = created.GetUID()
		status, ok := obj.Object["status"]
		if !ok {
			continue
		}
		created.Object["status"] = status
		if err := c.Status().Update(ctx, created); err != nil {
			return fmt.Errorf("set the status of %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}
