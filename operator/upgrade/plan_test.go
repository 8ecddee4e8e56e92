package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/addons"
	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
	"github.com/millwright-dev/millwright/internal/preflight"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// world is a cluster that is changed as decisions say, with controllers that replace machines at once or leave them.
type world struct {
	upgrade *lifecyclev1.ClusterUpgrade
	objects upgrade.Objects
	// releases are the add-ons, whose controller does what it is told at once in reconcileAll.
	releases []*addonsv1.AddonRelease
}

func newWorld(version string, pools ...string) *world {
	w := &world{upgrade: &lifecyclev1.ClusterUpgrade{
		ObjectMeta: metav1.ObjectMeta{Name: "to-37", Generation: 1},
		Spec:       lifecyclev1.ClusterUpgradeSpec{ClusterName: "prod", Version: "v1.37.2"}}}
	w.objects.Cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	w.objects.ControlPlane = &unstructured.Unstructured{Object: map[string]any{
		"kind": "KubeadmControlPlane", "metadata": map[string]any{"name": "prod", "generation": int64(1)},
		"spec": map[string]any{"version": version, "replicas": int64(3),
			"machineTemplate": map[string]any{"spec": map[string]any{"infrastructureRef": map[string]any{"kind": "VSphereMachineTemplate", "name": "cp"}}}},
	}}
	for _, name := range pools {
		d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
		d.Spec.Replicas = ptr.To[int32](2)
		d.Spec.Template.Spec.Version = version
		d.Spec.Template.Spec.InfrastructureRef.Name = name
		w.objects.Deployments = append(w.objects.Deployments, d)
	}
	w.reconcileAll()
	return w
}

// machines makes the machines of an object, all of a version.
func (w *world) machines(label, value, version string, count int32) {
	w.objects.Machines = slices.DeleteFunc(w.objects.Machines, func(m *clusterv1.Machine) bool { return m.Labels[label] == value })
	for i := range count {
		w.objects.Machines = append(w.objects.Machines, machine(fmt.Sprintf("%s-%d", value, i), label, value, version))
	}
}

func machine(name, label, value, version string) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now), Labels: map[string]string{label: value}}}
	m.Spec.Version = version
	m.Status.NodeRef.Name = name
	return m
}

// reconcileAll does at once what the controllers of the objects do.
func (w *world) reconcileAll() {
	cp := w.objects.ControlPlane
	w.machines(clusterv1.MachineControlPlaneLabel, "", versionOf(cp), 3)
	three := int64(3)
	cp.Object["status"] = map[string]any{"observedGeneration": cp.GetGeneration(), "replicas": three, "upToDateReplicas": three, "readyReplicas": three, "availableReplicas": three}
	for _, d := range w.objects.Deployments {
		w.reconcilePool(d)
	}
	for _, release := range w.releases {
		if held := release.Annotations[addonsv1.HeldVersionAnnotation]; held != "" {
			w.apply(release, held)
		}
	}
}

func (w *world) reconcilePool(d *clusterv1.MachineDeployment) {
	n := *d.Spec.Replicas
	w.machines(clusterv1.MachineDeploymentNameLabel, d.Name, d.Spec.Template.Spec.Version, n)
	d.Status = clusterv1.MachineDeploymentStatus{ObservedGeneration: d.Generation, Replicas: &n, UpToDateReplicas: &n, ReadyReplicas: &n, AvailableReplicas: &n}
}

// look reads the world as the reconciler does.
func (w *world) look(t *testing.T) snapshot {
	t.Helper()
	s := snapshot{upgrade: w.upgrade, objects: w.objects, releases: w.releases, templates: map[target]*template{}, now: now}
	s.opening, s.windowErr = upgrade.Windows(windows(w.upgrade.Spec.Windows), now)
	observed, err := w.objects.Observe(selection(w.upgrade.Spec))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"1.35.4", "1.36.3", "1.37.2"} {
		observed.Images = append(observed.Images, semver.MustParse(v))
	}
	catalogue, err := bundle.Load(addons.Files)
	if err != nil {
		t.Fatal(err)
	}
	observed.Addons = preflight.Addons(w.releases, catalogue, w.upgrade.Spec.Addons == lifecyclev1.AddonsStay)
	s.plan = upgrade.New(observed, upgrade.Options{Target: semver.MustParse("1.37.2"), Force: w.upgrade.Spec.Force})
	for _, step := range s.plan.Steps {
		s.templates[target{step.Name, step.To}] = &template{name: step.Name + "-" + step.To}
	}
	return s
}

