package lifecycle_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func templateObject(kind, uid string, generation int64, memory int64) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": map[string]any{"memoryMiB": memory}}}
	obj.SetName("small")
	obj.SetUID(types.UID(uid))
	obj.SetGeneration(generation)
	return obj
}

func TestAnEditOfATemplateObjectIsTold(t *testing.T) {
	bootstrap := templateObject("KubeadmConfigTemplate", "b", 1, 0)
	before := templateObject("VSphereMachineTemplate", "a", 1, 4096)
	cases := map[string]struct {
		now        *unstructured.Unstructured
		recorded   string
		wantStatus metav1.ConditionStatus
	}{
		"as it was":                                  {now: before, wantStatus: metav1.ConditionFalse},
		"edited":                                     {now: templateObject("VSphereMachineTemplate", "a", 2, 8192), wantStatus: metav1.ConditionTrue},
		"edited and put back":                        {now: templateObject("VSphereMachineTemplate", "a", 3, 4096), wantStatus: metav1.ConditionFalse},
		"made anew with other content":               {now: templateObject("VSphereMachineTemplate", "z", 1, 8192), wantStatus: metav1.ConditionTrue},
		"restored from a backup":                     {now: templateObject("VSphereMachineTemplate", "z", 1, 4096), wantStatus: metav1.ConditionFalse},
		"given defaults by a new provider":           {now: templateObject("VSphereMachineTemplate", "a", 1, 8192), wantStatus: metav1.ConditionFalse},
		"a Machine of which nothing is recorded":     {now: templateObject("VSphereMachineTemplate", "a", 2, 8192), recorded: "none", wantStatus: metav1.ConditionFalse},
		"another kind than the Machine's own one is": {now: templateObject("FooMachineTemplate", "a", 2, 8192), wantStatus: metav1.ConditionFalse},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record := lifecycle.Fingerprints(bootstrap, before)
			if tc.recorded != "" {
				record = tc.recorded
			}
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{lifecycle.TemplateContentAnnotation: record}}}
			got := lifecycle.ContentChanged([]*clusterv1.Machine{machine, {}}, bootstrap, tc.now)
			if got.Status != tc.wantStatus {
				t.Fatalf("condition is %s %q, want %s", got.Status, got.Message, tc.wantStatus)
			}
			if got.Status == metav1.ConditionTrue && !strings.Contains(got.Message, "VSphereMachineTemplate small was edited after 1 of 2 Machines") {
				t.Errorf("message is %q", got.Message)
			}

			set := &clusterv1.MachineSet{}
			conditions.Set(set, got)
			if of := lifecycle.ContentChangedIn([]*clusterv1.MachineSet{set, {}}); of.Status != got.Status || of.Message != got.Message {
				t.Errorf("the deployment says %s %q, its set %s %q", of.Status, of.Message, got.Status, got.Message)
			}
		})
	}
}
