package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

// Config is what the sandbox's daemon says of a machine: guest.json.
type Config struct {
	// Name is the VM's, UUID its BIOS UUID.
	Name string `json:"name"`
	UUID string `json:"uuid"`
	// Address is the machine's only one, in 127.0.0.0/8.
	Address           string `json:"address"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// Dir is the machine's own folder: root below it is its file system.
	Dir string `json:"dir"`
	// BinDir has kube-apiserver, kube-controller-manager, kube-scheduler and etcd.
	BinDir    string            `json:"binDir"`
	Guestinfo map[string]string `json:"guestinfo"`
	NumCPUs   int               `json:"numCPUs"`
	MemoryMiB int               `json:"memoryMiB"`
}

// LoadConfig reads guest.json and refuses one that no machine could come of.
func LoadConfig(path string) (Config, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read guest configuration: %w", err)
	}
	config := Config{}
	if err := json.Unmarshal(raw, &config); err != nil {
		return Config{}, fmt.Errorf("guest configuration %s: %w", path, err)
	}
	config.UUID = strings.ToLower(config.UUID)
	if err := config.validate(); err != nil {
		return Config{}, fmt.Errorf("guest configuration %s: %w", path, err)
	}
	return config, nil
}

func (c Config) validate() error {
	var missing []string
	for name, value := range map[string]string{"name": c.Name, "uuid": c.UUID, "kubernetesVersion": c.KubernetesVersion, "dir": c.Dir, "binDir": c.BinDir} {
		if value == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s missing", strings.Join(missing, ", "))
	}
	if ip := net.ParseIP(c.Address); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("address %q is not in 127.0.0.0/8", c.Address)
	}
	if !filepath.IsAbs(c.Dir) || !filepath.IsAbs(c.BinDir) {
		return errors.New("dir and binDir must be absolute paths")
	}
	return nil
}

// root returns the machine's file system.
func (c Config) root() rootfs.Root { return rootfs.Root(filepath.Join(c.Dir, "root")) }
