package machineset

import (
	"fmt"
	"hash/fnv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// maxMachineName is the length of a DNS label: the name becomes the host name of the machine.
const maxMachineName = 63

// suffixLength is the number of characters that tell the machines of a set apart.
const suffixLength = 5

// suffixAlphabet is that of generated names of Kubernetes: no vowels, no digits that look like letters.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// place is where a new Machine of a set goes: places are numbered from 0, and each has a name.
type place struct {
	number int
	name   string
}

// freePlaces returns count places for new Machines of a set. A place whose name is taken is skipped. They depend on
// nothing else, so a reconcile that has not yet seen what the one before it created asks for the same names again, and
// finds those Machines.
func freePlaces(name naming, uid types.UID, taken sets.Set[string], count int) []place {
	places := make([]place, 0, max(count, 0))
	taken = taken.Clone()
	for number := 0; len(places) < count; number++ {
		p := place{number: number, name: name(suffix(uid, number))}
		if taken.Has(p.name) {
			continue
		}
		taken.Insert(p.name)
		places = append(places, p)
	}
	return places
}

// suffix takes the part of the random string of upstream's names.
func suffix(uid types.UID, number int) string {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s/%d", uid, number)
	out := make([]byte, suffixLength)
	for i, sum := 0, hash.Sum64(); i < suffixLength; i++ {
		out[i] = suffixAlphabet[sum%uint64(len(suffixAlphabet))]
		sum /= uint64(len(suffixAlphabet))
	}
	return string(out)
}

// naming makes the name of a Machine from the suffix of its place.
type naming func(suffix string) string

// namingOf returns the naming of a set: its spec.machineNaming.template, or its own name and the suffix. The error tells
// what is wrong with the template.
func namingOf(set *clusterv1.MachineSet) (naming, error) {
	text := set.Spec.MachineNaming.Template
	if text == "" {
		return func(suffix string) string {
			return set.Name[:min(len(set.Name), maxMachineName-suffixLength-1)] + "-" + suffix
		}, nil
	}
	parsed, err := template.New("name").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("spec.machineNaming.template %q: %w", text, err)
	}
	render := func(suffix string) (string, error) {
		var name strings.Builder
		err := parsed.Execute(&name, map[string]any{
			"cluster":    map[string]any{"name": set.Spec.ClusterName},
			"machineSet": map[string]any{"name": set.Name},
			"random":     suffix,
		})
		if name.Len() > maxMachineName {
			return name.String()[:maxMachineName-suffixLength] + suffix, err
		}
		return name.String(), err
	}

	one, err := render("bbbbb")
	if err != nil {
		return nil, fmt.Errorf("spec.machineNaming.template %q: %w: it may use .cluster.name, .machineSet.name and .random", text, err)
	}
	if other, _ := render("ccccc"); one == other {
		return nil, fmt.Errorf("spec.machineNaming.template %q gives all Machines one name: add {{ .random }}", text)
	}
	if problems := validation.IsDNS1123Label(one); len(problems) > 0 {
		return nil, fmt.Errorf("spec.machineNaming.template %q makes names like %q: %s", text, one, problems[0])
	}
	return func(suffix string) string {
		// It has rendered before, and the suffix is all that differs.
		name, _ := render(suffix)
		return name
	}, nil
}
