package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
)

// fleetOf reads a fleet: a letter for each cluster, w waiting, r running, p paused, c completed, f failed, b blocked, x refused.
func fleetOf(states string) []member {
	phases := map[rune]lifecyclev1.UpgradePhase{'r': lifecyclev1.UpgradeRunning, 'p': lifecyclev1.UpgradePaused, 'c': lifecyclev1.UpgradeCompleted,
		'f': lifecyclev1.UpgradeFailed, 'b': lifecyclev1.UpgradeBlocked}
	var members []member
	for i, state := range states {
		m := member{name: string(rune('a' + i))}
		switch state {
		case 'w':
		case 'x':
			m.refused = "another upgrade is under way"
		default:
			m.upgrade = &lifecyclev1.ClusterUpgrade{}
			m.upgrade.Status.Phase = phases[state]
		}
		members = append(members, m)
	}
	return members
}

func TestAFleetIsBegunSomeAtOnceUntilTooManyFailed(t *testing.T) {
	cases := map[string]struct {
		fleet                   string
		concurrent, maxFailures int
		begin                   string
		done                    bool
	}{
		"at the beginning as many as may":       {fleet: "wwww", concurrent: 2, maxFailures: 1, begin: "a b"},
		"another where one is done":             {fleet: "crww", concurrent: 2, maxFailures: 1, begin: "c"},
		"none where all places are held":        {fleet: "rrww", concurrent: 2, maxFailures: 1},
		"a paused one holds its place":          {fleet: "pw", concurrent: 1, maxFailures: 1},
		"a failed one holds none":               {fleet: "fww", concurrent: 1, maxFailures: 2, begin: "b"},
		"a blocked one has failed":              {fleet: "bw", concurrent: 1, maxFailures: 1, done: true},
		"one that could not be begun too":       {fleet: "xw", concurrent: 1, maxFailures: 1, done: true},
		"those that run are waited for":         {fleet: "frw", concurrent: 2, maxFailures: 1},
		"one that was mended lets others begin": {fleet: "crw", concurrent: 2, maxFailures: 1, begin: "c"},
		"all are done":                          {fleet: "ccc", concurrent: 2, maxFailures: 1, done: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			begin, done := nextOfFleet(fleetOf(tc.fleet), tc.concurrent, tc.maxFailures)
			if got := strings.Join(begin, " "); got != tc.begin || done != tc.done {
				t.Errorf("begins %q, done %t; want %q, %t", got, done, tc.begin, tc.done)
			}
		})
	}
}

// TestEveryFleetComesToAnEndWithinItsBounds plays the operator: each upgrade that runs ends well or badly.
func TestEveryFleetComesToAnEndWithinItsBounds(t *testing.T) {
	for seed := range 512 {
		states := []rune("wwwwwwwww")
		for round := 0; ; round++ {
			if round > 100 {
				t.Fatalf("seed %d: no end: %s", seed, string(states))
			}
			begin, done := nextOfFleet(fleetOf(string(states)), 3, 2)
			for _, name := range begin {
				states[name[0]-'a'] = 'r'
			}
			running := strings.Count(string(states), "r")
			if running > 3 {
				t.Fatalf("seed %d: %d run at once: %s", seed, running, string(states))
			}
			if done {
				failed := strings.Count(string(states), "f")
				if failed < 2 && strings.Contains(string(states), "w") || failed > 4 {
					t.Fatalf("seed %d: it ends as %s", seed, string(states))
				}
				break
			}
			i := strings.IndexRune(string(states), 'r')
			states[i] = 'c'
			if seed>>i&1 == 1 {
				states[i] = 'f'
			}
		}
	}
}

func TestTheViewOfAnUpgradeShowsLegsBarsAndWhatIsWaitedFor(t *testing.T) {
	u, now := runningUpgrade()
	want := []string{
		`prod to v1.37.2: Running: workers "md-0" to v1.37.2: 1 of 3 machines are up to date (40s)`,
		"leg 1: v1.35.4 -> v1.36.3",
		"  x control-plane     v1.35.4 -> v1.36.3  [############] 3/3  2m",
		"  x addon kube-proxy  1.35.0 -> 1.36.0  9s",
		"leg 2: v1.36.3 -> v1.37.2",
		"  x control-plane     v1.36.3 -> v1.37.2  [############] 3/3  2m",
		"  > workers md-0      v1.35.4 -> v1.37.2  [####........] 1/3  40s",
		"    workers md-1      v1.35.4 -> v1.37.2  [............] 0/2",
	}
	if diff := cmp.Diff(want, upgradeScreen(u, now)); diff != "" {
		t.Errorf("screen (-want +got):\n%s", diff)
	}
}

func TestOffATerminalEachStepIsTwoLines(t *testing.T) {
	u, now := runningUpgrade()
	teller := &stepTeller{}
	want := []string{
		"prod: control-plane v1.35.4 -> v1.36.3: Done after 2m, 3 replaced",
		"prod: addon kube-proxy 1.35.0 -> 1.36.0: Done after 9s",
		"prod: control-plane v1.36.3 -> v1.37.2: Done after 2m, 3 replaced",
		"prod: workers md-0 v1.35.4 -> v1.37.2: Running",
	}
	if diff := cmp.Diff(want, teller.tell(u, now)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if again := teller.tell(u, now); len(again) > 0 {
		t.Errorf("it repeats %q", again)
	}
	u.Status.Steps[3].State, u.Status.Steps[3].CompletionTime = lifecyclev1.StepDone, u.Status.Since
	if got := teller.tell(u, now); len(got) != 1 || !strings.HasPrefix(got[0], "prod: workers md-0 v1.35.4 -> v1.37.2: Done") {
		t.Errorf("then it tells %q", got)
	}
}
