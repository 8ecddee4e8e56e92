package lifecycle

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// TemplateContentChangedCondition of a MachineSet and of a MachineDeployment is True while Machines exist that were made
// from a template object whose content was changed later. A reference to the object is all that a rollout looks at, so
// such a change reaches new Machines only. It is a condition of ours.
const TemplateContentChangedCondition = "TemplateContentChanged"

// Reasons of TemplateContentChangedCondition.
const (
	TemplateContentChangedReason   = "ContentChanged"
	TemplateContentUnchangedReason = "ContentUnchanged"
)

// TemplateContentAnnotation records on a Machine what its templates said when it was made: a fingerprint for each.
const TemplateContentAnnotation = "millwright.dev/template-content"

// Fingerprints returns the value of TemplateContentAnnotation for templates, of which some may be nil.
func Fingerprints(templates ...*unstructured.Unstructured) string {
	var all []string
	for _, template := range templates {
		if template != nil {
			all = append(all, fingerprint(template))
		}
	}
	return strings.Join(all, ",")
}

// fingerprint is kind=content/origin. Content is a hash of what machines are made from. Origin changes with every edit
// of the object, and with the object. Only where both differ was the content edited: a new provider's defaults change
// the first, a backup that is restored the second.
func fingerprint(template *unstructured.Unstructured) string {
	// What comes from the API server always encodes.
	content, _ := json.Marshal(template.Object["spec"])
	return fmt.Sprintf("%s=%s/%s", template.GetKind(), hashOf(content), hashOf(fmt.Appendf(nil, "%s/%d", template.GetUID(), template.GetGeneration())))
}

func hashOf(data []byte) string {
	hash := fnv.New64a()
	_, _ = hash.Write(data)
	return fmt.Sprintf("%x", hash.Sum64())
}

// ContentChanged is the condition of a set whose Machines are made from templates, of which some may be nil.
func ContentChanged(machines []*clusterv1.Machine, templates ...*unstructured.Unstructured) metav1.Condition {
	var changes []string
	for _, template := range templates {
		if template == nil {
			continue
		}
		now := fingerprint(template)
		stale := 0
		for _, machine := range machines {
			if machine.DeletionTimestamp.IsZero() && edited(machine.Annotations[TemplateContentAnnotation], now) {
				stale++
			}
		}
		if stale > 0 {
			changes = append(changes, fmt.Sprintf("* %s %s was edited after %d of %d Machines were made from it, and they stay as they are: "+
				"restart the rollout, or refer to a template with a new name", template.GetKind(), template.GetName(), stale, len(machines)))
		}
	}
	return contentChanged(changes)
}

// ContentChangedIn is the condition of a deployment with these sets.
func ContentChangedIn(sets []*clusterv1.MachineSet) metav1.Condition {
	var changes []string
	for _, set := range sets {
		if c := conditions.Get(set, TemplateContentChangedCondition); c != nil && c.Status == metav1.ConditionTrue {
			changes = append(changes, c.Message)
		}
	}
	slices.Sort(changes)
	return contentChanged(changes)
}

func contentChanged(changes []string) metav1.Condition {
	if len(changes) == 0 {
		return conditions.False(TemplateContentChangedCondition, TemplateContentUnchangedReason, "")
	}
	return conditions.True(TemplateContentChangedCondition, TemplateContentChangedReason, "%s", strings.Join(changes, "\n"))
}

// edited tells whether a recorded fingerprint of the same kind differs in content and origin.
func edited(record, now string) bool {
	kind, current, _ := strings.Cut(now, "=")
	for entry := range strings.SplitSeq(record, ",") {
		before, found := strings.CutPrefix(entry, kind+"=")
		if !found {
			continue
		}
		contentThen, originThen, _ := strings.Cut(before, "/")
		contentNow, originNow, _ := strings.Cut(current, "/")
		return contentThen != contentNow && originThen != originNow
	}
	return false
}
