package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millwright-dev/millwright/sandbox/internal/process"
)

// Dir is the absolute path of a sandbox's directory.
type Dir string

// Open returns the directory at path, made absolute. It need not exist yet.
func Open(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	return Dir(abs), err
}

// Path joins names to the directory.
func (d Dir) Path(names ...string) string {
	return filepath.Join(append([]string{string(d)}, names...)...)
}

// What a user reads: the admin kubeconfig of the management cluster, the
// variables of cluster templates, the logs.
func (d Dir) Kubeconfig() string  { return d.Path("kubeconfig") }
func (d Dir) VSphereEnv() string  { return d.Path("vsphere.env") }
func (d Dir) Logs() string        { return d.Path("logs") }
func (d Dir) MachineLogs() string { return d.Path("logs", "vms") }

// WorkloadKubeconfig is that of the API server that instant guests share.
func (d Dir) WorkloadKubeconfig() string { return d.Path("workload", "kubeconfig") }

// Log is the log of one of the sandbox's programs, or of its daemon.
func (d Dir) Log(name string) string { return d.Path("logs", name+".log") }

// MachineLog is the serial console of a virtual machine.
func (d Dir) MachineLog(vm string) string { return d.Path("logs", "vms", vm+".log") }

// What the sandbox keeps for itself.
func (d Dir) Pids() string      { return d.Path("pids") }
func (d Dir) PKI() string       { return d.Path("pki") }
func (d Dir) Etcd() string      { return d.Path("etcd") }
func (d Dir) VCenter() string   { return d.Path("vcenter") }
func (d Dir) Machines() string  { return d.Path("vms") }
func (d Dir) Temp() string      { return d.Path("tmp") }
func (d Dir) Operator() string  { return d.Path("operator") }
func (d Dir) Endpoints() string { return d.Path("endpoints.json") }
func (d Dir) Lock() string      { return d.Path("lock") }
func (d Dir) stateFile() string { return d.Path("state.json") }

// OldLogs are those of the sandbox before this one.
func (d Dir) OldLogs() string { return d.Path("logs.old") }

// Exists says whether there is such a directory.
func (d Dir) Exists() bool {
	_, err := os.Stat(string(d))
	return err == nil
}

// mark tells a sandbox's directory from any other: without it Clear refuses.
func (d Dir) mark() string { return d.Path(".sandbox") }

// Create makes the directory and all in it that a daemon needs.
func (d Dir) Create() error {
	for _, path := range []string{
		string(d), d.Logs(), d.MachineLogs(), d.Pids(), d.PKI(), d.Etcd(), d.VCenter(), d.Machines(), d.Temp(), d.Operator(),
	} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
	}
	return os.WriteFile(d.mark(), []byte("This directory belongs to Millwright's sandbox.\n"), 0o600)
}

// Clear removes everything but the logs. That there is nothing is no error; a
// directory that no sandbox made is refused. The caller holds the lock.
func (d Dir) Clear() error {
	keep := map[string]bool{d.Lock(): true, d.mark(): true, d.Logs(): true, d.OldLogs(): true}
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, unmarked := os.Stat(d.mark())
	for _, e := range entries {
		path := d.Path(e.Name())
		if keep[path] {
			continue
		}
		if unmarked != nil {
			return fmt.Errorf("%s holds %s, which is not a sandbox's: choose another --dir", d, e.Name())
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// SetLogsAside makes room for new logs and keeps one set of old ones.
func (d Dir) SetLogsAside() error {
	if _, err := os.Stat(d.Logs()); err != nil {
		return nil
	}
	if err := os.RemoveAll(d.OldLogs()); err != nil {
		return err
	}
	return os.Rename(d.Logs(), d.OldLogs())
}

// Records are the processes that this sandbox has started.
func (d Dir) Records() process.Records { return process.Records(d.Pids()) }
