package cloudinit

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// Command is what kubeadm is asked to do on the machine.
type Command string

// The commands of kubeadm that bring a machine into a cluster.
const (
	Init Command = "init"
	Join Command = "join"
)

// Where files lie in the guest: the paths are part of what Cluster API promises to images.
const (
	// InitConfigPath holds the kubeadm configuration of the first control plane machine.
	InitConfigPath = "/run/kubeadm/kubeadm.yaml"
	// JoinConfigPath holds the kubeadm configuration of every other machine.
	JoinConfigPath = "/run/kubeadm/kubeadm-join-config.yaml"
	// SentinelPath exists once kubeadm has succeeded (Cluster API bootstrap contract).
	SentinelPath = "/run/cluster-api/bootstrap-success.complete"

	// placeholderPath makes cloud-init create the sentinel's folder, on Windows too.
	placeholderPath = "/run/cluster-api/placeholder"

	header = "## template: jinja\n#cloud-config\n\n"
)

// Input is all that a machine's user data is made of.
type Input struct {
	// Command to run, and Config, the kubeadm configuration for it.
	Command Command
	Config  []byte
	// Certificates are written before everything else; empty for workers.
	Certificates []bootstrapv1.File
	// Spec gives users, files, commands, disks and time servers. Contents of its files and passwords
	// of its users are already there: contentFrom and passwdFrom are errors.
	Spec bootstrapv1.KubeadmConfigSpec
}

// Render returns the cloud-config for in.
func Render(in Input) ([]byte, error) {
	config := cloudConfig{
		BootCommands: in.Spec.BootCommands,
		NTP:          renderNTP(in.Spec.NTP),
		Mounts:       in.Spec.Mounts,
	}
	var err error
	if config.Files, err = renderFiles(in); err != nil {
		return nil, err
	}
	if config.Users, err = renderUsers(in.Spec.Users); err != nil {
		return nil, err
	}
	config.DiskSetup, config.Filesystems = renderDisks(in.Spec.DiskSetup)
	config.Commands = append(config.Commands, in.Spec.PreKubeadmCommands...)
	config.Commands = append(config.Commands, kubeadmCommand(in.Command, in.Spec.Verbosity))
	config.Commands = append(config.Commands, in.Spec.PostKubeadmCommands...)

	data, err := MarshalYAML(config)
	if err != nil {
		return nil, fmt.Errorf("encode cloud-config: %w", err)
	}
	return append([]byte(header), data...), nil
}

func configPath(command Command) string {
	if command == Init {
		return InitConfigPath
	}
	return JoinConfigPath
}

func kubeadmCommand(command Command, verbosity *int32) string {
	words := []string{"kubeadm", string(command), "--config", configPath(command)}
	if verbosity != nil {
		words = append(words, "--v", fmt.Sprint(*verbosity))
	}
	return strings.Join(words, " ") + " && echo success > " + SentinelPath
}

func renderFiles(in Input) ([]file, error) {
	sources := in.files()
	files := make([]file, 0, len(sources))
	for _, source := range sources {
		if source.ContentFrom.IsDefined() {
			return nil, fmt.Errorf("file %q still refers to Secret %q: its content must be read first", source.Path, source.ContentFrom.Secret.Name)
		}
		files = append(files, renderFile(source))
	}
	return files, nil
}

// files returns all files in the order in which they are written. What a user appends to kubeadm's configuration (a
// KubeletConfiguration, say) comes after it.
func (in Input) files() []bootstrapv1.File {
	config := bootstrapv1.File{Path: configPath(in.Command), Owner: "root:root", Permissions: "0640", Content: string(in.Config)}
	placeholder := bootstrapv1.File{Path: placeholderPath, Owner: "root:root", Permissions: "0640", Content: "The folder of this file receives the sign that kubeadm succeeded."}
	out := slices.Clone(in.Certificates)
	var appended []bootstrapv1.File
	for _, file := range in.Spec.Files {
		if file.Path == config.Path && ptr.Deref(file.Append, false) {
			appended = append(appended, file)
			continue
		}
		out = append(out, file)
	}
	out = append(out, config, placeholder)
	return append(out, appended...)
}

