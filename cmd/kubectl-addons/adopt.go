package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// installers are the field managers of what people install add-ons with: kubectl
// create and apply in both forms, and Helm.
var installers = []string{"kubectl-create", "kubectl-client-side-apply", "kubectl", "helm", "Helm"}

// adoptOptions take over what somebody else installed: an install whose version
// is the one that runs.
type adoptOptions struct {
	installOptions
	yes bool
}

func newAdoptCommand(o *cli.Options) *cobra.Command {
	adopt := &adoptOptions{installOptions: installOptions{Options: o}}
	cmd := &cobra.Command{
		Use:   "adopt NAME",
		Short: "Take over an add-on that was installed by other means",
		Long: templates.LongDesc(`
			Take over an add-on that kubeadm, kubectl or Helm installed, in the version that runs, which its images
			tell. The objects stay the same ones; what the installer owns of them becomes the add-on's, and what
			it had beyond the bundle goes. Fields that other managers own are conflicts, as with an install.

			Where pods would restart it asks first. Nothing else knows of the take-over: a Helm release,
			for one, has to be forgotten with "helm" by hand.`),
		Example: templates.Examples(`
			# See what taking over a Calico that was applied with kubectl would change
			{{kubectl}} adopt calico --dry-run=server
			{{kubectl}} diff calico --take-from kubectl-client-side-apply

			# Take it over, with the parameters that it was installed with
			{{kubectl}} adopt calico --set mtu=1400`),
		Args:              cli.OneArg("NAME"),
		ValidArgsFunction: completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := adopt.complete(cmd.Context(), args); err != nil {
				return err
			}
			return adopt.run(cmd.Context())
		},
	}
	adopt.target.addFlags(cmd, o)
	adopt.bundle.addFlags(cmd)
	adopt.facts.addFlags(cmd)
	adopt.addApplyFlags(cmd)
	cmd.Flags().BoolVarP(&adopt.yes, "yes", "y", false, "Do not ask when pods restart.")
	return cmd
}

func (o *adoptOptions) run(ctx context.Context) error {
	target, err := o.target.connect(ctx, o.Options)
	if err != nil {
		return err
	}
	wanted := &o.wanted[0]
	record, err := o.engine(target).Record(ctx, wanted.addon.Name)
	var absent *apply.NotInstalledError
	switch {
	case err == nil:
		return fmt.Errorf("%s %s on %s is managed already: see %s status %s", record.Name, record.Version, target.name, o.Typed(), record.Name)
	case !errors.As(err, &absent):
		return err
	}
	if wanted.version == autoVersion {
		images, err := runningImages(ctx, target.client)
		if err != nil {
			return err
		}
		if running := runningVersion(wanted.addon, images); running != nil {
			wanted.version = running.Version
			fmt.Fprintf(o.ErrOut, "%s %s runs on %s.\n", wanted.addon.Name, running.Version, target.name)
		} else {
			fmt.Fprintf(o.ErrOut, "note: no version of the catalogue has the images that run on %s: the one that fits is taken\n", target.name)
		}
	}
	o.takeFrom = append(o.takeFrom, installers...)
	o.confirm = o.confirmRestarts
	return o.installOn(ctx, target)
}

// confirmRestarts asks where the plan restarts pods.
func (o *adoptOptions) confirmRestarts(target *target, plan *apply.Plan) error {
	var restarts []string
	for _, change := range plan.Changes {
		if change.Restarts() {
			restarts = append(restarts, change.ID.Full())
		}
	}
	if len(restarts) == 0 {
		return nil
	}
	return o.Confirm(o.yes, fmt.Sprintf("adopting %s on %s restarts the pods of %s", plan.Set.Name, target.name, strings.Join(restarts, ", ")))
}

// runningImages lists the images of all Deployments and DaemonSets of a cluster.
func runningImages(ctx context.Context, c client.Client) ([]string, error) {
	var images []string
	add := func(spec corev1.PodSpec) {
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			images = append(images, container.Image)
		}
	}
	var deployments appsv1.DeploymentList
	if err := c.List(ctx, &deployments); err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}
	for _, deployment := range deployments.Items {
		add(deployment.Spec.Template.Spec)
	}
	var daemonSets appsv1.DaemonSetList
	if err := c.List(ctx, &daemonSets); err != nil {
		return nil, fmt.Errorf("list DaemonSets: %w", err)
	}
	for _, daemonSet := range daemonSets.Items {
		add(daemonSet.Spec.Template.Spec)
	}
	return images, nil
}

// runningVersion is the version all of whose images run; nil when there is none.
func runningVersion(addon *bundle.Addon, running []string) *bundle.Version {
	var names []string
	for _, image := range running {
		names = append(names, imageName(image))
	}
	for i := range addon.Versions {
		v := &addon.Versions[i]
		missing := slices.ContainsFunc(v.Images, func(image string) bool { return !slices.Contains(names, imageName(image)) })
		if len(v.Images) > 0 && !missing {
			return v
		}
	}
	return nil
}

// imageName is an image without its registry, which may be a mirror, and without a digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	return image[strings.LastIndex(image, "/")+1:]
}
