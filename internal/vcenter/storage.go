package vcenter

import (
	"context"
	"fmt"
	"slices"

	"github.com/vmware/govmomi/pbm"
	pbmtypes "github.com/vmware/govmomi/pbm/types"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

// storage finds a storage policy, and a datastore that suits it: the given one, or any of the datacenter when none is given.
func (s *Session) storage(ctx context.Context, i *inventory, policy string, given types.ManagedObjectReference) (profile string, datastore types.ManagedObjectReference, err error) {
	raw, _ := s.raw()
	// The policy service is another endpoint that takes the session's cookie; the client is made anew each time because
	// the cookie changes with each login.
	client, err := pbm.NewClient(ctx, &vim25.Client{Client: raw, ServiceContent: i.client.ServiceContent, RoundTripper: raw})
	if err != nil {
		return "", given, fmt.Errorf("reach the storage policies of vCenter %q: %w", s.endpoint.Server, err)
	}
	id, err := policyID(ctx, client, policy, s.endpoint.Server)
	if err != nil {
		return "", given, err
	}
	candidates := []types.ManagedObjectReference{given}
	if given.Value == "" {
		if candidates, err = i.all(ctx, datastores); err != nil {
			return "", given, err
		}
	}
	hubs := make([]pbmtypes.PbmPlacementHub, 0, len(candidates))
	for _, ref := range candidates {
		hubs = append(hubs, pbmtypes.PbmPlacementHub{HubType: ref.Type, HubId: ref.Value})
	}
	result, err := client.CheckRequirements(ctx, hubs, nil, []pbmtypes.BasePbmPlacementRequirement{
		&pbmtypes.PbmPlacementCapabilityProfileRequirement{ProfileId: pbmtypes.PbmProfileId{UniqueId: id}},
	})
	if err != nil {
		return "", given, fmt.Errorf("find a datastore for storage policy %q: %w", policy, err)
	}
	fits := result.CompatibleDatastores()
	if len(fits) == 0 {
		message := fmt.Sprintf("no datastore of %s satisfies the policy %q: change the policy or add storage", i.place(), policy)
		if given.Value != "" {
			message = fmt.Sprintf("the datastore does not satisfy the policy %q: name another datastore or another policy", policy)
		}
		return "", given, &InvalidError{Field: "storagePolicyName", Message: message}
	}
	return id, types.ManagedObjectReference{Type: "Datastore", Value: fits[0].HubId}, nil
}

func policyID(ctx context.Context, client *pbm.Client, name, server string) (string, error) {
	ids, err := client.QueryProfile(ctx, pbmtypes.PbmProfileResourceType{ResourceType: string(pbmtypes.PbmProfileResourceTypeEnumSTORAGE)},
		string(pbmtypes.PbmProfileCategoryEnumREQUIREMENT))
	if err != nil {
		return "", fmt.Errorf("list storage policies: %w", err)
	}
	profiles, err := client.RetrieveContent(ctx, ids)
	if err != nil {
		return "", fmt.Errorf("list storage policies: %w", err)
	}
	var existing []string
	for _, profile := range profiles {
		if profile.GetPbmProfile().Name == name {
			return profile.GetPbmProfile().ProfileId.UniqueId, nil
		}
		existing = append(existing, profile.GetPbmProfile().Name)
	}
	slices.Sort(existing)
	return "", &NotFoundError{Kind: KindStoragePolicy, Name: name, Place: fmt.Sprintf("vCenter %q", server), Existing: existing}
}

// all lists the objects of a kind.
func (i *inventory) all(ctx context.Context, l lookup) ([]types.ManagedObjectReference, error) {
	found, err := l.list(ctx, i.finder, "*")
	if err != nil && !isFindMiss(err) {
		return nil, fmt.Errorf("list %s of %s: %w", l.kind.plural(), i.place(), err)
	}
	out := make([]types.ManagedObjectReference, 0, len(found))
	for _, ref := range found {
		if within(inventoryPath(ref), i.dc.InventoryPath) {
			out = append(out, ref.Reference())
		}
	}
	return out, nil
}
