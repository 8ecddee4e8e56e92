package lifecycle

import (
	"cmp"
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SpreadsDomains tells whether a set chooses failure domains for its Machines: it is asked to by annotation, and its
// template names none.
func SpreadsDomains(set *clusterv1.MachineSet) bool {
	spread, err := strconv.ParseBool(set.Annotations[SpreadFailureDomainsAnnotation])
	return err == nil && spread && set.Spec.Template.Spec.FailureDomain == ""
}

// DomainOf returns the failure domain that a Machine is in, or is to be in while its provider has not said.
func DomainOf(machine *clusterv1.Machine) string {
	return cmp.Or(machine.Status.FailureDomain, machine.Spec.FailureDomain)
}

// CountDomains returns how many Machines each failure domain has that are not being deleted.
func CountDomains(machines []*clusterv1.Machine) map[string]int {
	counts := map[string]int{}
	for _, machine := range machines {
		if machine.DeletionTimestamp.IsZero() {
			counts[DomainOf(machine)]++
		}
	}
	return counts
}

// NextDomain returns the failure domain with the fewest Machines, and counts one more there. Of equal ones it is the
// one that preference points to, or the next after it: with the place of a Machine in its set as preference, a second
// try chooses the same, and small sets do not all begin with the same domain. It is empty where there are no domains.
func NextDomain(domains []string, counts map[string]int, preference int) string {
	next := ""
	for i := range domains {
		domain := domains[(i+preference)%len(domains)]
		if next == "" || counts[domain] < counts[next] {
			next = domain
		}
	}
	counts[next]++
	return next
}