// step decides once and does what was decided.
func (w *world) step(t *testing.T) decision {
	t.Helper()
	s := w.look(t)
	d := decide(s)
	for _, name := range d.arrived {
		annotate(s.release(name), lifecyclev1.BeforeAnnotation, "")
	}
	for _, h := range d.holds {
		holdAt(s.release(h.name), w.upgrade.Name, h)
	}
	for _, o := range s.objectsToMove() {
		generation := o.meta().GetGeneration()
		for _, m := range d.moves {
			if m.name == o.name() {
				moveObject(m)(o)
				generation++
			}
		}
		if slices.Contains(d.halt, o.name()) {
			haltObject(w.upgrade.Name)(o)
		}
		if slices.Contains(d.resume, o.name()) {
			resumeObject(o)
		}
		if slices.Contains(d.undo, o.name()) {
			undoObject(o)
			generation++
		}
		if slices.Contains(d.forget, o.name()) {
			forgetObject(o)
		}
		o.meta().SetGeneration(generation)
	}
	setStatus(w.upgrade, d, findings(s), now)
	return d
}

// run steps until the upgrade is in a phase, and returns what was moved, in order.
func (w *world) run(t *testing.T, until lifecyclev1.UpgradePhase) []string {
	t.Helper()
	var moved []string
	for range 50 {
		d := w.step(t)
		for _, m := range d.moves {
			moved = append(moved, strings.TrimSpace(m.name+" "+m.version))
		}
		if d.phase == until {
			return moved
		}
		w.reconcileAll()
	}
	t.Fatalf("the upgrade is %s: %s; want it %s", w.upgrade.Status.Phase, w.upgrade.Status.Message, until)
	return nil
}

func TestAnUpgradeMovesTheControlPlaneAndThenOneDeploymentAfterTheOther(t *testing.T) {
	w := newWorld("v1.35.4", "b", "a")
	w.upgrade.Spec.Workers.Order = []string{"b"}
	moved := w.run(t, lifecyclev1.UpgradeCompleted)
	if diff := cmp.Diff([]string{"v1.36.3", "v1.37.2", "b v1.37.2", "a v1.37.2"}, moved); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
	for _, step := range w.upgrade.Status.Steps {
		if step.State != lifecyclev1.StepDone || step.Done != step.Machines || step.CompletionTime == nil {
			t.Errorf("a step of an upgrade that is completed is %+v", step)
		}
	}
	for _, o := range w.look(t).objectsToMove() {
		if o.before() != nil {
			t.Errorf("%s still keeps what it had before", describeObject(o))
		}
	}
	if w.upgrade.Status.FromVersion != "v1.35.4" {
		t.Errorf("fromVersion is %q", w.upgrade.Status.FromVersion)
	}
}

func TestNothingBeginsBeforeWhatWasMovedIsSettled(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	w.step(t)
	w.reconcileAll()
	// All machines have the version, and one is not available yet.
	_ = unstructured.SetNestedField(w.objects.ControlPlane.Object, int64(2), "status", "availableReplicas")
	d := w.step(t)
	if len(d.moves) > 0 || !strings.Contains(d.message, "2 of 3 machines are available") {
		t.Errorf("moves %v, message %q; want none, and what is waited for", d.moves, d.message)
	}
	w.reconcileAll()
	if d = w.step(t); len(d.moves) != 1 || d.moves[0].name != "a" {
		t.Errorf("moves %v; want that of the deployment", d.moves)
	}
}

