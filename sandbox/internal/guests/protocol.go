package guests

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strconv"

	"github.com/millwright-dev/millwright/sandbox/internal/state"
	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

// config is guest.json, which `guest run --config` reads.
type config struct {
	Name              string            `json:"name"`
	UUID              string            `json:"uuid"`
	Address           string            `json:"address"`
	KubernetesVersion string            `json:"kubernetesVersion"`
	Dir               string            `json:"dir"`
	BinDir            string            `json:"binDir"`
	GuestInfo         map[string]string `json:"guestinfo"`
	NumCPUs           int32             `json:"numCPUs"`
	MemoryMiB         int32             `json:"memoryMiB"`
}

// writeConfig writes guest.json into the machine's folder and returns its path.
func writeConfig(dir, address, binDir string, m vcenter.Machine) (string, error) {
	data, err := json.MarshalIndent(config{
		Name: m.Name, UUID: m.UUID, Address: address, KubernetesVersion: m.KubernetesVersion,
		Dir: dir, BinDir: binDir, GuestInfo: m.GuestInfo, NumCPUs: m.NumCPUs, MemoryMiB: m.MemoryMiB,
	}, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "guest.json")
	return path, state.WriteFile(path, data)
}

// told is one line that a guest writes to its standard output.
type told struct {
	Event string `json:"event"`
	// Of event "phase".
	Phase   string `json:"phase"`
	Message string `json:"message"`
	// Of event "vip": who holds a virtual address.
	Address string `json:"address"`
	Port    int    `json:"port"`
	Backend string `json:"backend"`
	Up      bool   `json:"up"`
}

func (t told) endpoint() string { return net.JoinHostPort(t.Address, strconv.Itoa(t.Port)) }

// listen reads a guest's lines until it ends. Lines of another form are
// somebody's stray output and go to the console.
func listen(r io.Reader, console io.Writer, tell func(told)) {
	for scanner := bufio.NewScanner(r); scanner.Scan(); {
		var t told
		if err := json.Unmarshal(scanner.Bytes(), &t); err != nil || t.Event == "" {
			_, _ = console.Write(append(scanner.Bytes(), '\n'))
			continue
		}
		tell(t)
	}
}
