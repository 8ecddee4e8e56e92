package cloudinit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

// baseUsers and baseGroups exist on a Debian or Ubuntu image before any user is
// added (base-passwd, and the daemons of a Kubernetes node image).
var (
	baseUsers = []string{"root", "daemon", "bin", "sys", "sync", "games", "man", "lp", "mail", "news", "uucp",
		"proxy", "www-data", "backup", "list", "irc", "_apt", "nobody", "systemd-network", "systemd-timesync",
		"systemd-resolve", "messagebus", "syslog", "sshd", "ubuntu"}
	baseGroups = []string{"root", "daemon", "bin", "sys", "adm", "tty", "disk", "lp", "mail", "news", "uucp", "man",
		"proxy", "kmem", "dialout", "fax", "voice", "cdrom", "floppy", "tape", "sudo", "audio", "dip", "www-data",
		"backup", "operator", "list", "irc", "src", "shadow", "utmp", "video", "sasl", "plugdev", "staff", "games",
		"users", "nogroup", "systemd-journal", "systemd-network", "systemd-timesync", "systemd-resolve",
		"messagebus", "syslog", "sshd", "ubuntu"}
)

// WriteFiles writes the files below root, in order. Ownership is checked, since
// an owner who does not exist makes cloud-init stop there, and then only told to
// log: a process guest has one user. existing are users made before.
func WriteFiles(root rootfs.Root, list []File, existing []string, log func(format string, args ...any)) error {
	for _, file := range list {
		user, group, _ := strings.Cut(file.Owner, ":")
		if !numeric(user) && !slices.Contains(baseUsers, user) && !slices.Contains(existing, user) {
			return fmt.Errorf("write %s: unknown user or group: \"getpwnam(): name not found: '%s'\" (users are added after files: set defer: true)", file.Path, user)
		}
		if group != "" && !numeric(group) && !slices.Contains(baseGroups, group) && !slices.Contains(existing, group) {
			return fmt.Errorf("write %s: unknown user or group: \"getgrnam(): name not found: '%s'\"", file.Path, group)
		}
		if err := writeFile(root, file); err != nil {
			return fmt.Errorf("write %s: %w", file.Path, err)
		}
		how := "Wrote"
		if file.Append {
			how = "Appended to"
		}
		log("%s %s (%s, %04o, %d bytes)", how, file.Path, file.Owner, file.Mode, len(file.Content))
	}
	return nil
}

func writeFile(root rootfs.Root, file File) error {
	path := root.Path(file.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if file.Append {
		flags = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	out, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	if _, err := out.Write(file.Content); err != nil {
		_ = out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	// The process must stay able to read what it runs, whatever the mode says.
	return os.Chmod(path, file.Mode|0o400)
}

func numeric(id string) bool {
	return id != "" && strings.Trim(id, "0123456789") == ""
}
