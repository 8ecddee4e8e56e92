package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// fleetFlags choose several clusters, and how they are upgraded one after the other.
type fleetFlags struct {
	selector    string
	concurrent  int
	maxFailures int
}

func (f *fleetFlags) validate() error {
	if _, err := labels.Parse(f.selector); err != nil {
		return cli.UsageErrorf("--selector: %w", err)
	}
	switch {
	case f.concurrent < 1:
		return cli.UsageErrorf("--max-concurrent must be 1 or more, not %d", f.concurrent)
	case f.maxFailures < 1:
		return cli.UsageErrorf("--max-failures must be 1 or more, not %d", f.maxFailures)
	}
	return nil
}

// fleet finds the clusters that the selector selects, by name.
func (o *upgradeOptions) fleet(ctx context.Context) ([]clusterv1.Cluster, error) {
	namespace, err := o.Namespace()
	if err != nil {
		return nil, err
	}
	if o.client, err = o.ClusterAPI(ctx); err != nil {
		return nil, err
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, err
	}
	list := &clusterv1.ClusterList{}
	if err := o.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list the clusters of namespace %q: %w", namespace, err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("no cluster in namespace %q has labels that match %q", namespace, o.selector)
	}
	slices.SortFunc(list.Items, func(a, b clusterv1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// runFleet upgrades the clusters of a selector. Plans and dry runs are shown for each.
func (o *upgradeOptions) runFleet(ctx context.Context) error {
	clusters, err := o.fleet(ctx)
	if err != nil {
		return err
	}
	if !o.plan && !o.check && o.dryRun == dryRunNone {
		return o.driveFleet(ctx, clusters)
	}
	blocked := false
	for i := range clusters {
		one := o.of(&clusters[i])
		if o.output == "" {
			fmt.Fprintf(o.Out, "# %s\n", clusters[i].Name)
		} else if o.output == "yaml" {
			fmt.Fprintln(o.Out, "---")
		}
		var coded *cli.Error
		err := one.run(ctx)
		if errors.As(err, &coded) && coded.Err == nil {
			blocked = true
		} else if err != nil {
			return err
		}
	}
	if blocked {
		return &cli.Error{Code: cli.ExitFailed}
	}
	return nil
}

// of are the options for one of the clusters.
func (o *upgradeOptions) of(cluster *clusterv1.Cluster) *upgradeOptions {
	one := *o
	one.cluster = cluster
	return &one
}

// member is a cluster of a fleet that is upgraded.
type member struct {
	name string
	// upgrade is nil where none to the version was begun.
	upgrade *lifecyclev1.ClusterUpgrade
	// refused says why none could be begun.
	refused string
}

func (m member) completed() bool {
	return m.upgrade != nil && m.upgrade.Status.Phase == lifecyclev1.UpgradeCompleted
}

// failed tells whether a person has to look. An upgrade that is paused waits for one too, but it was told to.
func (m member) failed() bool {
	if m.upgrade == nil {
		return m.refused != ""
	}
	switch m.upgrade.Status.Phase {
	case lifecyclev1.UpgradeFailed, lifecyclev1.UpgradeBlocked, lifecyclev1.UpgradeAborting, lifecyclev1.UpgradeAborted:
		return true
	}
	return false
}

func (m member) line() string {
	switch {
	case m.upgrade != nil:
		return upgradeLine(m.upgrade)
	case m.refused != "":
		return m.name + ": " + m.refused
	}
	return m.name + ": not begun"
}

// nextOfFleet says which clusters are to be begun, and whether there is nothing more to wait for. It is pure. A failed
// upgrade holds no place; it goes on by itself when what failed is mended.
func nextOfFleet(members []member, concurrent, maxFailures int) (begin []string, done bool) {
	running, failed := 0, 0
	var waiting []string
	for _, m := range members {
		switch {
		case m.completed():
		case m.failed():
			failed++
		case m.upgrade != nil:
			running++
		default:
			waiting = append(waiting, m.name)
		}
	}
	if failed >= maxFailures {
		return nil, running == 0
	}
	begin = waiting[:min(len(waiting), max(0, concurrent-running))]
	return begin, running == 0 && len(waiting) == 0
}

// driveFleet begins one upgrade after the other and watches them. The clusters that were begun go on when the command
// ends; the same command again goes on with the others.
func (o *upgradeOptions) driveFleet(ctx context.Context, clusters []clusterv1.Cluster) error {
	d := &fleetDrive{options: o, clusters: clusters, refused: map[string]string{}, tellers: map[string]*stepTeller{}}
	follower := graph.NewFollower(o.client)
	source := graph.Source{List: &lifecyclev1.ClusterUpgradeList{}, Options: []client.ListOption{client.InNamespace(clusters[0].Namespace)}}
	var last []member
	err := cli.Wait(ctx, o.timeout, follower.Changed(), cli.NewProgress(o.Out), tellLoss(follower, func() (cli.State, error) {
		if err := follower.Follow(ctx, source); err != nil {
			return cli.State{}, err
		}
		objects, err := follower.Objects()
		if err != nil {
			return cli.State{}, err
		}
		var done bool
		if last, done, err = d.step(ctx, objects); err != nil {
			return cli.State{}, err
		}
		return d.state(last, done, time.Now()), nil
	}))
	if errors.Is(err, context.Canceled) {
		return &cli.Error{Code: cli.ExitInterrupted, Err: errors.New("interrupted: the upgrades that were begun go on by themselves; the same command again goes on with the others")}
	}
	if err != nil {
		return err
	}
	var failed []string
	for _, m := range last {
		if m.failed() {
			failed = append(failed, m.line())
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d clusters failed, and no further one is begun once %d have; mend them and give the same command again:\n%s",
			len(failed), len(last), o.maxFailures, strings.Join(failed, "\n"))
	}
	return nil
}

type fleetDrive struct {
	options  *upgradeOptions
	clusters []clusterv1.Cluster
	refused  map[string]string
	// begun are those that were just made: the watch may not have told of them yet.
	begun   map[string]*lifecyclev1.ClusterUpgrade
	tellers map[string]*stepTeller
}

// step begins what may be begun, and returns where the clusters stand and whether all is over.
func (d *fleetDrive) step(ctx context.Context, objects []client.Object) ([]member, bool, error) {
	members := d.members(objects)
	begin, done := nextOfFleet(members, d.options.concurrent, d.options.maxFailures)
	for _, name := range begin {
		i := slices.IndexFunc(d.clusters, func(c clusterv1.Cluster) bool { return c.Name == name })
		one := d.options.of(&d.clusters[i])
		quiet := *one.Options
		// The view tells it.
		quiet.Out = io.Discard
		one.Options = &quiet
		wanted := one.object()
		if err := one.write(ctx, wanted); err != nil {
			if ctx.Err() != nil {
				return nil, false, err
			}
			d.refused[name] = err.Error()
			continue
		}
		if d.begun == nil {
			d.begun = map[string]*lifecyclev1.ClusterUpgrade{}
		}
		d.begun[name] = wanted
	}
	if len(begin) > 0 {
		members = d.members(objects)
		_, done = nextOfFleet(members, d.options.concurrent, d.options.maxFailures)
	}
	return members, done, nil
}

// members finds the upgrade to the version of each cluster.
func (d *fleetDrive) members(objects []client.Object) []member {
	var members []member
	for i := range d.clusters {
		cluster := &d.clusters[i]
		m := member{name: cluster.Name, refused: d.refused[cluster.Name], upgrade: d.begun[cluster.Name]}
		name := d.options.of(cluster).object().Name
		for _, obj := range objects {
			if u, ok := obj.(*lifecyclev1.ClusterUpgrade); ok && u.Name == name && u.DeletionTimestamp.IsZero() && (m.upgrade == nil || m.upgrade.UID == u.UID) && relevant(u, m.upgrade) {
				m.upgrade = u
			}
		}
		members = append(members, m)
	}
	return members
}

// relevant leaves out what an earlier command left aborted: it is begun anew.
func relevant(u, begun *lifecyclev1.ClusterUpgrade) bool {
	return begun != nil || u.Status.Phase != lifecyclev1.UpgradeAborted
}

// state is what somebody sees who waits: a line with a bar for each cluster.
func (d *fleetDrive) state(members []member, done bool, now time.Time) cli.State {
	state := cli.State{Done: done}
	var waiting []string
	width := 0
	for _, m := range members {
		width = max(width, len(m.name))
	}
	for _, m := range members {
		if !m.completed() {
			waiting = append(waiting, m.line())
		}
		var machines, replaced int32
		if m.upgrade != nil {
			for _, step := range m.upgrade.Status.Steps {
				machines, replaced = machines+step.Machines, replaced+step.Done
			}
			if d.tellers[m.name] == nil {
				d.tellers[m.name] = &stepTeller{}
			}
			state.View.Changes = append(state.View.Changes, d.tellers[m.name].tell(m.upgrade, now)...)
			state.View.Changes = append(state.View.Changes, d.news(m)...)
		}
		_, what, _ := strings.Cut(m.line(), ": ")
		state.View.Screen = append(state.View.Screen, fmt.Sprintf("%-*s  %s %d/%d  %s", width, m.name, bar(replaced, machines), replaced, machines, what))
	}
	state.Missing = strings.Join(waiting, "; ")
	return state
}

// news tells that a cluster came into another phase.
func (d *fleetDrive) news(m member) []string {
	teller := d.tellers[m.name]
	phase := lifecyclev1.StepState(m.upgrade.Status.Phase)
	if phase == "" || teller.told[""] == phase {
		return nil
	}
	teller.told[""] = phase
	return []string{m.line()}
}
