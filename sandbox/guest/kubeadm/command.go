package kubeadm

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/validation"
	"k8s.io/kubernetes/cmd/kubeadm/app/features"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

// Guest is the machine that kubeadm runs on.
type Guest struct {
	Root rootfs.Root
	// Hostname is the Node's name when the configuration has none.
	Hostname string
	// Address is in 127.0.0.0/8. Placeholder stands for it, outside that range,
	// where kubeadm's loader would take a loopback address for something else.
	Address, Placeholder string
	// KubeletVersion is what kubelet --version says, with its v.
	KubeletVersion  string
	CPUs, MemoryMiB int
	// StartKubelet does what systemctl start kubelet does; again is harmless.
	StartKubelet func()
}

// options are the flags of init and join that make sense with --config.
type options struct {
	config, certificateKey, patches, nodeName string
	ignorePreflightErrors, skipPhases         []string
	uploadCerts, skipTokenPrint               bool
	skipCertificateKeyPrint                   bool
	verbosity                                 int
}

func parse(args []string) (options, error) {
	o := options{}
	flags := pflag.NewFlagSet("kubeadm", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.config, "config", "", "")
	flags.StringVar(&o.certificateKey, "certificate-key", "", "")
	flags.StringVar(&o.patches, "patches", "", "")
	flags.StringVar(&o.nodeName, "node-name", "", "")
	flags.StringSliceVar(&o.ignorePreflightErrors, "ignore-preflight-errors", nil, "")
	flags.StringSliceVar(&o.skipPhases, "skip-phases", nil, "")
	flags.BoolVar(&o.uploadCerts, "upload-certs", false, "")
	flags.BoolVar(&o.skipTokenPrint, "skip-token-print", false, "")
	flags.BoolVar(&o.skipCertificateKeyPrint, "skip-certificate-key-print", false, "")
	flags.IntVarP(&o.verbosity, "v", "v", 0, "")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("%w (the sandbox knows the flags that go with --config)", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown command %q for \"kubeadm\"", flags.Arg(0))
	}
	if o.config == "" {
		return o, errors.New("the sandbox runs kubeadm with --config only")
	}
	return o, validation.ValidateMixedArguments(flags)
}

// Run does kubeadm init or join; args begin with that word. What kubeadm prints
// goes to os.Stdout and to klog, as its packages have it.
func Run(g Guest, args []string) error {
	o, err := parse(args[1:])
	if err != nil {
		return err
	}
	defer setVerbosity(o.verbosity)()
	switch args[0] {
	case "init":
		return g.runInit(o)
	case "join":
		return g.runJoin(o)
	default:
		return fmt.Errorf("kubeadm %s is not something that a process guest does", args[0])
	}
}

// setVerbosity sets klog's level, which is the process's, until undo.
func setVerbosity(level int) (undo func()) {
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	former := flags.Lookup("v").Value.String()
	_ = flags.Set("v", strconv.Itoa(level))
	return func() { _ = flags.Set("v", former) }
}

// paths are folders of the guest on the host, where kubeadm's constants mean the
// guest's.
func (g Guest) kubernetesDir() string { return g.Root.Path("/etc/kubernetes") }
func (g Guest) manifestDir() string   { return g.Root.Path("/etc/kubernetes/manifests") }
func (g Guest) kubeletDir() string    { return g.Root.Path("/var/lib/kubelet") }

// patchesDir prefers the flag to the configuration, as kubeadm does.
func (g Guest) patchesDir(flag string, fromConfig *kubeadmapi.Patches) string {
	if flag == "" && fromConfig != nil {
		flag = fromConfig.Directory
	}
	if flag == "" {
		return ""
	}
	return g.Root.Path(flag)
}

// refuseHostChanges names what kubeadm would do to the host itself.
func refuseHostChanges(cfg *kubeadmapi.ClusterConfiguration) error {
	if features.Enabled(cfg.FeatureGates, features.RootlessControlPlane) {
		return fmt.Errorf("feature gate %s adds users to the machine: a process guest cannot", features.RootlessControlPlane)
	}
	return nil
}

func loopback(address string) bool {
	ip := net.ParseIP(address)
	return ip != nil && ip.IsLoopback()
}
