package cloudinit

import (
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// cloudConfig holds the cloud-init modules that we use, by the names of cloud-init's reference.
type cloudConfig struct {
	Files        []file                    `json:"write_files,omitempty"`
	BootCommands []string                  `json:"bootcmd,omitempty"`
	Commands     []string                  `json:"runcmd,omitempty"`
	NTP          *ntp                      `json:"ntp,omitempty"`
	Users        []user                    `json:"users,omitempty"`
	DiskSetup    map[string]disk           `json:"disk_setup,omitempty"`
	Filesystems  []filesystem              `json:"fs_setup,omitempty"`
	Mounts       []bootstrapv1.MountPoints `json:"mounts,omitempty"`
}

type file struct {
	Path        string `json:"path"`
	Encoding    string `json:"encoding,omitempty"`
	Owner       string `json:"owner,omitempty"`
	Permissions string `json:"permissions,omitempty"`
	Append      bool   `json:"append,omitempty"`
	Content     string `json:"content"`
}

type user struct {
	Name              string   `json:"name"`
	Passwd            string   `json:"passwd,omitempty"`
	Gecos             string   `json:"gecos,omitempty"`
	Groups            string   `json:"groups,omitempty"`
	HomeDir           string   `json:"homedir,omitempty"`
	Inactive          *bool    `json:"inactive,omitempty"`
	LockPassword      *bool    `json:"lock_passwd,omitempty"`
	Shell             string   `json:"shell,omitempty"`
	PrimaryGroup      string   `json:"primary_group,omitempty"`
	Sudo              string   `json:"sudo,omitempty"`
	SSHAuthorizedKeys []string `json:"ssh_authorized_keys,omitempty"`
}

type ntp struct {
	Enabled *bool    `json:"enabled,omitempty"`
	Servers []string `json:"servers,omitempty"`
}

type disk struct {
	TableType string `json:"table_type,omitempty"`
	Layout    any    `json:"layout"`
	Overwrite *bool  `json:"overwrite,omitempty"`
}

type filesystem struct {
	Label      string   `json:"label,omitempty"`
	Filesystem string   `json:"filesystem"`
	Device     string   `json:"device"`
	Partition  string   `json:"partition,omitempty"`
	Overwrite  *bool    `json:"overwrite,omitempty"`
	ReplaceFS  string   `json:"replace_fs,omitempty"`
	ExtraOpts  []string `json:"extra_opts,omitempty"`
}
