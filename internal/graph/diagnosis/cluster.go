package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
)

// endpoints finds a control plane that cannot begin because nobody said where it will answer.
func endpoints(f *Facts) []Finding {
	cluster := f.Graph.Spec()
	if cluster.Spec.ControlPlaneEndpoint.Host != "" || !f.old(cluster.CreationTimestamp.Time) || !cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	provisioned := cluster.Status.Initialization.InfrastructureProvisioned
	if provisioned == nil || !*provisioned {
		return endpointOfInfrastructure(f)
	}
	return []Finding{noEndpoint(finding("EndpointUnset", layerProvider, f.Graph.Cluster, "the cluster has no control-plane endpoint, and its infrastructure gave none")).since(cluster.CreationTimestamp.Time)}
}

// endpointOfInfrastructure reads the condition by which a VSphereCluster says that it needs one.
func endpointOfInfrastructure(f *Facts) []Finding {
	infrastructure := f.Graph.Lookup(f.Graph.Spec().Spec.InfrastructureRef)
	if infrastructure == nil {
		if ref := f.Graph.Spec().Spec.InfrastructureRef; ref.IsDefined() {
			trouble := finding("InfrastructureMissing", layerController, f.Graph.Cluster, fmt.Sprintf("%s/%s, which the cluster names, does not exist", ref.Kind, ref.Name)).since(f.Graph.Cluster.GetCreationTimestamp().Time)
			trouble.Remedy, trouble.wide = "Create it, or correct spec.infrastructureRef of the Cluster.", true
			return []Finding{trouble}
		}
		return nil
	}
	for _, c := range infrastructure.Conditions() {
		if c.Type == "ControlPlaneEndpointSet" && c.Status == metav1.ConditionFalse {
			return []Finding{noEndpoint(finding("EndpointUnset", layerProvider, infrastructure, c.Message)).since(c.LastTransitionTime.Time)}
		}
	}
	return nil
}

func noEndpoint(trouble Finding) Finding {
	trouble.Remedy, trouble.wide = "Set spec.controlPlaneEndpoint: a virtual address that is free, or a load balancer's.", true
	return trouble
}

// upgrades finds upgrades of the cluster that do not go on.
func upgrades(f *Facts) []Finding {
	var found []Finding
	for i := range f.Upgrades {
		u := &f.Upgrades[i]
		for _, c := range u.Status.Conditions {
			held, ok := heldUpgrades[c.Reason]
			if !ok || c.Status == metav1.ConditionTrue {
				continue
			}
			trouble := Finding{
				Code: held.code, layer: layerPolicy, Cause: c.Message, Remedy: strings.ReplaceAll(held.remedy, "CLUSTER", f.Graph.Cluster.GetName()),
				Object: Reference{Kind: "ClusterUpgrade", Namespace: u.Namespace, Name: u.Name}, of: f.Graph.Cluster,
			}
			found = append(found, trouble.since(c.LastTransitionTime.Time).because("condition "+c.Type+" of ClusterUpgrade/"+u.Name, string(c.Status)+" ("+c.Reason+")"))
			break
		}
	}
	return found
}

var heldUpgrades = map[string]struct{ code, remedy string }{
	lifecyclev1.BlockedReason:        {code: "UpgradeBlocked", remedy: "kubectl machines upgrade CLUSTER --check shows each finding and its remedy; then kubectl machines upgrade resume CLUSTER."},
	lifecyclev1.StepFailedReason:     {code: "UpgradeStepFailed", remedy: "Mend the cause, then kubectl machines upgrade resume CLUSTER; or abort it."},
	lifecyclev1.PausedReason:         {code: "UpgradePaused", remedy: "kubectl machines upgrade resume CLUSTER"},
	lifecyclev1.ApprovalNeededReason: {code: "UpgradeWaitsForApproval", remedy: "kubectl machines upgrade resume CLUSTER"},
	lifecyclev1.OutsideWindowReason:  {code: "UpgradeOutsideWindow", remedy: "It goes on by itself when the window opens."},
}

// releases finds add-ons that are not as they should be.
func releases(f *Facts) []Finding {
	var found []Finding
	for i := range f.Releases {
		r := &f.Releases[i]
		for _, c := range r.Status.Conditions {
			if c.Type != clusterv1.ReadyCondition || c.Status != metav1.ConditionFalse ||
				slices.Contains([]string{addonsv1.ProgressingReason, addonsv1.PruningReason, addonsv1.NotAppliedYetReason, addonsv1.UninstallingReason}, c.Reason) && !f.old(c.LastTransitionTime.Time) {
				continue
			}
			code := "AddOnFailing"
			switch c.Reason {
			case addonsv1.ConflictReason:
				code = "AddOnConflict"
			case addonsv1.PausedReason:
				code = "AddOnPaused"
			}
			trouble := Finding{Code: code, layer: layerAddOn, Cause: c.Message, Object: Reference{Kind: "AddonRelease", Namespace: r.Namespace, Name: r.Name}, of: f.Graph.Cluster}
			found = append(found, trouble.since(c.LastTransitionTime.Time).because("condition "+c.Type+" of AddonRelease/"+r.Name, string(c.Status)+" ("+c.Reason+")"))
		}
	}
	return found
}
