package cloudinit

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Instance is what cloud-init knows of the machine before it reads user data.
type Instance struct {
	// ID changes when the machine is a new one: per-instance work runs once for each.
	ID string
	// Hostname is the name without a domain; FQDN has it.
	Hostname, FQDN string
	// Metadata is the data source's document as it was given.
	Metadata map[string]any
	// Address is the machine's IPv4 address.
	Address string
}

// ParseMetadata reads the metadata of the VMware data source. What it leaves out
// comes from the machine: its BIOS UUID, its name and its address.
func ParseMetadata(raw []byte, uuid, name, address string) (Instance, error) {
	metadata := map[string]any{}
	if err := yaml.Unmarshal(raw, &metadata); err != nil {
		return Instance{}, fmt.Errorf("metadata is neither JSON nor a YAML mapping: %w", err)
	}
	if metadata == nil {
		metadata = map[string]any{}
	}
	inst := Instance{ID: uuid, FQDN: name, Metadata: metadata, Address: address}
	if id := text(metadata["instance-id"]); id != "" {
		inst.ID = id
	}
	for _, key := range []string{"local-hostname", "local_hostname"} {
		if host := text(metadata[key]); host != "" {
			inst.FQDN = host
			break
		}
	}
	inst.Hostname, _, _ = strings.Cut(inst.FQDN, ".")
	return inst, nil
}

// Variables returns what a jinja template may use, in the shape of cloud-init's
// instance-data: ds.meta_data, v1, and the keys of v1 at the top. Keys with a
// hyphen can be written with an underscore too.
func (i Instance) Variables() map[string]any {
	metadata := map[string]any{
		"hostname": i.FQDN, "local-hostname": i.FQDN, "instance-id": i.ID, "local-ipv4": i.Address,
	}
	for key, value := range i.Metadata {
		metadata[key] = value
	}
	v1 := map[string]any{
		"local_hostname": i.Hostname, "instance_id": i.ID,
		"cloud_name": "vmware", "cloud_id": "vmware", "platform": "vmware", "subplatform": "guestinfo",
		"availability_zone": nil, "region": nil, "distro": "ubuntu", "variant": "ubuntu",
	}
	vars := map[string]any{"ds": map[string]any{"meta_data": metadata}, "v1": v1}
	for key, value := range v1 {
		vars[key] = value
	}
	return underscored(vars).(map[string]any)
}

func underscored(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, inner := range value {
			inner = underscored(inner)
			out[key] = inner
			out[strings.ReplaceAll(key, "-", "_")] = inner
		}
		return out
	case []any:
		for n, inner := range value {
			value[n] = underscored(inner)
		}
	}
	return value
}

func text(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
