package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/millwright-dev/millwright/internal/cli"
)

// etcdDefragOptions give back the space that etcd does not use.
type etcdDefragOptions struct {
	etcdTarget
	changeFlags
}

func newEtcdDefragCommand(o *cli.Options) *cobra.Command {
	defrag := &etcdDefragOptions{etcdTarget: etcdTarget{Options: o}}
	cmd := &cobra.Command{
		Use:   "defrag CLUSTER",
		Short: "Give back the space that the etcd of a cluster does not use",
		Long: templates.LongDesc(`
			Give back the space that the databases of a cluster's etcd members do not use.

			A member does not answer while it is at it. So they go one at a time, the leader last, and it stops when
			one is not well. The only member of a cluster takes its API server with it for that time.`),
		Example: templates.Examples(`
			# See how much that would give back
			{{kubectl}} etcd defrag prod --dry-run

			# Do it
			{{kubectl}} etcd defrag prod`),
		Args:              cli.OneArg("CLUSTER"),
		ValidArgsFunction: o.CompleteFirst(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := defrag.validate(); err != nil {
				return err
			}
			if defrag.dryRun == dryRunServer {
				return cli.UsageErrorf("--dry-run=server is not for etcd, which has no such thing: use --dry-run=client")
			}
			if err := defrag.complete(cmd.Context(), args[0]); err != nil {
				return err
			}
			return defrag.run(cmd.Context())
		},
	}
	cmd.Flags().DurationVar(&defrag.timeout, "timeout", 5*time.Minute, "How long each member may take; 0 is for ever.")
	defrag.addDryRun(cmd)
	return cmd
}

func (o *etcdDefragOptions) run(ctx context.Context) error {
	members, err := o.members(ctx)
	if err != nil {
		return err
	}
	order, err := defragOrder(members)
	if err != nil {
		return fmt.Errorf("cluster %q: %w: see %s etcd status %s", o.cluster.Name, err, o.Typed(), o.cluster.Name)
	}
	for i, m := range order {
		if o.dryRun == dryRunClient {
			fmt.Fprintf(o.Out, "etcd member %s would give back up to %s%s\n", m.node, bytesText(m.report.Size-m.report.InUse), o.mode())
			continue
		}
		if i > 0 {
			if err := o.stillWell(ctx); err != nil {
				return fmt.Errorf("cluster %q: stopped after %d of %d members: %w", o.cluster.Name, i, len(order), err)
			}
		}
		if err := o.defragment(ctx, m); err != nil {
			return fmt.Errorf("cluster %q: stopped after %d of %d members: %w", o.cluster.Name, i, len(order), err)
		}
	}
	if o.dryRun == dryRunNone && hasNoSpace(members) {
		fmt.Fprintf(o.ErrOut, "The alarm NOSPACE stays until somebody disarms it: etcdctl alarm disarm\n")
	}
	return nil
}

// stillWell looks at all members anew.
func (o *etcdDefragOptions) stillWell(ctx context.Context) error {
	members, err := o.members(ctx)
	if err != nil {
		return err
	}
	if problem := unwell(members); problem != "" {
		return errors.New(problem)
	}
	return nil
}

func (o *etcdDefragOptions) defragment(ctx context.Context, m etcdMember) error {
	fmt.Fprintf(o.ErrOut, "defragmenting etcd member %s, %s\n", m.node, bytesText(m.report.Size))
	working := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		working, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	member, err := o.dial(m.node)
	if err != nil {
		return err
	}
	defer member.Close()
	if err := member.Defragment(working); err != nil {
		return err
	}
	after, err := o.ask(ctx, m.node)
	if err != nil {
		return fmt.Errorf("look at it afterwards: %w", err)
	}
	fmt.Fprintf(o.Out, "etcd member %s defragmented, from %s to %s\n", m.node, bytesText(m.report.Size), bytesText(after.Size))
	return nil
}

// hasNoSpace tells whether a member has run out of its quota.
func hasNoSpace(members []etcdMember) bool {
	for _, m := range members {
		if strings.Contains(strings.Join(m.report.Errors, " "), "NOSPACE") {
			return true
		}
	}
	return false
}