// renderFile carries bytes that YAML cannot hold as text (from a Secret) in base64; cloud-init
// undoes it before any encoding that the user named.
func renderFile(source bootstrapv1.File) file {
	out := file{
		Path:        source.Path,
		Owner:       source.Owner,
		Permissions: source.Permissions,
		Encoding:    string(source.Encoding),
		Append:      ptr.Deref(source.Append, false),
		Content:     source.Content,
	}
	if !utf8.ValidString(source.Content) {
		out.Content = base64.StdEncoding.EncodeToString([]byte(source.Content))
		out.Encoding = string(bootstrapv1.Base64)
		if source.Encoding == bootstrapv1.Gzip {
			out.Encoding = string(bootstrapv1.GzipBase64)
		}
	}
	return out
}

func renderUsers(sources []bootstrapv1.User) ([]user, error) {
	users := make([]user, 0, len(sources))
	for _, source := range sources {
		if source.PasswdFrom.IsDefined() {
			return nil, fmt.Errorf("user %q still refers to Secret %q: the password must be read first", source.Name, source.PasswdFrom.Secret.Name)
		}
		users = append(users, user{
			Name:              source.Name,
			Passwd:            source.Passwd,
			Gecos:             source.Gecos,
			Groups:            source.Groups,
			HomeDir:           source.HomeDir,
			Inactive:          source.Inactive,
			LockPassword:      source.LockPassword,
			Shell:             source.Shell,
			PrimaryGroup:      source.PrimaryGroup,
			Sudo:              source.Sudo,
			SSHAuthorizedKeys: source.SSHAuthorizedKeys,
		})
	}
	return users, nil
}

func renderNTP(source bootstrapv1.NTP) *ntp {
	if !source.IsDefined() {
		return nil
	}
	return &ntp{Enabled: source.Enabled, Servers: source.Servers}
}

func renderDisks(source bootstrapv1.DiskSetup) (map[string]disk, []filesystem) {
	disks := map[string]disk{}
	for _, partition := range source.Partitions {
		disks[partition.Device] = disk{
			TableType: partition.TableType,
			Layout:    renderLayout(partition),
			Overwrite: partition.Overwrite,
		}
	}
	var filesystems []filesystem
	for _, fs := range source.Filesystems {
		filesystems = append(filesystems, filesystem{
			Label:      fs.Label,
			Filesystem: fs.Filesystem,
			Device:     fs.Device,
			Partition:  fs.Partition,
			Overwrite:  fs.Overwrite,
			ReplaceFS:  fs.ReplaceFS,
			ExtraOpts:  fs.ExtraOpts,
		})
	}
	return disks, filesystems
}

// renderLayout gives what cloud-init's disk_setup takes as layout: a bool, or a list of sizes in
// percent, each alone or with the partition's type.
func renderLayout(partition bootstrapv1.Partition) any {
	if len(partition.DiskLayout) == 0 {
		return ptr.Deref(partition.Layout, false)
	}
	layout := make([]any, 0, len(partition.DiskLayout))
	for _, part := range partition.DiskLayout {
		if part.PartitionType == "" {
			layout = append(layout, part.Percentage)
			continue
		}
		layout = append(layout, []any{part.Percentage, partitionType(part.PartitionType)})
	}
	return layout
}

// partitionType translates the API's names to the codes of sfdisk; GUIDs pass.
func partitionType(name string) string {
	codes := map[string]string{
		bootstrapv1.PartitionTypeLinux:         "83",
		bootstrapv1.PartitionTypeLinuxSwap:     "82",
		bootstrapv1.PartitionTypeLinuxRAID:     "fd",
		bootstrapv1.PartitionTypeLVM:           "8e",
		bootstrapv1.PartitionTypeFat32:         "0c",
		bootstrapv1.PartitionTypeNTFS:          "07",
		bootstrapv1.PartitionTypeLinuxExtended: "85",
	}
	if code, ok := codes[name]; ok {
		return code
	}
	return name
}
