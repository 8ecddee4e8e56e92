package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// account is how the management API server knows the operator.
const account = "system:serviceaccount:millwright-system:millwright-operator"

// quiet is how long nothing must be written for the operator to be done.
const quiet = 10 * time.Second

// idleFor is how long nothing may happen, where BENCH_IDLE says nothing else.
const idleFor = 2 * time.Minute

// TestAFleetCostsTheSameForEachMachine goes from none to 100 machines, idles, and
// with BENCH_LARGE goes from none to 1000.
func TestAFleetCostsTheSameForEachMachine(t *testing.T) {
	if os.Getenv("BENCH") == "" {
		t.Skip("a measurement that takes minutes: `make bench` runs it")
	}
	s := startSandbox(t)
	writes := s.writesPerSecond()
	s.createCluster()
	b := &bed{
		sandbox:    s,
		management: &auditLog{path: filepath.Join(s.dir, "logs", "audit.log"), mine: func(e event) bool { return e.User.Username == account }},
		// There the operator is an administrator, and so is the sandbox, which registers the Nodes.
		workload: &auditLog{path: filepath.Join(s.dir, "logs", "workload-audit.log"), mine: func(e event) bool {
			return e.User.Username == "sandbox-admin" && e.UserAgent != "sandbox"
		}},
	}

	few := b.scaleUp(100)
	few.print(os.Stdout, fmt.Sprintf("0 → %d machines", few.machines), writes)
	fmt.Println("  beside               " + upstream)
	b.idle()
	check(t, few)
	update := b.rollingUpdate(100)
	update.print(os.Stdout, fmt.Sprintf("rolling update of %d machines, maxSurge 20 %%", update.machines), writes)
	fmt.Println("  beside               " + upstreamUpdate)
	if os.Getenv("BENCH_LARGE") == "" {
		return
	}
	b.scale(0, 10*time.Minute)
	b.settle()
	many := b.scaleUp(1000)
	many.print(os.Stdout, fmt.Sprintf("0 → %d machines", many.machines), writes)
	check(t, many)
	ratio := many.requestsEach() / few.requestsEach()
	fmt.Printf("\n%d to %d machines: requests a machine ×%.2f, goal at most %.1f; core-seconds a machine ×%.2f\n",
		few.machines, many.machines, ratio, goalRatio, many.cpuEach()/few.cpuEach())
	if ratio > goalRatio {
		t.Errorf("requests a machine grow ×%.2f from %d to %d machines, want at most ×%.1f", ratio, few.machines, many.machines, goalRatio)
	}
	if many.peakMiB > goalPeakMiB {
		t.Errorf("the operator took %.0f MiB, want at most %d", many.peakMiB, goalPeakMiB)
	}
}

func check(t *testing.T, m measurement) {
	t.Helper()
	if got := m.requestsEach(); got > goalRequests {
		t.Errorf("%.2f requests a machine with %d machines, want at most %d", got, m.machines, goalRequests)
	}
	if m.conflictsEach() > 0 {
		t.Errorf("conflicts with itself: %v, and stale: %v", m.management.conflicts, m.management.stale)
	}
}

// bed is a cluster whose costs are counted.
type bed struct {
	sandbox
	management, workload *auditLog
}

// count returns the operator's requests since the last call.
func (b *bed) count() (management, workload tally) {
	b.Helper()
	management, err := b.management.next()
	if err != nil {
		b.Fatal(err)
	}
	if workload, err = b.workload.next(); err != nil {
		b.Fatal(err)
	}
	return management, workload
}

// scaleUp measures what it takes from no machine to n available ones.
func (b *bed) scaleUp(n int) measurement {
	b.Helper()
	return b.measure(n, func() { b.scale(n, 20*time.Minute) })
}

// rollingUpdate measures what it takes to replace n machines, a fifth of them at a time on top.
func (b *bed) rollingUpdate(n int) measurement {
	b.Helper()
	return b.measure(n, func() {
		b.run("", "kubectl", "patch", "machinedeployment/bench", "--type=merge", "--patch", fmt.Sprintf(
			`{"spec":{"rollout":{"after":%q,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"20%%","maxUnavailable":0}}}}}`,
			time.Now().UTC().Format(time.RFC3339)))
		counters := func() string {
			return strings.TrimSpace(b.run("", "kubectl", "get", "machinedeployment/bench", "-o",
				"jsonpath={.status.availableReplicas} of {.status.replicas}, {.status.upToDateReplicas} up to date"))
		}
		done := fmt.Sprintf("%d of %d, %d up to date", n, n, n)
		// Until it has begun it looks as it will at its end.
		b.eventually(2*time.Minute, func() string {
			if counters() == done {
				return "the update has not begun"
			}
			return ""
		})
		b.eventually(20*time.Minute, func() string {
			if got := counters(); got != done {
				return "available: " + got
			}
			return ""
		})
	})
}

