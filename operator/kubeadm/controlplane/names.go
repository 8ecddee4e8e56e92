package controlplane

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

const (
	// maxMachineName is the length of a DNS label: the name becomes the host name of the machine.
	maxMachineName = 63
	// suffixLength is the number of characters that tell the machines of a control plane apart.
	suffixLength = 5
	// suffixAlphabet is that of generated names of Kubernetes: no vowels, no digits that look like letters.
	suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"
)

// defaultNaming is upstream's, where spec.machineNaming.template is empty.
const defaultNaming = "{{ .kubeadmControlPlane.name }}-{{ .random }}"

// freeName returns the name of the first slot that is not taken. It depends on nothing else: a
// reconcile that has not yet seen what the one before it created asks for the same name again, and
// finds that Machine.
func freeName(s *snapshot) (string, error) {
	taken := sets.New[string]()
	for _, r := range s.replicas {
		taken.Insert(r.machine.Name)
	}
	// One more slot than there are names taken: one of them is free, unless slots share a name.
	for slot := range len(taken) + 1 {
		name, err := slotName(s, slot)
		if err != nil || !taken.Has(name) {
			return name, err
		}
	}
	return "", errors.New("spec.machineNaming.template gives all machines one name: put {{ .random }} into it")
}

// slotName renders the naming template; .random is the same for one slot whenever it is asked.
func slotName(s *snapshot, slot int) (string, error) {
	text := s.controlPlane.Spec.MachineNaming.Template
	if text == "" {
		text = defaultNaming
	}
	naming, err := template.New("naming").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("spec.machineNaming.template: %w", err)
	}
	suffix := slotSuffix(s.controlPlane.UID+types.UID(s.controlPlane.Annotations[lifecycle.BegunAnewAnnotation]), slot)
	var out strings.Builder
	err = naming.Execute(&out, map[string]any{
		"cluster":             map[string]any{"name": s.cluster.Name},
		"kubeadmControlPlane": map[string]any{"name": s.controlPlane.Name},
		"random":              suffix,
	})
	if err != nil {
		return "", fmt.Errorf("spec.machineNaming.template: %w", err)
	}
	name := out.String()
	if len(name) > maxMachineName {
		name = name[:maxMachineName-suffixLength] + suffix
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", fmt.Errorf("spec.machineNaming.template gives the name %q: %s", name, strings.Join(problems, ", "))
	}
	return name, nil
}

func slotSuffix(uid types.UID, slot int) string {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s/%d", uid, slot)
	suffix := make([]byte, suffixLength)
	for i, sum := 0, hash.Sum64(); i < suffixLength; i++ {
		suffix[i] = suffixAlphabet[sum%uint64(len(suffixAlphabet))]
		sum /= uint64(len(suffixAlphabet))
	}
	return string(suffix)
}
