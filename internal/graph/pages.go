package graph

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects one request of a list brings: kubectl's --chunk-size.
const pageSize = 500

// Pages lists page by page, so that a large fleet neither times out nor is held
// in one answer. Each page is a new list of the type of list.
func Pages(ctx context.Context, c client.Client, list client.ObjectList, each func(client.ObjectList) error, options ...client.ListOption) error {
	token := ""
	for {
		page := list.DeepCopyObject().(client.ObjectList)
		err := c.List(ctx, page, append(options[:len(options):len(options)], client.Limit(pageSize), client.Continue(token))...)
		if err != nil {
			return fmt.Errorf("list %s: %w", kindOfList(c, list), err)
		}
		if err := each(page); err != nil {
			return err
		}
		if token = page.GetContinue(); token == "" {
			return nil
		}
	}
}

func kindOfList(c client.Client, list client.ObjectList) string {
	gvk, err := c.GroupVersionKindFor(list)
	if err != nil {
		return fmt.Sprintf("%T", list)
	}
	return strings.TrimSuffix(gvk.Kind, "List") + " objects"
}
