package graph

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unready says what a cluster still lacks to be all that was asked for; empty
// when it lacks nothing. Available alone is less: a control plane of three is
// available with its first machine.
func (g *Graph) Unready() string {
	state := g.Cluster.State()
	if state.Deleting || state.Ready != metav1.ConditionTrue {
		return withDetail("Cluster "+g.Cluster.GetName()+" is not ready", state)
	}
	owners := g.OfKind("MachineDeployment")
	if controlPlane := g.Lookup(g.Spec().Spec.ControlPlaneRef); controlPlane != nil {
		owners = append(owners, controlPlane)
	}
	var lacking []string
	for _, o := range owners {
		if text := unready(o); text != "" {
			lacking = append(lacking, text)
		}
	}
	return strings.Join(lacking, "; ")
}

func unready(o *Object) string {
	r := o.Replicas()
	if r == nil || r.Desired == nil {
		return ""
	}
	name := o.Kind.Kind + " " + o.GetName()
	switch {
	case !o.observed():
		return name + " has changed and its controller has not looked at it yet"
	case r.Ready == nil || *r.Ready != *r.Desired:
		return fmt.Sprintf("%s has %s of %d machines ready", name, orNone(r.Ready), *r.Desired)
	case r.Current != nil && *r.Current != *r.Desired:
		return fmt.Sprintf("%s has %d machines, %d too many", name, *r.Current, *r.Current-*r.Desired)
	case r.UpToDate != nil && *r.UpToDate != *r.Desired:
		return fmt.Sprintf("%s has %d of %d machines up to date", name, *r.UpToDate, *r.Desired)
	}
	return ""
}

func orNone(n *int32) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}
