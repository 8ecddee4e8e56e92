package diagnosis

import (
	"cmp"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/internal/graph"
)

// rules are all that is known of troubles. Each looks for one family of them.
var rules = []func(*Facts) []Finding{
	conditionsTell,
	unreported, stuckFinalizers, refusals,
	paused, upgrades, endpoints,
	connection, certificateRequests, webhooks, network, cloudProvider, images, kubeletVersions,
	nodesMissing,
	releases,
}

// Diagnose returns what is wrong, what to mend first before what waits for it; none when nothing is.
func Diagnose(f *Facts) []Finding {
	var all []Finding
	for _, rule := range rules {
		all = append(all, rule(f)...)
	}
	all = merge(append(all, unexplained(f, all)...))
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.layer, b.layer),
			// Of two on one layer the cluster's comes before the machine's, the elder before the younger.
			-cmp.Compare(number(a.wide), number(b.wide)),
			-cmp.Compare(number(!a.Likely), number(!b.Likely)),
			begin(a).Compare(begin(b)),
			cmp.Compare(a.Object.Kind, b.Object.Kind), cmp.Compare(a.Object.Name, b.Object.Name), cmp.Compare(a.Code, b.Code),
		)
	})
	return explain(all)
}

// Concerning keeps the findings that have to do with an object: about it, what it owns or what owns it, or about the
// whole cluster.
func Concerning(findings []Finding, o *graph.Object) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool {
		return !f.wide && (f.of == nil || !above(f.of, o) && !above(o, f.of))
	})
}

// merge makes one finding of those with the same code about the same object, and of a trouble that an object of the
// cluster and machines tell alike.
func merge(all []Finding) []Finding {
	var merged []Finding
	for _, f := range all {
		i := slices.IndexFunc(merged, func(m Finding) bool { return m.Code == f.Code && m.Object == f.Object })
		if i < 0 {
			merged = append(merged, f)
			continue
		}
		merged[i].Evidence = append(merged[i].Evidence, f.Evidence...)
	}
	return merged
}

// explain moves what another finding explains behind that one.
func explain(sorted []Finding) []Finding {
	var first []Finding
	for _, f := range sorted {
		i := slices.IndexFunc(first, func(cause Finding) bool { return explains(cause, f) })
		if i < 0 {
			first = append(first, f)
			continue
		}
		first[i].Behind = append(first[i].Behind, Behind{Code: f.Code, Object: f.Object})
	}
	return first
}

// explains tells whether one trouble may come from another: that is deeper, and of the whole cluster or of an object that
// owns the other's or is owned by it. The same trouble told by the cluster explains that of its machines.
func explains(cause, f Finding) bool {
	if cause.wide && cause.Code == f.Code {
		return true
	}
	if cause.layer >= f.layer || f.layer == layerIntent {
		return false
	}
	return cause.wide || cause.of != nil && f.of != nil && (above(cause.of, f.of) || above(f.of, cause.of))
}

// above tells whether o is owner or one of its owners.
func above(owner, o *graph.Object) bool {
	for ; o != nil; o = o.Owner {
		if o == owner {
			return true
		}
	}
	return false
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// begin is when a finding began; what nobody recorded comes last.
func begin(f Finding) time.Time {
	if f.Since == nil {
		return time.Unix(1<<40, 0)
	}
	return *f.Since
}
