package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

// machineNames completes the names of machines.
var machineNames = cli.NameSource{GVK: clusterv1.GroupVersion.WithKind("Machine")}

// ownedMachine is a machine with what decides how many of its kind there are.
type ownedMachine struct {
	*clusterv1.Machine
	// set is the MachineSet of a worker that has one.
	set *clusterv1.MachineSet
	// owner is the MachineDeployment, MachineSet or KubeadmControlPlane whose replicas count the machine, and target
	// its name on the command line. nil when there is none of these kinds; other then names a controller of another.
	owner  client.Object
	target target
	other  string
}

func (m ownedMachine) controlPlane() bool { return role(m.Machine) == "control-plane" }

// machineArgument reads the name of a machine, also as machine/NAME, which -o name prints.
func machineArgument(arg string) (string, error) {
	kind, name, found := strings.Cut(arg, "/")
	if !found {
		kind, name = "machine", arg
	}
	word, _, _ := strings.Cut(strings.ToLower(kind), ".")
	if (word != "machine" && word != "machines" && word != "ma") || name == "" || strings.Contains(name, "/") {
		return "", cli.UsageErrorf("%q is not a machine: give the name of one, as kubectl machines get CLUSTER lists them", arg)
	}
	return name, nil
}

// machineResource is how kubectl prints a machine.
func machineResource(name string) string {
	return "machine." + clusterv1.GroupVersion.Group + "/" + name
}

// getMachine reads a machine. When there is none of that name, the error names some that there are.
func getMachine(ctx context.Context, c client.Client, key client.ObjectKey) (*clusterv1.Machine, error) {
	machine := &clusterv1.Machine{}
	err := c.Get(ctx, key, machine)
	if err == nil {
		return machine, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read machine %q: %w", key.Name, err)
	}
	next := "there is none in this namespace: -n NAMESPACE looks in another"
	if names := listNames(ctx, c, &clusterv1.MachineList{}, key.Namespace); len(names) > 0 {
		next = "there is " + strings.Join(names, ", ")
		if len(names) == namedInError {
			next += ", ..."
		}
	}
	return nil, fmt.Errorf("machine %q not found in namespace %s: %s", key.Name, key.Namespace, next)
}

// readOwner follows a machine's controller up to what has the replicas.
func readOwner(ctx context.Context, c client.Client, machine *clusterv1.Machine) (ownedMachine, error) {
	owned := ownedMachine{Machine: machine}
	ref := metav1.GetControllerOf(machine)
	for ref != nil {
		var obj client.Object
		switch ref.Kind {
		case kindSet.Kind:
			owned.set = &clusterv1.MachineSet{}
			obj, owned.target = owned.set, target{kindSet, ref.Name}
		case kindDeployment.Kind:
			obj, owned.target = &clusterv1.MachineDeployment{}, target{kindDeployment, ref.Name}
		case kindControlPlane.Kind:
			obj, owned.target = &controlplanev1.KubeadmControlPlane{}, target{kindControlPlane, ref.Name}
		default:
			owned.owner, owned.other = nil, ref.Kind+" "+ref.Name
			return owned, nil
		}
		if err := c.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name}, obj); err != nil {
			return owned, fmt.Errorf("machine %q: read its owner %s: %w", machine.Name, owned.target, err)
		}
		owned.owner = obj
		ref = metav1.GetControllerOf(obj)
		// A control plane is the Cluster's.
		if ref != nil && ref.Kind == clusterv1.ClusterKind {
			ref = nil
		}
	}
	return owned, nil
}

// changeFlags are those of commands that change machines.
type changeFlags struct {
	dryRun  string
	yes     bool
	output  string
	timeout time.Duration
}

func (f *changeFlags) addDryRun(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dryRun, "dry-run", dryRunNone, `Must be "none", "server", or "client". With client only say what would be done; with server let the server check it.`)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryRunClient
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunClient, dryRunServer}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *changeFlags) addYes(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "Do not ask.")
}

func (f *changeFlags) addOutput(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.output, "output", "o", "", `Output format. "name" prints the names of the machines alone.`)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"name"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *changeFlags) validate() error {
	switch {
	case f.dryRun != dryRunNone && f.dryRun != dryRunClient && f.dryRun != dryRunServer:
		return cli.UsageErrorf("--dry-run must be none, server or client, not %q", f.dryRun)
	case f.output != "" && f.output != "name":
		return cli.UsageErrorf("--output must be name, not %q", f.output)
	case f.timeout < 0:
		return cli.UsageErrorf("--timeout must not be negative")
	}
	return nil
}

// mode is what follows a line about a change that is not made.
func (f *changeFlags) mode() string {
	switch f.dryRun {
	case dryRunClient:
		return " (dry run)"
	case dryRunServer:
		return " (server dry run)"
	}
	return ""
}
