package machinedeployment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func makeDeployment(replicas *int32, change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workers", UID: "deployment"},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "prod",
			Replicas:    replicas,
			Template:    clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{ClusterName: "prod", Version: "v1.37.2"}},
		},
	}
	if err := setDefaults(deployment, nil); err != nil {
		panic(err)
	}
	deployment.Spec.Replicas = replicas
	for _, f := range change {
		f(deployment)
	}
	return deployment
}

// makeSet returns a set as an earlier reconcile of the deployment left it, of a Kubernetes version. Its controller has
// acted on it.
func makeSet(deployment *clusterv1.MachineDeployment, version string, revision int64, replicas int32, change ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	of := deployment.DeepCopy()
	of.Spec.Template.Spec.Version = version
	of.Spec.Replicas = ptr.To(ptr.Deref(of.Spec.Replicas, 0))
	set := newSet(snapshot{deployment: of, now: epoch}, revision)
	set.UID = types.UID(strconv.FormatInt(revision, 10))
	set.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(revision) * time.Hour))
	set.Spec.Replicas, set.Status.Replicas = &replicas, &replicas
	for _, f := range change {
		f(set)
	}
	return set
}

// withMachines returns available Machines for sets, as many as they have replicas.
func withMachines(sets []*clusterv1.MachineSet) map[types.UID][]*clusterv1.Machine {
	out := map[types.UID][]*clusterv1.Machine{}
	for _, set := range sets {
		for i := range *set.Spec.Replicas {
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(set.Name, i), UID: types.UID(fmt.Sprint(set.UID, "/", i))}}
			conditions.Set(machine, conditions.True(clusterv1.MachineAvailableCondition, "Available", ""))
			out[set.UID] = append(out[set.UID], machine)
		}
	}
	return out
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type sizes map[string]int32

func nameOf(version string, salt ...string) string {
	return "workers-" + lifecycle.TemplateHash(clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{ClusterName: "prod", Version: version}}, salt...)
}

