package ignition

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_3/types"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// typeGUIDs are the types of GPT partitions (UEFI specification; the Discoverable Partitions Specification) by the
// names of the API.
var typeGUIDs = map[string]string{
	bootstrapv1.PartitionTypeLinux:     "0FC63DAF-8483-4772-8E79-3D69D8477DE4",
	bootstrapv1.PartitionTypeLinuxSwap: "0657FD6D-A4AB-43C4-84E5-0933C84B4F4F",
	bootstrapv1.PartitionTypeLinuxRAID: "A19D880F-05FC-4D3B-A006-743F0F84911E",
	bootstrapv1.PartitionTypeLVM:       "E6D6D379-F507-44C2-A23C-238F2A3DF928",
	bootstrapv1.PartitionTypeFat32:     "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7",
	bootstrapv1.PartitionTypeNTFS:      "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7",
}

// renderDisks gives a disk one partition or none: Ignition takes sizes, and the API has shares of a disk whose size
// nobody knows yet.
func renderDisks(partitions []bootstrapv1.Partition) ([]types.Disk, error) {
	var out []types.Disk
	var errs []error
	for i, partition := range partitions {
		field := fmt.Sprintf("spec.diskSetup.partitions[%d]", i)
		layout := partition.DiskLayout
		switch {
		case len(layout) > 1, len(layout) == 1 && layout[0].Percentage != 100:
			errs = append(errs, fmt.Errorf("%s.diskLayout gives shares of a disk, and Ignition takes sizes: use layout: true, or storage.disks in %s", field, additionalField))
			continue
		case len(layout) == 0 && !ptr.Deref(partition.Layout, false):
			continue
		}
		one := types.Partition{Number: 1}
		if len(layout) == 1 && layout[0].PartitionType != "" {
			name := layout[0].PartitionType
			if name == bootstrapv1.PartitionTypeLinuxExtended {
				errs = append(errs, fmt.Errorf("%s.diskLayout[0].partitionType %s is of MBR tables, and Ignition writes GPT: remove it", field, name))
				continue
			}
			if guid, ok := typeGUIDs[name]; ok {
				name = guid
			}
			one.TypeGUID = &name
		}
		out = append(out, types.Disk{Device: partition.Device, WipeTable: partition.Overwrite, Partitions: []types.Partition{one}})
	}
	return out, errors.Join(errs...)
}

func renderFilesystems(setup bootstrapv1.DiskSetup) []types.Filesystem {
	var out []types.Filesystem
	for _, fs := range setup.Filesystems {
		rendered := types.Filesystem{
			Device: fs.Device, Format: given(fs.Filesystem), Label: given(fs.Label), WipeFilesystem: fs.Overwrite,
		}
		if strings.EqualFold(fs.Label, "none") {
			rendered.Label = nil
		}
		if n := partitionOf(fs, setup.Partitions); n > 0 {
			rendered.Device = partitionDevice(fs.Device, n)
		}
		for _, option := range fs.ExtraOpts {
			rendered.Options = append(rendered.Options, types.FilesystemOption(option))
		}
		out = append(out, rendered)
	}
	return out
}

// partitionOf returns the number of the partition that a file system lies in; zero for the whole device. Where it is left
// open it is the one that we make, if we do.
func partitionOf(fs bootstrapv1.Filesystem, partitions []bootstrapv1.Partition) int {
	if n, err := strconv.Atoi(fs.Partition); err == nil {
		return n
	}
	ours := slices.ContainsFunc(partitions, func(p bootstrapv1.Partition) bool {
		return p.Device == fs.Device && (ptr.Deref(p.Layout, false) || len(p.DiskLayout) > 0)
	})
	if ours && fs.Partition != "none" {
		return 1
	}
	return 0
}

// partitionDevice returns the name that udev and the kernel give a partition.
func partitionDevice(device string, number int) string {
	switch last := device[len(device)-1]; {
	case strings.HasPrefix(device, "/dev/disk/"):
		return fmt.Sprintf("%s-part%d", device, number)
	case last >= '0' && last <= '9':
		return fmt.Sprintf("%sp%d", device, number)
	}
	return fmt.Sprintf("%s%d", device, number)
}