func TestAsManyDeploymentsMoveAtOnceAsTheUserAllows(t *testing.T) {
	w := newWorld("v1.36.3", "a", "b", "c")
	w.upgrade.Spec.Workers.MaxConcurrent = ptr.To[int32](2)
	w.step(t)
	w.reconcileAll()
	d := w.step(t)
	if len(d.moves) != 2 || d.moves[0].name != "a" || d.moves[1].name != "b" {
		t.Fatalf("moves %v; want those of a and b", d.moves)
	}
	w.reconcilePool(w.objects.Deployments[1])
	if d = w.step(t); len(d.moves) != 1 || d.moves[0].name != "c" {
		t.Errorf("moves %v; want that of c, as b is done", d.moves)
	}
}

func TestAPausedUpgradeHaltsWhatItBeganAndGoesOnLater(t *testing.T) {
	w := newWorld("v1.36.3", "a", "b")
	w.step(t)
	w.reconcileAll()
	w.step(t)
	w.upgrade.Spec.Paused = ptr.To(true)
	d := w.step(t)
	if d.phase != lifecyclev1.UpgradePaused || !slices.Equal(d.halt, []string{"a"}) {
		t.Fatalf("phase %s, halted %v; want a halted", d.phase, d.halt)
	}
	if d = w.step(t); len(d.halt) > 0 {
		t.Errorf("halted %v twice", d.halt)
	}
	w.upgrade.Spec.Paused = nil
	if d = w.step(t); d.phase != lifecyclev1.UpgradeRunning || !slices.Equal(d.resume, []string{"a"}) {
		t.Errorf("phase %s, resumed %v; want a resumed", d.phase, d.resume)
	}
	if w.objects.Deployments[0].Spec.Paused != nil {
		t.Error("the deployment is still paused")
	}
}

func TestARolloutThatSomebodyElsePausedIsNotResumed(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	w.step(t)
	w.reconcileAll()
	w.step(t)
	w.objects.Deployments[0].Spec.Paused = ptr.To(true)
	w.upgrade.Spec.Paused = ptr.To(true)
	if d := w.step(t); len(d.halt) > 0 {
		t.Errorf("halted %v, which was paused already", d.halt)
	}
	w.upgrade.Spec.Paused = nil
	if d := w.step(t); len(d.resume) > 0 {
		t.Errorf("resumed %v, which another paused", d.resume)
	}
}

func TestAnUpgradeWaitsForAPersonAndForItsWindow(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	w.upgrade.Spec.PauseBefore = []lifecyclev1.Phase{lifecyclev1.PhaseWorkers}
	if moved := w.run(t, lifecyclev1.UpgradePaused); !slices.Equal(moved, []string{"v1.37.2"}) {
		t.Fatalf("moved %v before the pause, want the control plane alone", moved)
	}
	if got := w.upgrade.Status.Message; !strings.Contains(got, lifecyclev1.ApprovedAnnotation+"=Workers") {
		t.Errorf("message %q does not say how to approve", got)
	}
	w.upgrade.Annotations = map[string]string{lifecyclev1.ApprovedAnnotation: "workers"}
	w.upgrade.Spec.Windows = []lifecyclev1.MaintenanceWindow{{Schedule: "0 22 * * *", DurationMinutes: 60}}
	d := w.step(t)
	if d.phase != lifecyclev1.UpgradePaused || !strings.Contains(d.message, "opens at 2026-12-01T22:00:00Z") {
		t.Errorf("phase %s, message %q; want it to wait for the window", d.phase, d.message)
	}
	if want := now.Add(10 * time.Hour); !d.wake.Equal(want) {
		t.Errorf("wakes at %v, want %v", d.wake, want)
	}
	w.upgrade.Spec.Windows[0].Schedule = "30 11 * * *"
	w.run(t, lifecyclev1.UpgradeCompleted)
}

// stuck leaves the first machine of a deployment's new version without a Node, for longer than it may be.
func (w *world) stuck(t *testing.T) {
	t.Helper()
	w.step(t)
	w.reconcileAll()
	w.step(t)
	late := machine("a-new", clusterv1.MachineDeploymentNameLabel, "a", "v1.37.2")
	late.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	late.Status.NodeRef.Name = ""
	late.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Message: "the template boots no system"}}
	w.objects.Machines = append(w.objects.Machines, late)
	w.objects.Deployments[0].Status.UpToDateReplicas = ptr.To[int32](1)
}

