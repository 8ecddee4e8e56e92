package ignition

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_3/types"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// kubeadmUnit runs the script until it has succeeded once. Its name is what people's drop-ins are for.
func kubeadmUnit(mounts []string) types.Unit {
	requires := ""
	if len(mounts) > 0 {
		requires = "RequiresMountsFor=" + strings.ReplaceAll(literal(strings.Join(mounts, "\n")), "\n", " ") + "\n"
	}
	return unit("kubeadm.service", `[Unit]
Description=Make a Kubernetes node of this machine with kubeadm
ConditionPathExists=`+ConfigPath+`
Wants=network-online.target
After=network-online.target containerd.service
`+requires+`
[Service]
Type=oneshot
Environment=PATH=/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=`+scriptPath+`

[Install]
WantedBy=multi-user.target
`)
}

func unit(name, contents string) types.Unit {
	return types.Unit{Name: name, Enabled: ptr.To(true), Contents: &contents}
}

// timeUnits switch systemd's time client on or off; which servers it asks is in a file.
func timeUnits(ntp bootstrapv1.NTP) []types.Unit {
	if !ntp.IsDefined() {
		return nil
	}
	return []types.Unit{{Name: "systemd-timesyncd.service", Enabled: ptr.To(ptr.Deref(ntp.Enabled, true))}}
}

// tags are the ways in which fstab names devices, and where udev puts them.
var tags = map[string]string{"LABEL": "by-label", "UUID": "by-uuid", "PARTLABEL": "by-partlabel", "PARTUUID": "by-partuuid"}

// renderMounts makes a unit of each line, in which the fields are those of fstab. It returns where they are mounted, too.
func renderMounts(mounts []bootstrapv1.MountPoints) (units []types.Unit, paths []string, err error) {
	var errs []error
	for i, mount := range mounts {
		field := fmt.Sprintf("spec.mounts[%d]", i)
		at := func(n int) string {
			if n < len(mount) {
				return mount[n]
			}
			return ""
		}
		what, where, fsType, options := at(0), at(1), at(2), at(3)
		if tag, value, tagged := strings.Cut(what, "="); tagged && tags[tag] != "" {
			what = "/dev/disk/" + tags[tag] + "/" + value
		}
		switch {
		case !strings.HasPrefix(what, "/"):
			errs = append(errs, fmt.Errorf("%s mounts %q, which only cloud-init knows: name the device by its path or LABEL=", field, what))
			continue
		case !strings.HasPrefix(where, "/") || path.Clean(where) == "/":
			errs = append(errs, fmt.Errorf("%s is mounted at %q: Ignition can mount below / only; put swap into systemd.units of %s", field, where, additionalField))
			continue
		}
		where = path.Clean(where)
		contents := "[Unit]\nBefore=local-fs.target kubeadm.service\n\n[Mount]\nWhat=" + literal(what) + "\nWhere=" + literal(where) + "\n"
		if fsType != "" && fsType != "auto" {
			contents += "Type=" + fsType + "\n"
		}
		if options != "" {
			contents += "Options=" + literal(options) + "\n"
		}
		// Wanted, not required: cloud-init's mounts do not keep a machine from booting either.
		units = append(units, unit(escape(where)+".mount", contents+"\n[Install]\nWantedBy=local-fs.target\n"))
		paths = append(paths, where)
	}
	return units, paths, errors.Join(errs...)
}

// literal keeps systemd from taking spaces for separators and % for the beginning of a specifier.
func literal(value string) string {
	return strings.NewReplacer(" ", `\x20`, "%", "%%").Replace(value)
}

// escape makes a unit's name of a path (systemd.unit(5), "String Escaping for Inclusion in Unit Names").
func escape(where string) string {
	var out strings.Builder
	for i, c := range []byte(strings.Trim(where, "/")) {
		switch {
		case c == '/':
			out.WriteByte('-')
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == ':', c == '_', c == '.' && i > 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, `\x%02x`, c)
		}
	}
	return out.String()
}
