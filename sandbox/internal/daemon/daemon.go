package daemon

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/millwright-dev/millwright/sandbox/internal/address"
	"github.com/millwright-dev/millwright/sandbox/internal/build"
	"github.com/millwright-dev/millwright/sandbox/internal/endpoint"
	"github.com/millwright-dev/millwright/sandbox/internal/guests"
	"github.com/millwright-dev/millwright/sandbox/internal/management"
	"github.com/millwright-dev/millwright/sandbox/internal/process"
	"github.com/millwright-dev/millwright/sandbox/internal/state"
	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

// TemplateVersions are the Kubernetes versions that vCenter has a VM template of.
var TemplateVersions = []string{build.DefaultVersion, "v1.36.3", "v1.35.4"}

// startTimeout bounds how long a part may take to come up: seconds when the
// machine is idle, more while it builds something.
const startTimeout = 3 * time.Minute

// Options say what to run.
type Options struct {
	Dir     state.Dir
	Builder build.Builder
	// Manifests is a folder with a kustomization.
	Manifests string
	// Operator is the operator's binary; empty runs none.
	Operator string
	// Guest replaces the guest built from source, for every version; BuiltGuest
	// is that of the default version, where it was built just now.
	Guest, BuiltGuest string
	// Instant has machines registered as Nodes of one shared API server instead
	// of running guests.
	Instant bool
	// Audit has the API servers note each request in logs/*audit.log.
	Audit bool
}

// daemon is a sandbox being brought up or running.
type daemon struct {
	Options
	store  *state.Store
	runner *process.Runner
	block  address.Block
	// stops end what was started; the last started is ended first.
	stops []func()
}

// Run brings the sandbox up, keeps it until ctx is done, and takes it down.
func Run(ctx context.Context, o Options) error {
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return err
	}
	store, err := state.NewStore(o.Dir, state.State{Daemon: self})
	if err != nil {
		return err
	}
	// The state is written to the very end, so that `down` sees what happens.
	storeCtx, stopStore := context.WithCancel(context.Background())
	var writer sync.WaitGroup
	writer.Go(func() { store.Run(storeCtx, func(err error) { log.Printf("write the state: %v", err) }) })
	defer writer.Wait()
	defer stopStore()

	d := &daemon{Options: o, store: store, runner: process.NewRunner(o.Dir.Pids())}
	defer d.stop()
	if err := d.bringUp(ctx); err != nil {
		if ctx.Err() == nil {
			store.Update(func(s *state.State) { s.Error = err.Error() })
		}
		return err
	}
	store.Update(func(s *state.State) { s.Ready = true })
	log.Print("ready")
	d.keep(ctx)
	log.Print("stopping")
	return nil
}

// keep waits until ctx is done, or somebody has removed the directory: then
// nobody could find this sandbox to stop it.
func (d *daemon) keep(ctx context.Context) {
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !d.Dir.Exists() {
				return
			}
		}
	}
}

func (d *daemon) stop() {
	for i := len(d.stops) - 1; i >= 0; i-- {
		d.stops[i]()
	}
}

// onStop has f called when the sandbox is taken down.
func (d *daemon) onStop(f func()) { d.stops = append(d.stops, f) }

// background runs f until the sandbox is taken down, and waits for its end then.
func (d *daemon) background(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	d.onStop(func() { cancel(); running.Wait() })
}

