package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/internal/addon"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// factFlags are the facts of a cluster as the user gives them: each goes before
// what the cluster tells.
type factFlags struct {
	facts    bundle.Facts
	endpoint string
}

func (f *factFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.facts.Name, "cluster-name", "", "Name of the cluster, instead of what the cluster tells.")
	flags.StringVar(&f.facts.KubernetesVersion, "kubernetes-version", "", "Kubernetes version, instead of that of the cluster's API server.")
	flags.StringVar(&f.facts.PodCIDR, "pod-cidr", "", "Range of pod addresses, instead of what the cluster tells.")
	flags.StringVar(&f.facts.ServiceCIDR, "service-cidr", "", "Range of Service addresses, instead of what the cluster tells.")
	flags.StringVar(&f.facts.DNSIP, "dns-ip", "", "Address of the DNS Service, instead of what the cluster tells.")
	flags.StringVar(&f.facts.Domain, "cluster-domain", "", "DNS domain of Services, instead of what the cluster tells.")
	flags.StringVar(&f.endpoint, "control-plane-endpoint", "", "HOST:PORT at which nodes reach the API server, instead of what the cluster tells.")
}

// complete reads what cannot stay text.
func (f *factFlags) complete() error {
	if given := f.facts.KubernetesVersion; given != "" {
		version, err := semver.NewVersion(given)
		if err != nil {
			return cli.UsageErrorf("--kubernetes-version %q: want a version such as v1.37.2", given)
		}
		f.facts.KubernetesVersion = "v" + version.String()
	}
	if f.endpoint == "" {
		return nil
	}
	var err error
	if f.facts.ControlPlaneHost, f.facts.ControlPlanePort, err = net.SplitHostPort(f.endpoint); err != nil {
		return cli.UsageErrorf("--control-plane-endpoint %q: want HOST:PORT", f.endpoint)
	}
	f.facts.ControlPlaneHost = addon.Bracketed(f.facts.ControlPlaneHost)
	return nil
}

// over lays the given facts over those of a cluster.
func (f *factFlags) over(facts bundle.Facts) bundle.Facts {
	given := f.facts
	for value, into := range map[*string]*string{
		&given.Name: &facts.Name, &given.KubernetesVersion: &facts.KubernetesVersion,
		&given.PodCIDR: &facts.PodCIDR, &given.ServiceCIDR: &facts.ServiceCIDR,
		&given.DNSIP: &facts.DNSIP, &given.Domain: &facts.Domain,
		&given.ControlPlaneHost: &facts.ControlPlaneHost, &given.ControlPlanePort: &facts.ControlPlanePort,
	} {
		if *value != "" {
			*into = *value
		}
	}
	return addon.WithDefaults(facts)
}

// factFlag is the flag that gives a fact, for errors.
var factFlag = map[string]string{
	"cluster.name":              "--cluster-name",
	"cluster.podCIDR":           "--pod-cidr",
	"cluster.serviceCIDR":       "--service-cidr",
	"cluster.dnsIP":             "--dns-ip or --service-cidr",
	"cluster.domain":            "--cluster-domain",
	"cluster.kubernetesVersion": "--kubernetes-version",
	"cluster.controlPlaneHost":  "--control-plane-endpoint",
	"cluster.controlPlanePort":  "--control-plane-endpoint",
}

// explainFact adds to a missing fact the flag that gives it.
func explainFact(err error) error {
	var unknown *bundle.UnknownFactError
	if errors.As(err, &unknown) && factFlag[unknown.Fact] != "" {
		return fmt.Errorf("%w: give it with %s", err, factFlag[unknown.Fact])
	}
	return err
}
