package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/workload"
)

// running is a snapshot of a Machine that has everything.
func running(now time.Time, change func(*snapshot)) *snapshot {
	s := &snapshot{
		now: now,
		machine: &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: "m", Generation: 1},
			Spec: clusterv1.MachineSpec{
				ProviderID: "foo://1",
				Bootstrap:  clusterv1.Bootstrap{DataSecretName: new("secret")},
			},
			Status: clusterv1.MachineStatus{
				NodeRef:        clusterv1.MachineNodeReference{Name: "n"},
				Initialization: clusterv1.MachineInitializationStatus{InfrastructureProvisioned: new(true), BootstrapDataSecretCreated: new(true)},
			},
		},
		cluster:        &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		infrastructure: external{ref: clusterv1.ContractVersionedObjectReference{APIGroup: "foo", Kind: "FooMachine", Name: "m"}},
		connection:     &workload.Connection{},
		nodeBefore:     "n",
		node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		},
	}
	s.infrastructure.obj = &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"providerID": "foo://1"},
		"status": map[string]any{"initialization": map[string]any{"provisioned": true}},
	}}
	if change != nil {
		change(s)
	}
	return s
}

// told is a condition as a user reads it.
type told struct{ Status, Reason, Message string }

func conditionOf(m *clusterv1.Machine, conditionType string) told {
	c := conditions.Get(m, conditionType)
	if c == nil {
		return told{}
	}
	return told{string(c.Status), c.Reason, c.Message}
}