// step does one part of bringing up and records how long it took.
func (d *daemon) step(ctx context.Context, name string, do func(ctx context.Context) (note string, err error)) error {
	began := time.Now()
	d.store.SetStep(state.Step{Name: name, Started: began})
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not done after %s", startTimeout))
	defer cancel()
	note, err := do(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d.store.SetStep(state.Step{Name: name, Started: began, Took: time.Since(began), Done: true, Note: note})
	return nil
}

// bringUp starts everything. vCenter comes up while the API server does.
func (d *daemon) bringUp(ctx context.Context) error {
	block, claim, err := address.Claim()
	if err != nil {
		return err
	}
	d.block = block
	d.onStop(func() { claim.Close() })
	d.store.Update(func(s *state.State) { s.Block = block.String() })

	var server *vcenter.Server
	var vCenterErr error
	var both sync.WaitGroup
	both.Go(func() {
		vCenterErr = d.step(ctx, "vCenter", func(ctx context.Context) (note string, err error) {
			if server, err = d.startVCenter(ctx); err != nil {
				return "", err
			}
			return server.Address, nil
		})
	})
	cluster, clusterErr := d.startCluster(ctx)
	both.Wait()
	var nodes guests.Nodes
	var nodesErr error
	if d.Instant && clusterErr == nil && vCenterErr == nil {
		nodes, nodesErr = d.startWorkload(ctx, cluster.Binaries)
	}
	if server != nil {
		d.startGuests(server, nodes)
	}
	if err := errors.Join(clusterErr, vCenterErr, nodesErr); err != nil {
		return err
	}
	return d.startMillwright(ctx, cluster)
}

// startCluster starts the management cluster and waits for its API server.
func (d *daemon) startCluster(ctx context.Context) (management.Cluster, error) {
	var cluster management.Cluster
	err := d.step(ctx, "management cluster", func(ctx context.Context) (string, error) {
		binaries, err := d.Builder.Kubernetes(ctx, build.DefaultVersion)
		if err != nil {
			return "", err
		}
		cluster = management.Cluster{Host: d.block.Host(), Binaries: binaries, PKI: d.Dir.PKI(), Etcd: d.Dir.Etcd()}
		if d.Audit {
			cluster.Audit = d.Dir.Log("audit")
		}
		if err := cluster.Prepare(d.Dir.Kubeconfig()); err != nil {
			return "", err
		}
		for _, p := range cluster.Server() {
			if err := d.superviseProgram(p); err != nil {
				return "", err
			}
		}
		config, err := management.Config(d.Dir.Kubeconfig())
		if err != nil {
			return "", err
		}
		d.store.Update(func(s *state.State) { s.APIServer = cluster.URL() })
		if err := management.WaitReady(ctx, config); err != nil {
			return "", err
		}
		return cluster.URL(), d.superviseProgram(cluster.ControllerManager())
	})
	return cluster, err
}

// superviseProgram keeps a component of the management cluster running. Its
// data does not outlive it, so it need not end gracefully.
func (d *daemon) superviseProgram(p management.Program) error {
	return d.supervise(p.Name, p.Listen, time.Second, func() (process.Spec, error) { return p.Spec, nil })
}

// supervise keeps a program running, with a log of its own.
func (d *daemon) supervise(name, listen string, grace time.Duration, next func() (process.Spec, error)) error {
	console, err := os.OpenFile(d.Dir.Log(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	withLog := func() (process.Spec, error) {
		spec, err := next()
		spec.Stdout, spec.Stderr = console, console
		return spec, err
	}
	d.background(func(ctx context.Context) {
		defer console.Close()
		d.runner.Supervise(ctx, withLog, console, grace, func(s process.Status) {
			if s.LastExit != "" && !s.Running && ctx.Err() == nil {
				log.Print(s.LastExit)
			}
			d.store.SetProgram(state.Program{Name: name, Listen: listen, Status: s})
		})
	})
	return nil
}

// startGuests runs the guests of the machines that vCenter will have.
func (d *daemon) startGuests(server *vcenter.Server, nodes guests.Nodes) {
	manager := &guests.Manager{
		VCenter: server, Runner: d.runner, Dir: d.Dir, Store: d.store,
		Endpoints: &endpoint.Forwarder{Changed: func(address string, backends []string) {
			d.store.SetEndpoint(state.Endpoint{Address: address, Backends: backends})
		}},
		Nodes:          nodes,
		DefaultVersion: build.DefaultVersion,
	}
	d.background(func(ctx context.Context) {
		manager.Programs = (&programs{daemon: d, ctx: ctx}).get
		// Run ends when vCenter does.
		context.AfterFunc(ctx, server.Close)
		manager.Run(ctx, d.block.Machines())
	})
}

// startMillwright installs the manifests and runs the operator.
func (d *daemon) startMillwright(ctx context.Context, cluster management.Cluster) error {
	config, err := management.Config(d.Dir.Kubeconfig())
	if err != nil {
		return err
	}
	var manifests management.Manifests
	if err := d.step(ctx, "manifests", func(ctx context.Context) (string, error) {
		if manifests, err = management.Render(d.Manifests); err != nil {
			return "", err
		}
		note := fmt.Sprintf("%d objects", len(manifests.First)+len(manifests.Then))
		return note, management.Install(ctx, config, manifests)
	}); err != nil {
		return err
	}
	if err := d.step(ctx, "controller manager", func(ctx context.Context) (string, error) {
		return "", cluster.ControllerManager().WaitReady(ctx)
	}); err != nil || d.Operator == "" {
		return err
	}
	return d.step(ctx, "operator", func(ctx context.Context) (string, error) {
		if manifests.Operator == nil {
			return "", fmt.Errorf("%s has no Deployment to take the operator's arguments from", d.Manifests)
		}
		operator := management.Operator{Cluster: cluster, Path: d.Operator, Dir: d.Dir.Operator(), Deployment: manifests.Operator}
		if err := operator.Authorize(ctx, config); err != nil {
			return "", err
		}
		d.background(func(ctx context.Context) {
			operator.KeepAuthorized(ctx, config, func(err error) { log.Printf("renew the operator's token: %v", err) })
		})
		// In-flight reconciles get a moment to end.
		if err := d.supervise("operator", operator.Listen(), 5*time.Second, operator.Spec); err != nil {
			return "", err
		}
		return "", operator.WaitReady(ctx)
	})
}
