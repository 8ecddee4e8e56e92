package lifecycle

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// replacing returns the part of a machine template that a machine cannot take over in place: a change of it needs a
// new machine. Labels, annotations, readiness gates, timeouts, taints and minReadySeconds are left out: they are
// changed on the machines that exist.
func replacing(template clusterv1.MachineTemplateSpec) clusterv1.MachineSpec {
	return clusterv1.MachineSpec{
		ClusterName:       template.Spec.ClusterName,
		Bootstrap:         template.Spec.Bootstrap,
		InfrastructureRef: template.Spec.InfrastructureRef,
		Version:           NormalizeVersion(template.Spec.Version),
		FailureDomain:     template.Spec.FailureDomain,
	}
}

// TemplateHash is equal for templates between which no machine needs to be replaced. It is fit for names and labels.
// salt tells sets of the same template apart.
func TemplateHash(template clusterv1.MachineTemplateSpec, salt ...string) string {
	// A struct of strings and structs of strings always encodes.
	data, _ := json.Marshal(replacing(template))
	hash := fnv.New32a()
	_, _ = hash.Write(data)
	for _, s := range salt {
		_, _ = hash.Write([]byte(s))
	}
	return rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
}

// OutOfDate says, one line each, why the Machines of a set are not what their deployment asks for at a time. None means
// that new Machines can come from the set.
func OutOfDate(set *clusterv1.MachineSet, deployment *clusterv1.MachineDeployment, now time.Time) []string {
	lines := TemplateDifferences(set.Spec.Template, deployment.Spec.Template)
	if after := deployment.Spec.Rollout.After.Time; RolloutDue(deployment, now) && madeBefore(set, after) {
		lines = append(lines, fmt.Sprintf("Made before spec.rollout.after, %s", after.UTC().Format(time.RFC3339)))
	}
	return lines
}

// RolloutDue tells whether spec.rollout.after is set and has passed.
func RolloutDue(deployment *clusterv1.MachineDeployment, now time.Time) bool {
	after := deployment.Spec.Rollout.After.Time
	return !after.IsZero() && !now.Before(after)
}

func madeBefore(set *clusterv1.MachineSet, after time.Time) bool {
	madeFor, err := time.Parse(time.RFC3339, set.Annotations[RolloutAfterAnnotation])
	return set.CreationTimestamp.Time.Before(after) && (err != nil || madeFor.Before(after))
}

// TemplateDifferences says, one line each, what keeps a machine made from have from being what want asks for.
// None means that it is up to date.
func TemplateDifferences(have, want clusterv1.MachineTemplateSpec) []string {
	var lines []string
	differ := func(what, has, wants string) {
		if has != wants {
			lines = append(lines, fmt.Sprintf("%s %s, %s required", what, orNone(has), orNone(wants)))
		}
	}
	h, w := replacing(have), replacing(want)
	differ("Cluster", h.ClusterName, w.ClusterName)
	differ("Version", h.Version, w.Version)
	differ("Failure domain", h.FailureDomain, w.FailureDomain)
	differ("Bootstrap template", reference(h.Bootstrap.ConfigRef), reference(w.Bootstrap.ConfigRef))
	differ("Bootstrap data secret", deref(h.Bootstrap.DataSecretName), deref(w.Bootstrap.DataSecretName))
	differ("Infrastructure template", reference(h.InfrastructureRef), reference(w.InfrastructureRef))
	return lines
}

func reference(ref clusterv1.ContractVersionedObjectReference) string {
	if !ref.IsDefined() {
		return ""
	}
	return ref.Kind + "." + ref.APIGroup + "/" + ref.Name
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
