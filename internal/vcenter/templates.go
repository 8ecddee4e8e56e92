package vcenter

import "context"

// Templates lists the sorted names of the templates of virtual machines in a datacenter; empty stands for the only one.
func (s *Session) Templates(ctx context.Context, datacenter string) ([]string, error) {
	client := s.vim()
	inventory, err := newInventory(ctx, client, datacenter)
	if err != nil {
		return nil, err
	}
	return names(ctx, client, inventory.dc.Reference(), "VirtualMachine")
}
