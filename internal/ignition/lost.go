package ignition

import (
	"fmt"

	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// Lost returns the fields of a KubeadmConfig, by their path, that have no effect on a machine with Ignition and do not
// keep it from being made: Cluster API says so of them, or they refine what is done anyway.
func Lost(spec bootstrapv1.KubeadmConfigSpec) []string {
	var out []string
	add := func(lost bool, format string, args ...any) {
		if lost {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(len(spec.BootCommands) > 0, "spec.bootCommands")
	for i, user := range spec.Users {
		add(ptr.Deref(user.Inactive, false), "spec.users[%d].inactive", i)
	}
	for i, partition := range spec.DiskSetup.Partitions {
		add(partition.TableType != "" && partition.TableType != "gpt", "spec.diskSetup.partitions[%d].tableType (it is gpt)", i)
	}
	for i, fs := range spec.DiskSetup.Filesystems {
		add(fs.ReplaceFS != "", "spec.diskSetup.filesystems[%d].replaceFS", i)
	}
	for i, mount := range spec.Mounts {
		add(len(mount) > 4, "spec.mounts[%d][4] and after (dump and pass)", i)
	}
	return out
}
