package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/millwright-dev/millwright/internal/conditions"
)

func TestAStepThatIsGivenUpIsAnnouncedOnce(t *testing.T) {
	now := time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC)
	long := metav1.NewTime(now.Add(-time.Hour))
	for name, tc := range map[string]struct {
		step   func(*Reconciler) step
		stood  string
		events []string
	}{
		"a drain, by the reconcile that gives it up": {
			func(r *Reconciler) step { return r.drain }, clusterv1.MachineDeletingDrainingNodeReason,
			[]string{"Warning NodeDrainTimeout Gave up draining after nodeDrainTimeoutSeconds"},
		},
		"a drain, by a later one": {
			func(r *Reconciler) step { return r.drain }, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, nil,
		},
		"the wait for volumes, by the reconcile that gives it up": {
			func(r *Reconciler) step { return r.waitForVolumes }, clusterv1.MachineDeletingWaitingForVolumeDetachReason,
			[]string{"Warning NodeVolumeDetachTimeout Gave up waiting for volumes after nodeVolumeDetachTimeoutSeconds"},
		},
		"the wait for volumes, by a later one": {
			func(r *Reconciler) step { return r.waitForVolumes }, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(now, func(s *snapshot) {
				s.machine.DeletionTimestamp = &long
				s.machine.Spec.Deletion = clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(1)), NodeVolumeDetachTimeoutSeconds: new(int32(1))}
				s.machine.Status.Deletion = &clusterv1.MachineDeletionStatus{NodeDrainStartTime: long, WaitForNodeVolumeDetachStartTime: long}
				conditions.Set(s.machine, conditions.True(clusterv1.MachineDeletingCondition, tc.stood, ""))
			})
			recorder := events.NewFakeRecorder(8)
			if wait, err := tc.step(&Reconciler{Recorder: recorder})(t.Context(), s); wait != nil || err != nil {
				t.Fatalf("the step is not passed: %+v, %v", wait, err)
			}
			close(recorder.Events)
			var told []string
			for event := range recorder.Events {
				told = append(told, event)
			}
			if d := cmp.Diff(tc.events, told); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
		})
	}
}

func TestAnObjectThatNothingGuardsIsDeletedOnlyAsItWasSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		// seen and held are the finalizers in the cache and in the API server, which has a later version of the object.
		seen, held []string
		deleted    bool
	}{
		// Its virtual machine has just been asked for. The real API server would remove it despite the finalizer.
		"its provider has guarded it since": {nil, []string{"foo/machine"}, false},
		"it was changed otherwise":          {nil, nil, false},
		"it was guarded already":            {[]string{"foo/machine"}, []string{"foo/machine"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			held := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "foo/v1", "kind": "FooMachine"}}
			held.SetNamespace("fleet")
			held.SetName("m")
			held.SetResourceVersion("2")
			held.SetFinalizers(tc.held)
			seen := held.DeepCopy()
			seen.SetResourceVersion("1")
			seen.SetFinalizers(tc.seen)
			c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(held).Build()

			s := running(time.Now(), func(s *snapshot) { s.infrastructure.obj = seen })
			wait, err := (&Reconciler{Client: c}).deleteInfrastructure(t.Context(), s)
			if err != nil || wait == nil {
				t.Fatalf("it is not waited for: %+v, %v", wait, err)
			}
			err = c.Get(t.Context(), client.ObjectKeyFromObject(held), held)
			if err != nil {
				t.Fatal(err)
			}
			if deleted := held.GetDeletionTimestamp() != nil; deleted != tc.deleted {
				t.Errorf("deleted: %v, want %v", deleted, tc.deleted)
			}
			if again := wait.after > 0; again == tc.deleted {
				t.Errorf("it is looked at again after %s", wait.after)
			}
		})
	}
}

func TestANodeThatIsGivenUpIsAnnouncedOnlyWhileTheMachineIsThere(t *testing.T) {
	now := time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC)
	long := metav1.NewTime(now.Add(-time.Hour))
	for name, tc := range map[string]struct {
		held func(*clusterv1.Machine)
		told int
	}{
		"it is there":                    {func(*clusterv1.Machine) {}, 1},
		"only another's finalizer holds": {func(m *clusterv1.Machine) { m.Finalizers = []string{"foo/other"} }, 0},
		"it is gone":                     {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(now, func(s *snapshot) {
				s.machine.Namespace, s.machine.Finalizers, s.machine.DeletionTimestamp = "fleet", []string{clusterv1.MachineFinalizer}, &long
				s.machine.Spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(1))
				s.nodeErr = errors.New("forbidden")
			})
			scheme := runtime.NewScheme()
			if err := clusterv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			live := fake.NewClientBuilder().WithScheme(scheme)
			if tc.held != nil {
				held := s.machine.DeepCopy()
				tc.held(held)
				live.WithObjects(held)
			}
			recorder := events.NewFakeRecorder(8)
			if wait, err := (&Reconciler{Live: live.Build(), Recorder: recorder}).deleteNode(t.Context(), s); wait != nil || err != nil {
				t.Fatalf("the step is not passed: %+v, %v", wait, err)
			}
			if told := len(recorder.Events); told != tc.told {
				t.Errorf("%d events, want %d", told, tc.told)
			}
		})
	}
}
