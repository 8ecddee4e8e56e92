package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// measurement is what bringing machines up has cost.
type measurement struct {
	machines int
	// management and workload are the operator's requests to the two API servers.
	management, workload tally
	cpu, took            time.Duration
	peakMiB              float64
}

func (m measurement) per(n int) float64 { return float64(n) / float64(m.machines) }

// requestsEach leaves the leader election out: it goes by time.
func (m measurement) requestsEach() float64 {
	return m.per(total(m.management.requests, func(r request) bool { return !r.lease() }))
}

func (m measurement) conflictsEach() float64 {
	return m.per(total(m.management.conflicts, nil) + total(m.management.stale, nil))
}

func (m measurement) cpuEach() float64 { return m.cpu.Seconds() / float64(m.machines) }

// The goals: those of a fleet that costs the same for each machine, however
// many there are.
const (
	goalRequests = 14  // to the management API server, a machine
	goalPeakMiB  = 150 // with 1000 machines
	goalRatio    = 1.2 // of the requests a machine with many machines to those with few
)

// upstream is what Cluster API v1.14 takes with its in-memory provider, a machine.
const upstream = "Cluster API v1.14: 52 requests and 3.9 conflicts a machine, machines created one after the other"

// upstreamUpdate is what it takes for a rolling update of 100 machines with a surge of 20 %.
const upstreamUpdate = "Cluster API v1.14: 28.7 core-seconds, 88 s"

func (m measurement) print(w io.Writer, title string, writesPerSecond float64) {
	fmt.Fprintf(w, "\n%s in %.0f s\n", title, m.took.Seconds())
	fmt.Fprintf(w, "  requests a machine   %6.2f  to the management API server, goal %d; %.2f to the workload's\n",
		m.requestsEach(), goalRequests, m.per(total(m.workload.requests, nil)))
	fmt.Fprintf(w, "  conflicts a machine  %6.2f  409: %d, refused as stale (422): %d; goal 0\n",
		m.conflictsEach(), total(m.management.conflicts, nil), total(m.management.stale, nil))
	fmt.Fprintf(w, "  operator             %6.1f  core-seconds (%.0f ms a machine), at most %.0f MiB\n",
		m.cpu.Seconds(), 1000*m.cpuEach(), m.peakMiB)
	writes := total(m.management.requests, request.write)
	fmt.Fprintf(w, "  writes               %6d  %.0f a second; the API server alone does %.0f a second, which would be %.0f s\n",
		writes, float64(writes)/m.took.Seconds(), writesPerSecond, float64(writes)/writesPerSecond)
	printRequests(w, m.management, m.machines)
}

// printRequests prints the most frequent first.
func printRequests(w io.Writer, t tally, machines int) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\n  VERB\tRESOURCE\tREQUESTS\tA MACHINE\tCONFLICTS\tSTALE")
	order := slices.SortedFunc(maps.Keys(t.requests), func(a, b request) int {
		return cmp.Or(cmp.Compare(t.requests[b], t.requests[a]), cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb))
	})
	for _, r := range order {
		fmt.Fprintf(table, "  %s\t%s\t%d\t%.2f\t%d\t%d\n", r.verb, r.resource, t.requests[r], float64(t.requests[r])/float64(machines), t.conflicts[r], t.stale[r])
	}
	table.Flush()
}

// unrest tells of a request that an operator with nothing to do must not make.
func unrest(r request) bool { return (r.write() || r.verb == "list") && !r.lease() }