func TestConditionsNameTheObjectTheCauseAndTheNextStep(t *testing.T) {
	now := time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC)
	deleted := metav1.NewTime(now.Add(-time.Minute))
	notFound := errors.New("not found")
	for name, tc := range map[string]struct {
		change        func(*snapshot)
		conditionType string
		want          told
	}{
		"all is well": {nil, clusterv1.MachineReadyCondition, told{"True", "Ready", ""}},
		"no infrastructure object yet": {
			func(s *snapshot) {
				s.infrastructure.obj, s.infrastructure.missing = nil, notFound
				s.machine.Status.Initialization.InfrastructureProvisioned = nil
			},
			clusterv1.MachineInfrastructureReadyCondition,
			told{"False", "ObjectDoesNotExist", `FooMachine "m" does not exist (not found): create it or correct spec.infrastructureRef`},
		},
		"an infrastructure object that the maker of a new Machine has not made yet": {
			func(s *snapshot) {
				s.infrastructure.obj, s.infrastructure.missing = nil, notFound
				s.machine.Status.Initialization.InfrastructureProvisioned = nil
				s.machine.CreationTimestamp = metav1.NewTime(s.now.Add(-time.Second))
				s.machine.OwnerReferences = []metav1.OwnerReference{{Kind: "KubeadmControlPlane", Name: "cp", Controller: new(true)}}
			},
			clusterv1.MachineInfrastructureReadyCondition,
			told{"False", "NotReady", `Waiting for KubeadmControlPlane "cp" to make FooMachine "m"`},
		},
		"one that is not made for too long": {
			func(s *snapshot) {
				s.infrastructure.obj, s.infrastructure.missing = nil, notFound
				s.machine.Status.Initialization.InfrastructureProvisioned = nil
				s.machine.CreationTimestamp = metav1.NewTime(s.now.Add(-time.Minute))
				s.machine.OwnerReferences = []metav1.OwnerReference{{Kind: "KubeadmControlPlane", Name: "cp", Controller: new(true)}}
			},
			clusterv1.MachineInfrastructureReadyCondition,
			told{"False", "ObjectDoesNotExist", `FooMachine "m" does not exist (not found): create it or correct spec.infrastructureRef`},
		},
		"the infrastructure object was deleted": {
			func(s *snapshot) { s.infrastructure.obj = nil },
			clusterv1.MachineInfrastructureReadyCondition,
			told{"False", "ObjectDeleted", `FooMachine "m" has been deleted while the Machine still exists: delete the Machine to have it replaced`},
		},
		"a provider that forgets the provider id": {
			func(s *snapshot) { delete(s.infrastructure.obj.Object, "spec") },
			clusterv1.MachineInfrastructureReadyCondition,
			told{"False", "NotReady", `FooMachine "m" says that it is provisioned, but has no spec.providerID: its provider must set it`},
		},
		"the provider's own words": {
			func(s *snapshot) {
				_ = unstructured.SetNestedSlice(s.infrastructure.obj.Object, []any{map[string]any{
					"type": "Ready", "status": "False", "reason": "TemplateNotFound", "message": "no such template",
				}}, "status", "conditions")
			},
			clusterv1.MachineInfrastructureReadyCondition,
			told{"False", "TemplateNotFound", "no such template"},
		},
		"neither a bootstrap config nor a Secret": {
			func(s *snapshot) { s.machine.Spec.Bootstrap.DataSecretName = nil },
			clusterv1.MachineBootstrapConfigReadyCondition,
			told{"False", "NotReady", "Neither spec.bootstrap.configRef nor spec.bootstrap.dataSecretName is set: set one of them"},
		},
		"a Secret of the user's": {nil, clusterv1.MachineBootstrapConfigReadyCondition, told{"True", "DataSecretProvided", ""}},
		"no Node yet": {
			func(s *snapshot) {
				s.node, s.nodeBefore = nil, ""
				s.cluster.Status.Initialization.ControlPlaneInitialized = new(true)
			},
			clusterv1.MachineNodeHealthyCondition,
			told{"Unknown", "InspectionFailed", "Waiting for a Node with spec.providerID foo://1 to exist"},
		},
		"the Node was deleted": {
			func(s *snapshot) { s.node = nil },
			clusterv1.MachineNodeHealthyCondition,
			told{"False", "NodeDeleted", "Node n has been deleted while the Machine still exists: delete the Machine to have it replaced"},
		},
		"the API server has not answered for long": {
			func(s *snapshot) {
				s.node, s.connection = nil, nil
				s.health = workload.Health{Since: now.Add(-time.Hour), LastSuccess: now.Add(-time.Hour)}
			},
			clusterv1.MachineNodeHealthyCondition,
			told{"Unknown", "ConnectionDown", `The API server of Cluster "c" does not answer since 2026-11-30T20:00:00Z`},
		},
		"a Node under pressure": {
			func(s *snapshot) {
				s.node.Status.Conditions = append(s.node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Message: "disk full"})
			},
			clusterv1.MachineReadyCondition,
			told{"False", "NotReady", "* NodeHealthy: Node.DiskPressure: disk full"},
		},
		"a Node that no cloud provider knows": {
			func(s *snapshot) { s.byUUID = true },
			clusterv1.MachineNodeHealthyCondition,
			told{"True", "NodeHealthy", "No cloud provider has set spec.providerID of Node n; it was found by its system UUID. " +
				"Install the cloud provider of the infrastructure: until then the Node keeps the taint that it sets on cloud nodes"},
		},
		"a deletion is short in Ready": {
			func(s *snapshot) {
				s.machine.DeletionTimestamp = &deleted
				s.deletion = &waiting{reason: "DrainingNode", message: "* a long story"}
			},
			clusterv1.MachineReadyCondition,
			told{"False", "NotReady", "* Deleting: Machine deletion in progress, stage: DrainingNode"},
		},
		"a deletion is told in full": {
			func(s *snapshot) {
				s.machine.DeletionTimestamp = &deleted
				s.deletion = &waiting{reason: "DrainingNode", message: "* a long story"}
			},
			clusterv1.MachineDeletingCondition,
			told{"True", "DrainingNode", "* a long story"},
		},
		"a readiness gate that nobody has opened": {
			func(s *snapshot) {
				s.machine.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Licensed"}}
			},
			clusterv1.MachineReadyCondition,
			told{"Unknown", "ReadyUnknown", "* Licensed: Condition Licensed not yet reported"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(now, tc.change)
			report(s)
			if d := cmp.Diff(tc.want, conditionOf(s.machine, tc.conditionType)); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.conditionType, d)
			}
		})
	}
}

func TestNodeConditionsDoNotFlapWhileTheConnectionIsAway(t *testing.T) {
	now := time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC)
	s := running(now, nil)
	report(s)
	before := conditionOf(s.machine, clusterv1.MachineNodeHealthyCondition)

	away := running(now, func(r *snapshot) {
		r.machine = s.machine
		r.node, r.connection = nil, nil
		r.health = workload.Health{Since: now.Add(-10 * time.Second)}
	})
	if again := report(away); again != connectionGrace-10*time.Second {
		t.Errorf("look again after %s, want the rest of the grace period", again)
	}
	if d := cmp.Diff(before, conditionOf(s.machine, clusterv1.MachineNodeHealthyCondition)); d != "" {
		t.Errorf("NodeHealthy changed (-before +after):\n%s", d)
	}
}

