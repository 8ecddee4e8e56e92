package guest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"k8s.io/klog/v2"

	"github.com/millwright-dev/millwright/sandbox/guest/console"
	"github.com/millwright-dev/millwright/sandbox/guest/kubelet"
	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
	"github.com/millwright-dev/millwright/sandbox/guest/staticpod"
)

// Units that speak on the console, with the process ids of a freshly booted VM.
const (
	unitKernel    = "kernel"
	unitSystemd   = "systemd[1]"
	unitCloudInit = "cloud-init[812]"
	unitKubelet   = "kubelet[1401]"
)

// machine is one boot of a guest.
type machine struct {
	config  Config
	root    rootfs.Root
	console *console.Console
	events  *events
	pods    *staticpod.Manager

	// up ends when the machine is switched off.
	up           context.Context
	work         sync.WaitGroup
	startKubelet sync.Once

	mu       sync.Mutex
	hostname string
}

// Run boots the machine and keeps it up until the context ends, which is its
// being switched off. Events go to out, the serial console to serial. An error
// means that there was nothing to boot.
func Run(ctx context.Context, config Config, out, serial io.Writer) error {
	root := config.root()
	m := &machine{
		config: config, root: root, events: newEvents(out), up: ctx,
		console: console.New(serial, root.Guest), hostname: config.Name,
	}
	m.pods = staticpod.NewManager(staticpod.Host{
		Root: root, Address: config.Address, BinDir: config.BinDir, Version: config.KubernetesVersion,
	}, m.speaker(unitKubelet))
	isolate()
	restore, err := m.console.Capture(unitCloudInit)
	if err != nil {
		return err
	}
	defer restore()
	m.logTo(unitKubelet)

	m.console.Printf(unitKernel, "Linux version millwright-sandbox; machine %s (%s), %d CPUs, %d MiB", config.Name, config.UUID, config.NumCPUs, config.MemoryMiB)
	if err := m.prepareRoot(); err != nil {
		return fmt.Errorf("machine %q: prepare root: %w", config.Name, err)
	}
	m.work.Go(func() { announce(ctx, m.pods, config.Address, m.events) })
	booted := make(chan struct{})
	go func() {
		// kubeadm's code knows no context: a machine that is switched off in its
		// midst leaves it behind, and the process ends.
		defer close(booted)
		m.boot()
	}()
	select {
	case <-booted:
		// What a bootstrap takes is not needed again.
		debug.FreeOSMemory()
		<-ctx.Done()
	case <-ctx.Done():
	}
	m.console.Printf(unitSystemd, "Powering off")
	// What the kubelet's clients say of their end is of no interest.
	klog.SetOutput(io.Discard)
	m.work.Wait()
	m.events.phase(PhaseDone, "powered off")
	return nil
}

// logTo sends what Kubernetes' code logs to the console, each line once.
func (m *machine) logTo(unit string) {
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true"} {
		_ = flags.Set(name, value)
	}
	klog.SetOutput(m.console.Writer(unit))
}

// isolate forgets what the host's environment says of proxies: kubeadm would
// write it into manifests, and all that a guest talks to is on this host.
func isolate() {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasSuffix(strings.ToLower(name), "_proxy") {
			_ = os.Unsetenv(name)
		}
	}
}

func (m *machine) speaker(unit string) func(string, ...any) {
	return func(format string, args ...any) { m.console.Printf(unit, format, args...) }
}

// prepareRoot makes the folders that any Linux has and empties those that do not
// outlive a boot.
func (m *machine) prepareRoot() error {
	for _, folder := range []string{"/run", "/tmp"} {
		if err := os.RemoveAll(m.root.Path(folder)); err != nil {
			return err
		}
	}
	for _, folder := range []string{"/etc/kubernetes", "/run", "/tmp", "/root", "/home", "/opt", "/usr/local/bin", "/var/lib/cloud/sem", "/var/lib/kubelet", staticpod.LogDir} {
		if err := os.MkdirAll(m.root.Path(folder), 0o755); err != nil {
			return err
		}
	}
	if err := m.root.WriteFile("/etc/machine-id", []byte(strings.ReplaceAll(m.config.UUID, "-", "")+"\n"), 0o644); err != nil {
		return err
	}
	if raw, err := os.ReadFile(m.root.Path("/etc/hostname")); err == nil {
		m.hostname = strings.TrimSpace(string(raw))
		return nil
	}
	return m.setHostname(m.config.Name)
}

func (m *machine) setHostname(name string) error {
	m.mu.Lock()
	same := m.hostname == name && m.root.Exists("/etc/hostname")
	m.hostname = name
	m.mu.Unlock()
	if same {
		return nil
	}
	m.console.Printf(unitSystemd, "Hostname set to <%s>.", name)
	return m.root.WriteFile("/etc/hostname", []byte(name+"\n"), 0o644)
}

func (m *machine) currentHostname() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hostname
}

// runKubelet starts the kubelet, once in a boot.
func (m *machine) runKubelet() {
	m.startKubelet.Do(func() {
		m.console.Printf(unitSystemd, "Started kubelet.service - kubelet: The Kubernetes Node Agent.")
		k := kubelet.New(kubelet.Options{
			Root: m.root, Static: m.pods, Log: m.speaker(unitKubelet),
			Machine: kubelet.Machine{
				Hostname: strings.ToLower(m.currentHostname()), SystemUUID: m.config.UUID, Address: m.config.Address,
				Version: m.config.KubernetesVersion, CPUs: int64(m.config.NumCPUs), MemoryMiB: int64(m.config.MemoryMiB),
			},
		})
		m.work.Go(func() { k.Run(m.up) })
	})
}