func TestAMachineThatNeverBecomesANodeFailsTheUpgradeWithItsCause(t *testing.T) {
	w := newWorld("v1.36.3", "a", "b")
	w.stuck(t)
	d := w.step(t)
	if d.phase != lifecyclev1.UpgradeFailed || !strings.Contains(d.message, "a-new") || !strings.Contains(d.message, "boots no system") || len(d.moves) > 0 {
		t.Fatalf("phase %s, moves %v, message %q; want it failed for that machine", d.phase, d.moves, d.message)
	}
	// A corrected image leads to another template: the move is made anew, and what there was before the first is kept.
	s := w.look(t)
	s.templates[target{"a", "v1.37.2"}] = &template{name: "corrected"}
	w.objects.Machines = w.objects.Machines[:len(w.objects.Machines)-1]
	d = decide(s)
	if d.phase != lifecyclev1.UpgradeRunning || len(d.moves) != 1 || d.moves[0].template.name != "corrected" {
		t.Errorf("phase %s, moves %v; want a move to the corrected template", d.phase, d.moves)
	}
}

func TestAnAbortedUpgradeGivesBackWhatIsNotDoneAndKeepsTheRest(t *testing.T) {
	w := newWorld("v1.36.3", "a", "b")
	w.stuck(t)
	w.upgrade.Spec.Abort = ptr.To(true)
	d := w.step(t)
	if !slices.Equal(d.undo, []string{"a"}) || d.phase != lifecyclev1.UpgradeAborting {
		t.Fatalf("phase %s, undone %v; want a undone", d.phase, d.undo)
	}
	w.run(t, lifecyclev1.UpgradeAborted)
	for _, deployment := range w.objects.Deployments {
		if got := deployment.Spec.Template.Spec; got.Version != "v1.36.3" || got.InfrastructureRef.Name != deployment.Name {
			t.Errorf("%s has %s of %s after the abort", deployment.Name, got.Version, got.InfrastructureRef.Name)
		}
	}
	if got := versionOf(w.objects.ControlPlane); got != "v1.37.2" {
		t.Errorf("the control plane is %s: it cannot have gone back", got)
	}
	var states []string
	for _, step := range w.upgrade.Status.Steps {
		states = append(states, step.Name+" "+string(step.State))
	}
	if diff := cmp.Diff([]string{" Done", "a Undone", "b Undone"}, states); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestAStepThatFailsIsRolledBackWhereTheUserWantsThat(t *testing.T) {
	w := newWorld("v1.36.3", "a", "b")
	w.upgrade.Spec.OnFailure = lifecyclev1.FailureRollBack
	w.stuck(t)
	if d := w.step(t); d.phase != lifecyclev1.UpgradeAborting || len(d.undo) > 0 {
		t.Fatalf("phase %s, undone %v; want it told before it is done", d.phase, d.undo)
	}
	if d := w.step(t); !slices.Equal(d.undo, []string{"a"}) {
		t.Fatalf("undone %v; want a", d.undo)
	}
	w.run(t, lifecyclev1.UpgradeAborted)
	if got := w.upgrade.Status.Message; !strings.Contains(got, "rolled back") || !strings.Contains(got, "boots no system") {
		t.Errorf("message is %q; want it to tell the cause", got)
	}
}

func TestABlockedUpgradeMovesNothing(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	s := w.look(t)
	s.blockers = []upgrade.Finding{{Check: upgrade.CheckBudgets, Object: "poddisruptionbudget \"x\"", Message: "it can never allow an eviction"}}
	d := decide(s)
	if d.phase != lifecyclev1.UpgradeBlocked || len(d.moves) > 0 || !strings.Contains(d.message, "can never allow") || d.wake.IsZero() {
		t.Errorf("phase %s, moves %v, message %q, wakes %v", d.phase, d.moves, d.message, d.wake)
	}
}