func TestAMachineIsAvailableWhenItHasBeenReadyForLongEnough(t *testing.T) {
	now := time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		readyFor, wait time.Duration
		want           told
	}{
		"too early":   {10 * time.Second, 20 * time.Second, told{"False", "WaitingForMinReadySeconds", "Ready since 2026-11-30T20:59:50Z, available when that was 30s ago"}},
		"long enough": {30 * time.Second, 0, told{"True", "Available", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(now, func(s *snapshot) {
				s.machine.Spec.MinReadySeconds = new(int32(30))
				ready := conditions.True(clusterv1.MachineReadyCondition, clusterv1.MachineReadyReason, "")
				ready.LastTransitionTime = metav1.NewTime(now.Add(-tc.readyFor))
				s.machine.Status.Conditions = []metav1.Condition{ready}
			})
			if wait := report(s); wait != tc.wait {
				t.Errorf("look again after %s, want %s", wait, tc.wait)
			}
			if d := cmp.Diff(tc.want, conditionOf(s.machine, clusterv1.MachineAvailableCondition)); d != "" {
				t.Errorf("Available (-want +got):\n%s", d)
			}
		})
	}
}

func TestAnotherReportChangesNothing(t *testing.T) {
	s := running(time.Now(), nil)
	report(s)
	before := s.machine.DeepCopy()
	again := running(s.now.Add(time.Minute), func(r *snapshot) {
		r.machine = s.machine
		r.phaseBefore = s.machine.Status.GetTypedPhase()
	})
	report(again)
	if d := cmp.Diff(before, s.machine); d != "" {
		t.Errorf("a converged Machine changed (-before +after):\n%s", d)
	}
}

func TestTheEndOfCertificatesIsTakenFromAnnotations(t *testing.T) {
	const annotation = clusterv1.MachineCertificatesExpiryDateAnnotation
	early, late := metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)), metav1.NewTime(time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC))
	controlPlane := func(s *snapshot) { s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""} }
	onMachine := func(value string) func(*snapshot) {
		return func(s *snapshot) { s.machine.Annotations = map[string]string{annotation: value} }
	}
	onConfig := func(value string) func(*snapshot) {
		return func(s *snapshot) {
			s.bootstrap.obj = &unstructured.Unstructured{Object: map[string]any{}}
			s.bootstrap.obj.SetAnnotations(map[string]string{annotation: value})
		}
	}
	known := func(s *snapshot) { s.machine.Status.CertificatesExpiryDate = late }
	for name, tc := range map[string]struct {
		changes []func(*snapshot)
		want    metav1.Time
	}{
		"on the Machine":                 {[]func(*snapshot){controlPlane, onMachine("2027-01-01T00:00:00Z")}, early},
		"on its bootstrap config":        {[]func(*snapshot){controlPlane, onConfig("2028-01-01T00:00:00Z")}, late},
		"the Machine's goes first":       {[]func(*snapshot){controlPlane, onConfig("2028-01-01T00:00:00Z"), onMachine("2027-01-01T00:00:00Z")}, early},
		"no annotation any more":         {[]func(*snapshot){controlPlane, known}, metav1.Time{}},
		"none that can be read":          {[]func(*snapshot){controlPlane, onMachine("soon")}, metav1.Time{}},
		"the config cannot be read now":  {[]func(*snapshot){controlPlane, known, func(s *snapshot) { s.bootstrap.failed = errors.New("timeout") }}, late},
		"a worker has none that we know": {[]func(*snapshot){onMachine("2027-01-01T00:00:00Z")}, metav1.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(time.Now(), func(s *snapshot) {
				for _, change := range tc.changes {
					change(s)
				}
			})
			report(s)
			if got := s.machine.Status.CertificatesExpiryDate; !got.Equal(&tc.want) {
				t.Errorf("expiry %s, want %s", got, tc.want)
			}
		})
	}
}
