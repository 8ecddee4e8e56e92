package machine

import (
	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter"
)

const (
	hertzPerMHz = 1_000_000
	bytesPerMiB = 1024 * 1024
)

// config is how the virtual machine of a specification is to be. The disk of a linked clone stays as it is.
func config(spec infrav1.VirtualMachineCloneSpec, linked bool, options map[string]string) vcenter.Config {
	c := vcenter.Config{
		NumCPUs: spec.NumCPUs, CoresPerSocket: spec.NumCoresPerSocket, MemoryMiB: spec.MemoryMiB, DiskGiB: spec.DiskGiB,
		ExtraConfig: options, NestedHV: spec.NestedHV,
		FtEncryptionMode: string(spec.FtEncryptionMode), MigrateEncryption: string(spec.MigrateEncryption),
	}
	if linked {
		c.DiskGiB = 0
	}
	r := spec.Resources
	c.CPU = vcenter.Allocation{
		Reservation: upTo(r.Requests.CPU.Value(), hertzPerMHz), Limit: upTo(r.Limits.CPU.Value(), hertzPerMHz), Shares: r.Shares.CPU,
	}
	c.Memory = vcenter.Allocation{
		Reservation: upTo(r.Requests.Memory.Value(), bytesPerMiB), Limit: upTo(r.Limits.Memory.Value(), bytesPerMiB), Shares: r.Shares.Memory,
	}
	return c
}

// upTo is a quantity in units, rounded up; nil for none.
func upTo(quantity, unit int64) *int64 {
	if quantity == 0 {
		return nil
	}
	n := (quantity + unit - 1) / unit
	return &n
}
