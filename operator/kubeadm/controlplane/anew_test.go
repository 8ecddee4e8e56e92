package controlplane

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func asksAnew(value string) func(*snapshot) {
	return func(s *snapshot) {
		s.controlPlane.Annotations = map[string]string{lifecycle.BeginAnewAnnotation: value}
	}
}

// steps tells what beginning anew does next.
func steps(p plan) string {
	if p.anew == nil {
		return "nothing"
	}
	out := []string{}
	for _, r := range p.anew.giveUp {
		out = append(out, "give up "+r.machine.Name)
	}
	if p.anew.reset {
		out = append(out, "reset")
	}
	return strings.Join(out, ", ")
}

func TestEtcdIsGivenUpOnlyWhenAPersonSaysSoAndItIsLost(t *testing.T) {
	tests := map[string]struct {
		s    *snapshot
		want string
		told string
	}{
		"nobody says so":                {prod(3, 3, noLeader), "nothing", ""},
		"the name is another's":         {prod(3, 3, noLeader, asksAnew("true")), "nothing", `set it to "prod"`},
		"the API server answers":        {prod(3, 3, asksAnew("prod")), "nothing", "the API server of the Cluster answers: remove the annotation"},
		"the operator has just started": {prod(3, 3, noLeader, func(s *snapshot) { s.workload.settling = time.Second }, asksAnew("prod")), "", "given up"},
		"all machines go":               {prod(3, 3, noLeader, asksAnew("prod")), "give up cp-1, give up cp-2, give up cp-3", "given up"},
		"those that go are let go":      {prod(2, 3, noLeader, going(0, true), going(1, true), letGo(1), asksAnew("prod")), "give up cp-1", "given up"},
		"the last is awaited":           {prod(1, 3, noLeader, going(0, true), letGo(0), asksAnew("prod")), "", "given up"},
		"then it is to be initialized":  {prod(0, 3, noLeader, initializedOnce, asksAnew("prod")), "reset", "given up"},
		"what was begun is forgotten":   {prod(0, 3, asksAnew("prod")), "reset", "given up"},
		"a Cluster that goes just goes": {prod(3, 3, noLeader, asksAnew("prod"), clusterGoes), "nothing", "The Cluster is being deleted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := makePlan(tc.s)
			if got := steps(p); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if told := strings.Join(p.blocked, "\n"); (tc.told == "") != (told == "") || !strings.Contains(told, tc.told) {
				t.Errorf("told %q, want %q", told, tc.told)
			}
			if other := summary(p); tc.want != "nothing" && other != "blocked" {
				t.Errorf("besides: %s", other)
			}
		})
	}
}

func initializedOnce(s *snapshot) {
	s.controlPlane.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
}

func TestAControlPlaneThatBeginsAnewWaitsForItsCluster(t *testing.T) {
	begun := func(s *snapshot) {
		s.controlPlane.Status.Initialization.ControlPlaneInitialized = ptr.To(false)
		s.controlPlane.Annotations = map[string]string{lifecycle.BegunAnewAnnotation: "2026-11-30T12:00:00Z"}
		s.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	s := prod(0, 3, begun)
	if p := makePlan(s); p.create != nil || len(p.blocked) == 0 {
		t.Errorf("%s: a machine that is made now would be told to join", summary(p))
	}
	s.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(false)
	p := makePlan(s)
	if p.create == nil || p.create.join {
		t.Fatalf("%s: want one that initializes", summary(p))
	}
	if before := "prod-" + slotSuffix("uid", 0); p.create.name == before {
		t.Errorf("the name %s is that of a Node that a snapshot may hold", before)
	}
}
