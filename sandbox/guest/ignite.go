package guest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/sandbox/guest/cloudinit"
	"github.com/millwright-dev/millwright/sandbox/guest/ignition"
)

// ignitionKey is the guestinfo variable by which VMware's virtual machines get an Ignition configuration.
const ignitionKey = "ignition.config.data"

// ignite does what an image with Ignition does on its first boot, and kubeadm.service on this and every other one until it
// has succeeded. The host's name comes from the metadata, as an agent in such images for vSphere sets it.
func (m *machine) ignite(raw []byte, instance cloudinit.Instance) error {
	config, err := ignition.Parse(raw)
	if err != nil {
		return fmt.Errorf("Ignition failed: %w", err)
	}
	if len(config.Ignored) > 0 {
		sayCloudInit("Sections of the Ignition configuration without effect on a process guest: %s", strings.Join(config.Ignored, ", "))
	}
	if m.once(instance, "ignition") {
		if err := m.setHostname(instance.Hostname); err != nil {
			return err
		}
		if err := cloudinit.WriteFiles(m.root, config.Files, config.Users, sayCloudInit); err != nil {
			return fmt.Errorf("Ignition failed: %w", err)
		}
		sayCloudInit("Ignition finished successfully at %s", time.Now().UTC().Format(time.RFC1123))
	}
	m.resumeKubelet()
	finished := m.mark(instance, "kubeadm-finished")
	if m.root.Exists(finished) {
		sayCloudInit("Instance %s was set up by an earlier boot", instance.ID)
		return nil
	}
	shell := &cloudinit.Shell{
		Root: m.root, Log: sayCloudInit, Kubeadm: m.kubeadm,
		SetHostname: func(name string) { _ = m.setHostname(name) },
	}
	// The script ends with the first line that fails.
	for _, line := range config.Script {
		if err := shell.Run([]cloudinit.Command{{Shell: line}}); err != nil {
			return fmt.Errorf("kubeadm.service: %w", err)
		}
	}
	if shell.Kubeadms == 0 {
		return errors.New("kubeadm.service ran neither kubeadm init nor join: this machine will not be a node")
	}
	return m.root.WriteFile(finished, nil, 0o644)
}
