package ignition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_3"
	"github.com/coreos/ignition/v2/config/v3_3/types"
	"github.com/coreos/vcontext/report"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/millwright-dev/millwright/internal/cloudinit"
)

// ConfigPath holds the kubeadm configuration of every machine, in the place that Cluster API has promised to images with
// Ignition.
const ConfigPath = "/etc/kubeadm.yml"

// additionalField is where a user adds to what we render.
const additionalField = "spec.ignition.containerLinuxConfig.additionalConfig"

// Render returns the Ignition configuration for in. Errors name the field of the KubeadmConfig that cannot be expressed,
// and quote nothing of what may come from a Secret.
func Render(in cloudinit.Input) ([]byte, error) {
	if err := errors.Join(checkConfig(in.Config), checkJinja(in.Spec)); err != nil {
		return nil, err
	}
	config := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	var errs []error
	collect := func(err error) { errs = append(errs, err) }

	var err error
	config.Storage.Files, err = renderFiles(in)
	collect(err)
	config.Passwd.Users, err = renderUsers(in.Spec.Users)
	collect(err)
	config.Storage.Disks, err = renderDisks(in.Spec.DiskSetup.Partitions)
	collect(err)
	config.Storage.Filesystems = renderFilesystems(in.Spec.DiskSetup)
	mounts, paths, err := renderMounts(in.Spec.Mounts)
	collect(err)
	config.Systemd.Units = append(mounts, timeUnits(in.Spec.NTP)...)
	config.Systemd.Units = append(config.Systemd.Units, kubeadmUnit(paths))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}

	if config, err = addTo(config, in.Spec.Ignition.ContainerLinuxConfig); err != nil {
		return nil, err
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode Ignition configuration: %w", err)
	}
	// Ignition would refuse it on the machine, where nobody sees it.
	if _, found, err := v3_3.Parse(data); err != nil {
		return nil, fmt.Errorf("Ignition would refuse what spec asks for: %w: %s", err, complaints(found, false))
	}
	return data, nil
}

// instanceData matches an expression of a template of cloud-init's. Other programs have such braces too, but not these
// variables (cloud-init, "Instance-data").
var instanceData = regexp.MustCompile(`\{\{-?\s*(ds|v1|merged_cfg|sys_info|local_hostname|instance_id|region|availability_zone|cloud_name|platform)\b`)

// checkJinja refuses templates of cloud-init's in what a user has written.
func checkJinja(spec bootstrapv1.KubeadmConfigSpec) error {
	var errs []error
	look := func(text, format string, args ...any) {
		if instanceData.MatchString(text) {
			errs = append(errs, fmt.Errorf(format+" has a template of cloud-init's, which Ignition does not fill in: let a command find out what is in {{ }}", args...))
		}
	}
	for i, command := range spec.PreKubeadmCommands {
		look(command, "spec.preKubeadmCommands[%d]", i)
	}
	for i, command := range spec.PostKubeadmCommands {
		look(command, "spec.postKubeadmCommands[%d]", i)
	}
	for i, file := range spec.Files {
		look(file.Content, "spec.files[%d] (%s)", i, file.Path)
	}
	return errors.Join(errs...)
}

// checkConfig refuses them in a kubeadm configuration, where there are no other braces.
func checkConfig(config []byte) error {
	for line := range bytes.Lines(config) {
		if bytes.Contains(line, []byte("{{")) || bytes.Contains(line, []byte("{%")) {
			return fmt.Errorf("the kubeadm configuration has a template of cloud-init's, %q, which Ignition does not fill in: nodeRegistration is the usual place; "+
				"give it without {{ }}, and let a command in spec.preKubeadmCommands fill in a placeholder in %s", strings.TrimSpace(string(line)), ConfigPath)
		}
	}
	return nil
}

// addTo merges what the user adds into config: it wins.
func addTo(config types.Config, additional bootstrapv1.ContainerLinuxConfig) (types.Config, error) {
	if additional.AdditionalConfig == "" {
		return config, nil
	}
	raw := []byte(additional.AdditionalConfig)
	if !json.Valid(raw) {
		return config, fmt.Errorf("%s is no JSON: it takes an Ignition configuration of version 3.0 to 3.3; translate a Container Linux Config, "+
			"which is for Ignition 2, and a Butane config with butane", additionalField)
	}
	more, found, err := v3_3.ParseCompatibleVersion(raw)
	strict := ptr.Deref(additional.Strict, false)
	switch {
	case err != nil:
		return config, fmt.Errorf("%s is no Ignition configuration of version 3.0 to 3.3: %w: %s", additionalField, err, complaints(found, false))
	case strict && len(found.Entries) > 0:
		return config, fmt.Errorf("%s: %s: mend it, or set strict to false", additionalField, complaints(found, true))
	}
	return v3_3.Merge(config, more), nil
}

// complaints returns what Ignition's own validation says, without contents.
func complaints(found report.Report, warnings bool) string {
	var out []string
	for _, entry := range found.Entries {
		if entry.Kind == report.Error || warnings {
			out = append(out, entry.Context.String()+": "+entry.Message)
		}
	}
	return strings.Join(out, "; ")
}
