package daemon

import (
	"context"
	"os"

	"github.com/millwright-dev/millwright/sandbox/internal/address"
	"github.com/millwright-dev/millwright/sandbox/internal/build"
	"github.com/millwright-dev/millwright/sandbox/internal/guests"
	"github.com/millwright-dev/millwright/sandbox/internal/instant"
	"github.com/millwright-dev/millwright/sandbox/internal/management"
)

// startWorkload starts the API server that the machines of instant guests
// share. No controller runs there: nothing but Nodes and tokens will be in it.
func (d *daemon) startWorkload(ctx context.Context, binaries build.Binaries) (guests.Nodes, error) {
	var nodes guests.Nodes
	err := d.step(ctx, "workload server", func(ctx context.Context) (string, error) {
		host, err := address.TakeEndpoint(ctx, d.Dir.Endpoints(), d.block)
		if err != nil {
			return "", err
		}
		cluster := management.Cluster{
			Host: host, Binaries: binaries, Prefix: "workload-", PKI: d.Dir.Path("workload", "pki"), Etcd: d.Dir.Path("workload", "etcd"),
		}
		if d.Audit {
			cluster.Audit = d.Dir.Log("workload-audit")
		}
		for _, dir := range []string{cluster.PKI, cluster.Etcd} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return "", err
			}
		}
		if err := cluster.Prepare(d.Dir.WorkloadKubeconfig()); err != nil {
			return "", err
		}
		for _, p := range cluster.Server() {
			if err := d.superviseProgram(p); err != nil {
				return "", err
			}
		}
		config, err := management.Config(d.Dir.WorkloadKubeconfig())
		if err != nil {
			return "", err
		}
		if err := management.WaitReady(ctx, config); err != nil {
			return "", err
		}
		nodes, err = instant.Connect(config)
		return cluster.URL(), err
	})
	return nodes, err
}