// measure counts what do and what follows from it cost, until the operator has nothing more to write.
func (b *bed) measure(n int, do func()) measurement {
	b.Helper()
	b.settle()
	before := b.operator()
	if err := resetPeak(before.PID); err != nil {
		b.Fatal(err)
	}
	used := b.cpu(before.PID)
	began := time.Now()
	do()
	m := measurement{machines: n, took: time.Since(began)}
	m.management, m.workload = b.settle()
	if after := b.operator(); after != before {
		b.Fatalf("the operator was %+v and is %+v: it has crashed, see its log", before, after)
	}
	m.cpu = b.cpu(before.PID) - used
	peak, err := peakMiB(before.PID)
	if err != nil {
		b.Fatal(err)
	}
	m.peakMiB = peak
	return m
}

func (b *bed) cpu(pid int) time.Duration {
	b.Helper()
	used, err := cpu(pid)
	if err != nil {
		b.Fatal(err)
	}
	return used
}

// scale waits until there are n machines and all of them are available.
func (b *bed) scale(n int, deadline time.Duration) {
	b.Helper()
	b.run("", "kubectl", "scale", "machinedeployment/bench", fmt.Sprintf("--replicas=%d", n))
	want := fmt.Sprintf("%d of %d", n, n)
	b.eventually(deadline, func() string {
		got := strings.TrimSpace(b.run("", "kubectl", "get", "machinedeployment/bench", "-o", "jsonpath={.status.availableReplicas} of {.status.replicas}"))
		if got == want {
			return ""
		}
		return "available: " + got
	})
}

// settle waits until the operator has written nothing for a while, and returns
// its requests up to then.
func (b *bed) settle() (management, workload tally) {
	b.Helper()
	management, workload = newTally(), newTally()
	last := time.Now()
	b.eventually(5*time.Minute, func() string {
		m, w := b.count()
		management.merge(m)
		workload.merge(w)
		if total(m.requests, unrest)+total(w.requests, unrest) > 0 {
			last = time.Now()
		}
		if still := time.Since(last); still < quiet {
			return fmt.Sprintf("the operator has been quiet for %s only; last it asked for %v and %v", still.Round(time.Second), m.requests, w.requests)
		}
		return ""
	})
	return management, workload
}

// idle watches an operator that has nothing to do.
func (b *bed) idle() {
	b.Helper()
	long := idleFor
	if text := os.Getenv("BENCH_IDLE"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			b.Fatalf("BENCH_IDLE: %v", err)
		}
	}
	pid := b.operator().PID
	used := b.cpu(pid)
	// Nothing is waited for: the time itself is what is measured.
	select {
	case <-time.After(long):
	case <-b.Context().Done():
	}
	management, workload := b.count()
	fmt.Printf("\nidle for %s: %.1f core-seconds; leader election: %d requests\n",
		long, (b.cpu(pid) - used).Seconds(), total(management.requests, request.lease))
	for _, server := range []struct {
		name string
		tally
	}{{"management", management}, {"workload", workload}} {
		fmt.Printf("  %s API server: %d writes and lists, goal 0; %d other requests that are no watches\n", server.name,
			total(server.requests, unrest), total(server.requests, func(r request) bool { return !unrest(r) && !r.lease() && r.verb != "watch" }))
		if total(server.requests, unrest) > 0 {
			b.Errorf("the idle operator asks the %s API server for %v", server.name, server.requests)
		}
	}
}

// writesPerSecond measures how fast the management API server takes small
// objects from sixteen clients at once: no fleet can come up faster.
func (s sandbox) writesPerSecond() float64 {
	s.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.dir, "kubeconfig"))
	if err != nil {
		s.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	const clients, each = 16, 40
	began := time.Now()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range each {
				obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
				if _, err := client.CoreV1().ConfigMaps("default").Create(s.Context(), obj, metav1.CreateOptions{}); err != nil {
					s.Errorf("measure the API server: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	return clients * each / time.Since(began).Seconds()
}