func TestPlanKeepsTheSetsOfADeployment(t *testing.T) {
	const before, now = "v1.36.3", "v1.37.2"
	d := func(n int32, change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
		return makeDeployment(&n, change...)
	}
	isPaused := func(d *clusterv1.MachineDeployment) { d.Spec.Paused = ptr.To(true) }
	onDeletion := func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}
	}
	restarted := func(after time.Duration) func(*clusterv1.MachineDeployment) {
		return func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After = metav1.NewTime(epoch.Add(after)) }
	}
	unsettled := func(s *clusterv1.MachineSet) { s.Generation = 2 }

	cases := map[string]struct {
		deployment           *clusterv1.MachineDeployment
		sets, orphans        []*clusterv1.MachineSet
		adopt, removed       []string
		created, updated     sizes
		wantRevision         int64
		wantCreatedRevisions string
	}{
		"the first set takes all": {
			deployment: d(3), created: sizes{nameOf(now): 3}, wantRevision: 1, wantCreatedRevisions: "1",
		},
		"nothing to do": {
			deployment: d(3), sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3)}, wantRevision: 1,
		},
		"scale up": {
			deployment: d(5), sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3)}, updated: sizes{nameOf(now): 5}, wantRevision: 1,
		},
		"scale to none": {
			deployment: d(0), sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3)}, updated: sizes{nameOf(now): 0}, wantRevision: 1,
		},
		"a changed template begins a rollout": {
			deployment: d(3), sets: []*clusterv1.MachineSet{makeSet(d(3), before, 1, 3)},
			created: sizes{nameOf(now): 1}, wantRevision: 2, wantCreatedRevisions: "2",
		},
		"a rollout goes on": {
			deployment: d(3), sets: []*clusterv1.MachineSet{makeSet(d(3), before, 1, 3), makeSet(d(3), now, 2, 1)},
			updated: sizes{nameOf(before): 2}, wantRevision: 2,
		},
		"a set that has not acted is waited for": {
			deployment: d(3), sets: []*clusterv1.MachineSet{makeSet(d(3), before, 1, 3), makeSet(d(3), now, 2, 1, unsettled)}, wantRevision: 2,
		},
		"a new set waits at nothing": {
			deployment: d(3), sets: []*clusterv1.MachineSet{makeSet(d(3), before, 1, 3, unsettled)},
			created: sizes{nameOf(now): 0}, wantRevision: 2, wantCreatedRevisions: "2",
		},
		"a template that is back takes its old set, with a new revision": {
			deployment: d(3), sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 0), makeSet(d(3), before, 2, 3)},
			updated: sizes{nameOf(now): 1}, wantRevision: 3,
		},
		"a changed template while paused waits": {
			deployment: d(3, isPaused), sets: []*clusterv1.MachineSet{makeSet(d(3), before, 1, 3)},
		},
		"scaling goes on while paused": {
			deployment: d(5, isPaused), sets: []*clusterv1.MachineSet{makeSet(d(3), before, 1, 3)}, updated: sizes{nameOf(before): 5},
		},
		"on deletion the old set makes no more": {
			deployment: d(3, onDeletion), sets: []*clusterv1.MachineSet{makeSet(d(3, onDeletion), before, 1, 3)},
			created: sizes{nameOf(now): 0}, updated: sizes{nameOf(before): 3}, wantRevision: 2, wantCreatedRevisions: "2",
		},
		"a rollout is not begun before its time": {
			deployment: d(3, restarted(100*time.Hour)), sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3)}, wantRevision: 1,
		},
		"a rollout after a time makes a second set of the same template": {
			deployment: d(3, restarted(2*time.Hour)), sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3)},
			created: sizes{nameOf(now, "1"): 1}, wantRevision: 2, wantCreatedRevisions: "2",
		},
		"a set made after that time stays": {
			deployment: d(3, restarted(30*time.Minute)), sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3)}, wantRevision: 1,
		},
		"and so does one that was made for it by a clock that is behind": {
			deployment: d(3, restarted(2*time.Hour)),
			sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3, func(s *clusterv1.MachineSet) {
				s.Annotations[lifecycle.RolloutAfterAnnotation] = "2026-01-01T02:00:00Z"
			})},
			wantRevision: 1,
		},
		"an orphan with our template is adopted and scaled": {
			deployment: d(3),
			orphans:    []*clusterv1.MachineSet{makeSet(d(3), now, 1, 1)},
			adopt:      []string{nameOf(now)}, updated: sizes{nameOf(now): 3}, wantRevision: 1,
		},
		"an orphan of another cluster is left alone, and so is its name": {
			deployment: d(3),
			orphans:    []*clusterv1.MachineSet{makeSet(d(3), now, 1, 1, func(s *clusterv1.MachineSet) { s.Spec.ClusterName = "dev" })},
			created:    sizes{nameOf(now, "1"): 3}, wantRevision: 1, wantCreatedRevisions: "1",
		},
		"unset replicas change nothing": {
			deployment: makeDeployment(nil), sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3)},
		},
		"the deletion order follows the deployment": {
			deployment: d(3, func(d *clusterv1.MachineDeployment) { d.Spec.Deletion.Order = clusterv1.OldestMachineSetDeletionOrder }),
			sets:       []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3)}, updated: sizes{nameOf(now): 3}, wantRevision: 1,
		},
		"history stays as it was": {
			deployment:   d(3, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Annotations = map[string]string{"note": "x"} }),
			sets:         []*clusterv1.MachineSet{makeSet(d(3), before, 1, 0), makeSet(d(3), now, 2, 3)},
			updated:      sizes{nameOf(now): 3},
			wantRevision: 2,
		},
		"labels that the selector misses reach neither sets nor Machines": {
			deployment: d(5, func(d *clusterv1.MachineDeployment) {
				d.Spec.Template.Labels = map[string]string{"tier": "web"}
				d.Spec.Template.Spec.Version = "v1.38.0"
			}),
			sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3)}, updated: sizes{nameOf(now): 5},
		},
		"of equal sets the one with Machines is current": {
			deployment: d(3), sets: []*clusterv1.MachineSet{makeSet(d(3), now, 1, 3), makeSet(d(3), now, 2, 0)},
			updated: sizes{nameOf(now): 3}, wantRevision: 3,
		},
		"a deployment being deleted deletes its sets": {
			deployment: d(3, func(d *clusterv1.MachineDeployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }),
			sets: []*clusterv1.MachineSet{
				makeSet(d(3), now, 2, 3),
				makeSet(d(3), before, 1, 0, func(s *clusterv1.MachineSet) { s.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }),
			},
			removed: []string{nameOf(now)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := makePlan(snapshot{
				deployment: tc.deployment, sets: tc.sets, orphans: tc.orphans, now: epoch.Add(50 * time.Hour),
				machines: withMachines(slices.Concat(tc.sets, tc.orphans)),
			})
			var created sizes
			revisions := ""
			if got.create != nil {
				created = sizes{got.create.Name: *got.create.Spec.Replicas}
				revisions = got.create.Annotations[clusterv1.RevisionAnnotation]
			}
			var updated sizes
			for _, set := range got.update {
				if updated == nil {
					updated = sizes{}
				}
				updated[set.Name] = *set.Spec.Replicas
			}
			for what, diff := range map[string]string{
				"adopt":     cmp.Diff(tc.adopt, names(got.adopt)),
				"create":    cmp.Diff(tc.created, created),
				"update":    cmp.Diff(tc.updated, updated),
				"remove":    cmp.Diff(tc.removed, names(got.remove)),
				"revision":  cmp.Diff(tc.wantRevision, got.revision),
				"revisions": cmp.Diff(tc.wantCreatedRevisions, revisions),
			} {
				if diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

func TestHistoryIsKeptUpToALimitOnceTheRolloutIsOver(t *testing.T) {
	deployment := makeDeployment(ptr.To[int32](3))
	sets := []*clusterv1.MachineSet{makeSet(deployment, "v1.37.2", 100, 3)}
	for i := range int64(lifecycle.HistoryLimit + 2) {
		sets = append(sets, makeSet(deployment, fmt.Sprintf("v1.30.%d", i), i+1, 0))
	}
	s := snapshot{deployment: deployment, sets: sets, now: epoch, machines: withMachines(sets)}
	if diff := cmp.Diff([]string{nameOf("v1.30.0"), nameOf("v1.30.1")}, names(makePlan(s).remove)); diff != "" {
		t.Errorf("the oldest are to go (-want +got):\n%s", diff)
	}

	sets[len(sets)-1].Spec.Replicas = ptr.To[int32](1)
	if got := names(makePlan(s).remove); got != nil {
		t.Errorf("%q are forgotten while a rollout is under way", got)
	}
}

func TestWhatNeedsNoRolloutIsBroughtOntoTheSet(t *testing.T) {
	deployment := makeDeployment(ptr.To[int32](3), func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{"team": "a", "gone": "soon", corev1.LastAppliedConfigAnnotation: "{}"}
		d.Spec.Template.Labels["tier"] = "web"
	})
	set := makeSet(deployment, "v1.37.2", 1, 3)
	set.Annotations["mine"] = "kept"

	delete(deployment.Annotations, "gone")
	deployment.Annotations["team"] = "b"
	delete(deployment.Spec.Template.Labels, "tier")
	deployment.Spec.Template.Annotations = map[string]string{"note": "x"}
	deployment.Spec.Template.Spec.MinReadySeconds = ptr.To[int32](7)
	deployment.Spec.Template.Spec.Taints = []clusterv1.MachineTaint{{Key: "gpu", Effect: "NoSchedule"}}
	deployment.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](60)
	deployment.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Ours"}}
	deployment.Spec.MachineNaming.Template = "{{ .machineSet.name }}-{{ .random }}"

	p := makePlan(snapshot{deployment: deployment, sets: []*clusterv1.MachineSet{set}, now: epoch, machines: withMachines([]*clusterv1.MachineSet{set})})
	if p.create != nil || len(p.update) != 1 {
		t.Fatalf("plan is %+v, want one set updated and none made", p)
	}
	got := p.update[0]
	unique := set.Labels[clusterv1.MachineDeploymentUniqueLabel]
	wantLabels := map[string]string{
		clusterv1.ClusterNameLabel: "prod", clusterv1.MachineDeploymentNameLabel: "workers", clusterv1.MachineDeploymentUniqueLabel: unique,
	}
	wantTemplate := deployment.Spec.Template
	wantTemplate.Labels = wantLabels
	wantAnnotations := map[string]string{
		"team": "b", "mine": "kept", lifecycle.PropagatedAnnotation: ";team",
		clusterv1.RevisionAnnotation: "1", clusterv1.DesiredReplicasAnnotation: "3", clusterv1.MaxReplicasAnnotation: "4",
	}
	for what, diff := range map[string]string{
		"labels":      cmp.Diff(wantLabels, got.Labels),
		"annotations": cmp.Diff(wantAnnotations, got.Annotations),
		"template":    cmp.Diff(wantTemplate, got.Spec.Template),
		"naming":      cmp.Diff(deployment.Spec.MachineNaming, got.Spec.MachineNaming),
	} {
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestMachinesAreNotLostByALabelThatTheSelectorMisses(t *testing.T) {
	deployment := makeDeployment(ptr.To[int32](3))
	set := makeSet(deployment, "v1.37.2", 1, 3)
	deployment.Spec.Replicas = ptr.To[int32](4)
	deployment.Spec.Template.Labels = map[string]string{"tier": "web"}
	p := makePlan(snapshot{deployment: deployment, sets: []*clusterv1.MachineSet{set}, now: epoch, machines: withMachines([]*clusterv1.MachineSet{set})})
	if len(p.update) != 1 || *p.update[0].Spec.Replicas != 4 {
		t.Fatalf("plan is %+v, want the set scaled to 4", p)
	}
	if diff := cmp.Diff(set.Spec.Template, p.update[0].Spec.Template); diff != "" {
		t.Errorf("the template of the set changed (-before +after):\n%s", diff)
	}
	deployment.Spec.Paused = nil
	if causes := blocked(deployment, observation{}); len(causes) != 1 || !strings.Contains(causes[0], "spec.selector does not match") {
		t.Errorf("it is told as %q", causes)
	}
}

func names(sets []*clusterv1.MachineSet) []string {
	var out []string
	for _, set := range sets {
		out = append(out, set.Name)
	}
	return out
}

func TestANewSetSelectsTheMachinesOfItsTemplate(t *testing.T) {
	deployment := makeDeployment(ptr.To[int32](3), func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("34%"))
	})
	set := newSet(snapshot{deployment: deployment, now: epoch}, 1)

	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	want := "cluster.x-k8s.io/cluster-name=prod,cluster.x-k8s.io/deployment-name=workers,machine-template-hash=" +
		lifecycle.TemplateHash(deployment.Spec.Template)
	if selector.String() != want {
		t.Errorf("selector is %q, want %q", selector, want)
	}
	if diff := cmp.Diff(set.Spec.Template.Labels, set.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("the selector differs from the labels of the template:\n%s", diff)
	}
	wantAnnotations := map[string]string{
		clusterv1.RevisionAnnotation: "1", clusterv1.DesiredReplicasAnnotation: "3", clusterv1.MaxReplicasAnnotation: "5",
	}
	if diff := cmp.Diff(wantAnnotations, set.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(set, deployment) {
		t.Errorf("the deployment is not the controller of its set: %+v", set.OwnerReferences)
	}
}

func TestAvailableAllowsForMaxUnavailable(t *testing.T) {
	cases := map[string]struct {
		want, have     int32
		maxUnavailable intstr.IntOrString
		available      bool
	}{
		"all":                         {4, 4, intstr.FromInt32(0), true},
		"one missing, none allowed":   {4, 3, intstr.FromInt32(0), false},
		"one missing, one allowed":    {4, 3, intstr.FromInt32(1), true},
		"a percentage rounds down":    {5, 3, intstr.FromString("39%"), false},
		"none wanted":                 {0, 0, intstr.FromInt32(0), true},
		"what does not parse is none": {4, 3, intstr.FromString("many"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deployment := makeDeployment(&tc.want)
			deployment.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = &tc.maxUnavailable
			deployment.Status.AvailableReplicas = &tc.have
			if got := available(deployment, observation{}); (got.Status == metav1.ConditionTrue) != tc.available {
				t.Errorf("Available is %s: %s", got.Status, got.Message)
			}
		})
	}
}
