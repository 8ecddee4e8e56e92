package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Installed is a set that a cluster has, and how its objects are.
type Installed struct {
	*Parent
	Objects []MemberState
}

// MemberState is one object of an installed set.
type MemberState struct {
	Health
	// Drifted is set where the object is gone, or somebody took over a field that the set owns.
	Drifted bool
}

// Drifted counts the objects that are no longer as they were applied.
func (i *Installed) Drifted() int {
	n := 0
	for _, object := range i.Objects {
		if object.Drifted {
			n++
		}
	}
	return n
}

// Healthy counts the objects that are as they should be.
func (i *Installed) Healthy() int {
	n := 0
	for _, object := range i.Objects {
		if object.Healthy() {
			n++
		}
	}
	return n
}

// Records reads the records of all sets of a cluster, sorted by name. Parents of
// other tools are left out.
func (e *Engine) Records(ctx context.Context) ([]*Parent, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("ConfigMapList")
	if err := e.Client.List(ctx, list, client.InNamespace(ParentNamespace), client.HasLabels{AddonLabel, setIDLabel}); err != nil {
		return nil, fmt.Errorf("list the inventories of add-ons: %w", err)
	}
	var records []*Parent
	for i := range list.Items {
		record, err := parseParent(list.Items[i].GetLabels()[AddonLabel], &list.Items[i])
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b *Parent) int { return cmp.Compare(a.Name, b.Name) })
	return records, nil
}

// Record reads the record of one set; a *NotInstalledError when there is none.
func (e *Engine) Record(ctx context.Context, set string) (*Parent, error) {
	_, record, err := e.parent(ctx, set)
	if err == nil && record == nil {
		err = &NotInstalledError{Set: set}
	}
	return record, err
}

// Inspect reads the objects of a set and judges them.
func (e *Engine) Inspect(ctx context.Context, record *Parent) (*Installed, error) {
	installed := &Installed{Parent: record, Objects: make([]MemberState, len(record.Members))}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i, member := range record.Members {
		group.Go(func() error {
			live := &unstructured.Unstructured{}
			found, err := e.get(groupCtx, member.ID, live)
			if err != nil {
				return fmt.Errorf("read %s of add-on %s: %w", member.Full(), record.Name, err)
			}
			if !found {
				live = nil
			}
			installed.Objects[i] = judge(member, live)
			installed.Objects[i].Health = e.healthOf(member.ID, live)
			return nil
		})
	}
	return installed, group.Wait()
}

// judge compares a live object, nil when it is gone, with what the inventory says.
func judge(member Member, live *unstructured.Unstructured) MemberState {
	state := MemberState{Health: healthOf(member.ID, live), Drifted: live == nil}
	if live != nil && member.Owned != "" {
		state.Drifted = ownedDigest(live.GetManagedFields()) != member.Owned
	}
	return state
}
