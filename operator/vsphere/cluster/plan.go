package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
)

// snapshot is what a decision about a VSphereCluster needs to know.
type snapshot struct {
	cluster *infrav1.VSphereCluster
	// loginErr is why there is no session with vCenter; nil when there is one.
	loginErr error
	// zones are all VSphereDeploymentZones.
	zones []infrav1.VSphereDeploymentZone
}

// decision is what the status is to say.
type decision struct {
	provisioned    bool
	failureDomains []clusterv1.FailureDomain
	// skippedZones are selected zones that cannot be used, with the reason.
	skippedZones []string
	// selectorErr is set when failureDomainSelector is malformed.
	selectorErr error
}

// decide is pure.
func decide(s snapshot) decision {
	var d decision
	d.failureDomains, d.skippedZones, d.selectorErr = failureDomains(s)
	if d.selectorErr != nil {
		// A selector that cannot be read says nothing about the zones in use: machines stay where they are.
		d.failureDomains = s.cluster.Status.FailureDomains
	}
	d.provisioned = s.loginErr == nil && s.cluster.Spec.ControlPlaneEndpoint.IsSet() && d.selectorErr == nil
	return d
}

// failureDomains selects zones. A zone of another vCenter cannot be used: a cluster has one.
func failureDomains(s snapshot) (domains []clusterv1.FailureDomain, skipped []string, err error) {
	if s.cluster.Spec.FailureDomainSelector == nil {
		return nil, nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s.cluster.Spec.FailureDomainSelector)
	if err != nil {
		return nil, nil, fmt.Errorf("failureDomainSelector is invalid: %w", err)
	}
	for _, zone := range s.zones {
		if !selector.Matches(labels.Set(zone.Labels)) {
			continue
		}
		switch {
		case zone.Spec.Server != "" && !strings.EqualFold(zone.Spec.Server, s.cluster.Spec.Server):
			skipped = append(skipped, fmt.Sprintf("VSphereDeploymentZone %q is of vCenter %q", zone.Name, zone.Spec.Server))
		case zone.Status.Ready != nil && !*zone.Status.Ready:
			skipped = append(skipped, fmt.Sprintf("VSphereDeploymentZone %q is not ready", zone.Name))
		default:
			controlPlane := zone.Spec.ControlPlane == nil || *zone.Spec.ControlPlane
			domains = append(domains, clusterv1.FailureDomain{Name: zone.Name, ControlPlane: &controlPlane})
		}
	}
	slices.SortFunc(domains, func(a, b clusterv1.FailureDomain) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(skipped)
	return domains, skipped, nil
}
