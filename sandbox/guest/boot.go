package guest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/sandbox/guest/cloudinit"
	"github.com/millwright-dev/millwright/sandbox/guest/kubeadm"
	"github.com/millwright-dev/millwright/sandbox/guest/kubelet"
	"github.com/millwright-dev/millwright/sandbox/guest/staticpod"
)

// outputLog is where cloud-init keeps what its modules print.
const outputLog = "/var/log/cloud-init-output.log"

// errBefore says that an earlier boot of this instance failed.
var errBefore = errors.New("an earlier boot ran this instance's commands and did not finish")

// boot does what a machine does from power-on to its login prompt.
func (m *machine) boot() {
	if log, err := os.OpenFile(m.root.Path(outputLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640); err == nil {
		m.console.Copy(unitCloudInit, log)
		defer func() {
			m.console.Copy(unitCloudInit, nil)
			_ = log.Close()
		}()
	}
	m.events.phase(PhaseCloudInit, "")
	err := m.cloudInit()
	switch {
	case m.up.Err() != nil:
	case err != nil:
		sayCloudInit("Cloud-init finished at %s with errors: %v", time.Now().UTC().Format(time.RFC1123), err)
		m.events.phase(PhaseFailed, m.root.Guest(err.Error()))
	default:
		sayCloudInit("Cloud-init finished at %s. Datasource DataSourceVMware", time.Now().UTC().Format(time.RFC1123))
		m.events.phase(PhaseRunning, "")
	}
}

// sayCloudInit prints to what Run captures, and so in line with what kubeadm prints.
func sayCloudInit(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
}

func (m *machine) guestinfo(key string) ([]byte, error) {
	value, err := cloudinit.Decode(m.config.Guestinfo[key], m.config.Guestinfo[key+".encoding"])
	if err != nil {
		return nil, fmt.Errorf("guestinfo.%s: %w", key, err)
	}
	return value, nil
}

// cloudInit runs the stages of cloud-init. Work that is done once for an
// instance leaves a mark, and is not done again when the machine is restarted.
func (m *machine) cloudInit() error {
	sayCloudInit("Cloud-init running 'init' at %s", time.Now().UTC().Format(time.RFC1123))
	metadata, err := m.guestinfo("metadata")
	if err != nil {
		return err
	}
	instance, err := cloudinit.ParseMetadata(metadata, m.config.UUID, m.config.Name, m.config.Address)
	if err != nil {
		return err
	}
	ignite, err := m.guestinfo(ignitionKey)
	if err != nil {
		return err
	}
	if len(ignite) > 0 {
		return m.ignite(ignite, instance)
	}
	config, err := m.userdata(instance)
	if config == nil {
		m.resumeKubelet()
		return err
	}
	shell := &cloudinit.Shell{
		Root: m.root, Log: sayCloudInit, Kubeadm: m.kubeadm,
		SetHostname: func(name string) { _ = m.setHostname(name) },
	}
	failed := []error{err}
	if len(config.BootCommands) > 0 {
		failed = append(failed, shell.Run(config.BootCommands))
	}
	if m.once(instance, "config_write_files") {
		if err := m.setHostname(instance.Hostname); err != nil {
			return err
		}
		failed = append(failed, m.writeFiles(config))
	}
	m.resumeKubelet()
	if !m.once(instance, "config_scripts_user") {
		if m.root.Exists(m.mark(instance, "boot-finished")) {
			sayCloudInit("Instance %s was set up by an earlier boot", instance.ID)
			return nil
		}
		return errBefore
	}
	sayCloudInit("Cloud-init running 'modules:final' at %s", time.Now().UTC().Format(time.RFC1123))
	failed = append(failed, shell.Run(config.RunCommands))
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if shell.Kubeadms == 0 {
		sayCloudInit("No command ran kubeadm init or join: this machine will not be a node")
	}
	return m.root.WriteFile(m.mark(instance, "boot-finished"), nil, 0o644)
}

// userdata decodes, renders and parses the user data. No configuration means
// that there is none, or none that cloud-init would take.
func (m *machine) userdata(instance cloudinit.Instance) (*cloudinit.Config, error) {
	raw, err := m.guestinfo("userdata")
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		sayCloudInit("No user data")
		return nil, nil
	}
	rendered, missing, err := cloudinit.Render(raw, instance.Variables())
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		sayCloudInit("[WARNING]: Could not render jinja template variables in file 'user-data': %s", strings.Join(missing, ", "))
	}
	config, warnings, err := cloudinit.Parse(rendered)
	for _, warning := range warnings {
		sayCloudInit("[WARNING]: %s", warning)
	}
	if config != nil && len(config.Ignored) > 0 {
		sayCloudInit("Keys of the cloud-config without effect on a process guest: %s", strings.Join(config.Ignored, ", "))
	}
	return config, err
}

func (m *machine) writeFiles(config *cloudinit.Config) error {
	var now, later []cloudinit.File
	for _, file := range config.Files {
		if file.Defer {
			later = append(later, file)
		} else {
			now = append(now, file)
		}
	}
	err := cloudinit.WriteFiles(m.root, now, nil, sayCloudInit)
	for _, user := range config.Users {
		sayCloudInit("User %s    # not added: a process guest leaves the host alone", user)
	}
	return errors.Join(err, cloudinit.WriteFiles(m.root, later, config.Users, sayCloudInit))
}

// kubeadm runs kubeadm init or join and prints its error as the command does.
func (m *machine) kubeadm(args []string) error {
	m.events.phase(PhaseKubeadm, "kubeadm "+strings.Join(args, " "))
	m.logTo(unitCloudInit)
	defer m.logTo(unitKubelet)
	err := kubeadm.Run(kubeadm.Guest{
		Root: m.root, Hostname: strings.ToLower(m.currentHostname()), Address: m.config.Address,
		Placeholder: staticpod.Advertise(m.config.Address), KubeletVersion: m.config.KubernetesVersion,
		CPUs: m.config.NumCPUs, MemoryMiB: m.config.MemoryMiB, StartKubelet: m.runKubelet,
	}, args)
	if err != nil {
		sayCloudInit("error: %v", err)
		return fmt.Errorf("kubeadm %s: %w", args[0], err)
	}
	return nil
}

// resumeKubelet starts the kubelet of a machine that an earlier boot set up, as
// systemd does whether or not cloud-init has something to do.
func (m *machine) resumeKubelet() {
	if m.root.Exists(kubelet.ConfigPath) {
		m.runKubelet()
	}
}

func (m *machine) mark(instance cloudinit.Instance, name string) string {
	return "/var/lib/cloud/instances/" + instance.ID + "/sem/" + name
}

// once tells whether something is still to be done for this instance, and marks
// it as done: like cloud-init before it does it, not after.
func (m *machine) once(instance cloudinit.Instance, name string) bool {
	mark := m.mark(instance, name)
	if m.root.Exists(mark) {
		return false
	}
	if err := m.root.WriteFile(mark, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o644); err != nil {
		sayCloudInit("[WARNING]: could not mark %s: %v", name, err)
	}
	return true
}
