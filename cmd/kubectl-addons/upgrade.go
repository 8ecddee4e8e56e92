package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// upgradeOptions bring installed add-ons to newer versions: an install that keeps
// the recorded parameters.
type upgradeOptions struct {
	installOptions
	all bool
}

func newUpgradeCommand(o *cli.Options) *cobra.Command {
	upgrade := &upgradeOptions{installOptions: installOptions{Options: o}}
	cmd := &cobra.Command{
		Use:   "upgrade NAME... | --all",
		Short: "Bring installed add-ons to newer versions",
		Long: templates.LongDesc(`
			Bring installed add-ons to the newest version that is stated for the cluster's Kubernetes version
			and can be reached from theirs, with the parameters that they have. --set and --values change
			some of these.

			An add-on that is at that version already stays as it is: "{{kubectl}} install" puts objects right.
			An upgrade never goes back; "{{kubectl}} rollback" does.`),
		Example: templates.Examples(`
			# See what upgrading everything would change
			{{kubectl}} upgrade --all --cluster prod --dry-run=server

			# Upgrade one add-on to a certain version, and wait until it is healthy
			{{kubectl}} upgrade calico --to 3.32.1 --wait`),
		ValidArgsFunction: completeNames,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case upgrade.all && len(args) > 0:
				return fmt.Errorf("--all takes no name")
			case !upgrade.all && len(args) == 0:
				return fmt.Errorf("NAME or --all is missing")
			case upgrade.all && upgrade.bundle.version != autoVersion:
				return fmt.Errorf("--to belongs to one add-on, not to --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := upgrade.complete(cmd.Context(), args); err != nil {
				return err
			}
			return upgrade.run(cmd.Context(), args)
		},
	}
	upgrade.target.addFlags(cmd, o)
	cmd.Flags().BoolVar(&upgrade.all, "all", false, "Upgrade every installed add-on.")
	cmd.Flags().StringVar(&upgrade.bundle.version, "to", autoVersion, "Version to upgrade to; auto is the newest that is stated for the cluster and in reach.")
	_ = cmd.RegisterFlagCompletionFunc("to", completeVersions)
	upgrade.bundle.addParameterFlags(cmd)
	upgrade.bundle.catalogueFlags.addFlags(cmd)
	upgrade.bundle.addMirrorFlag(cmd)
	upgrade.facts.addFlags(cmd)
	upgrade.addApplyFlags(cmd)
	return cmd
}

func (o *upgradeOptions) run(ctx context.Context, names []string) error {
	target, err := o.target.connect(ctx, o.Options)
	if err != nil {
		return err
	}
	records, err := o.engine(target).Records(ctx)
	if err != nil {
		return err
	}
	catalogue, err := o.bundle.load(ctx)
	if err != nil {
		return err
	}
	if !o.all {
		if records, err = recordsOf(records, names); err != nil {
			return err
		}
	}
	kubernetes := orElse(o.facts.facts.KubernetesVersion, target.version)
	o.wanted = nil
	for _, record := range records {
		addon, err := catalogue.Addon(record.Name)
		if err != nil {
			if o.all {
				fmt.Fprintf(o.ErrOut, "warning: %s %s stays: the catalogue does not have it\n", record.Name, record.Version)
				continue
			}
			return err
		}
		wanted, err := o.next(addon, record, kubernetes)
		if err != nil {
			return err
		}
		if wanted != nil {
			o.wanted = append(o.wanted, *wanted)
		}
	}
	if len(o.wanted) == 0 {
		fmt.Fprintf(o.ErrOut, "Nothing to upgrade on %s.\n", target.name)
		return nil
	}
	return o.installOn(ctx, target)
}

// recordsOf picks the records of the names, in their order.
func recordsOf(records []*apply.Parent, names []string) ([]*apply.Parent, error) {
	var picked []*apply.Parent
	for _, name := range names {
		i := slices.IndexFunc(records, func(r *apply.Parent) bool { return r.Name == name })
		if i < 0 {
			return nil, &apply.NotInstalledError{Set: name}
		}
		picked = append(picked, records[i])
	}
	return picked, nil
}

// next is what an installed add-on is upgraded to; nil when it stays.
func (o *upgradeOptions) next(addon *bundle.Addon, record *apply.Parent, kubernetes string) (*request, error) {
	var version *bundle.Version
	if o.bundle.version != autoVersion {
		named, err := addon.Version(o.bundle.version)
		if err != nil {
			return nil, err
		}
		older, err := named.OlderThan(record.Version)
		if err != nil {
			return nil, err
		}
		if older {
			return nil, fmt.Errorf("%s %s is older than %s, which is installed: go back with %s rollback %s, or install it", addon.Name, named.Version, record.Version, o.Typed(), addon.Name)
		}
		version = named
	} else {
		next, beyond, err := bundle.Next(addon, record.Version, kubernetes)
		if err != nil {
			return nil, err
		}
		if beyond != nil {
			fmt.Fprintf(o.ErrOut, "note: %s %s is reached from %s only: upgrade again afterwards\n", addon.Name, beyond.Version, beyond.UpgradesFrom)
		}
		version = next
	}
	values := o.kept(addon, version, record)
	if version == nil || version.Version == record.Version && len(o.bundle.values) == 0 && o.bundle.custom.Empty() {
		fmt.Fprintf(o.ErrOut, "%s stays at %s.\n", addon.Name, record.Version)
		return nil, nil
	}
	custom := o.bundle.custom
	if custom.Empty() {
		var err error
		if custom, err = recordedCustomization(addon.Name, record.Customization); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(o.ErrOut, "%s goes from %s to %s.\n", addon.Name, record.Version, version.Version)
	return &request{addon, version.Version, values, custom}, nil
}

// kept are the recorded parameters that the version still has, with those that are given over them.
func (o *upgradeOptions) kept(addon *bundle.Addon, version *bundle.Version, record *apply.Parent) map[string]any {
	values := map[string]any{}
	if version == nil {
		return values
	}
	known := addon.ParameterNames(version)
	for _, name := range sortedNames(record.Parameters) {
		if !slices.Contains(known, name) {
			fmt.Fprintf(o.ErrOut, "warning: %s %s has no parameter %s any more: %v is dropped\n", addon.Name, version.Version, name, record.Parameters[name])
			continue
		}
		values[name] = record.Parameters[name]
	}
	maps.Copy(values, o.bundle.values)
	return values
}
