package lifecycle_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func version(v string) func(*clusterv1.MachineTemplateSpec) {
	return func(m *clusterv1.MachineTemplateSpec) { m.Spec.Version = v }
}

// revision returns the set of one revision of a deployment named workers.
func revision(n int, template clusterv1.MachineTemplateSpec) *clusterv1.MachineSet {
	template.Labels = map[string]string{"team": "a", clusterv1.MachineDeploymentUniqueLabel: "x"}
	return &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: "workers-" + strconv.Itoa(n), Annotations: map[string]string{clusterv1.RevisionAnnotation: strconv.Itoa(n)}},
		Spec:       clusterv1.MachineSetSpec{Template: template},
	}
}

func TestUndoGoesBackToATemplate(t *testing.T) {
	sets := []*clusterv1.MachineSet{
		revision(4, template(version("v1.37.2"))), revision(1, template(version("v1.35.0"))), revision(2, template(version("v1.36.0"))),
		revision(3, template(version("v1.37.2"))), {ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}},
	}
	cases := map[string]struct {
		sets         []*clusterv1.MachineSet
		to           int64
		wantRevision int64
		wantVersion  string
		wantErr      string
	}{
		"the one before, not counting restarts of the same": {sets: sets, wantRevision: 2, wantVersion: "v1.36.0"},
		"one by number":         {sets: sets, to: 1, wantRevision: 1, wantVersion: "v1.35.0"},
		"the present one":       {sets: sets, to: 4, wantErr: "has the template of revision 4 already"},
		"one that is not there": {sets: sets, to: 9, wantErr: "has no revision 9: there are 1, 2, 3, 4"},
		"no history":            {sets: sets[:1], wantErr: "nothing to go back to"},
		"no set at all":         {to: 1, wantErr: "made no MachineSet yet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
			deployment.Spec.Template = template(version("v1.37.2"))
			got, n, err := lifecycle.Undo(deployment, tc.sets, tc.to)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error is %v, want one that says %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || n != tc.wantRevision || got.Spec.Version != tc.wantVersion {
				t.Errorf("revision %d of version %s, %v; want %d of %s", n, got.Spec.Version, err, tc.wantRevision, tc.wantVersion)
			}
			if _, ok := got.Labels[clusterv1.MachineDeploymentUniqueLabel]; ok || got.Labels["team"] != "a" {
				t.Errorf("labels are %v, want those of the deployment's template", got.Labels)
			}
		})
	}
}

func TestASetIsOutOfDateOnceItsTimeHasCome(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		after, made time.Time
		madeFor     string
		want        bool
	}{
		"no time set":              {made: noon.Add(-time.Hour)},
		"not yet":                  {after: noon.Add(time.Second), made: noon.Add(-time.Hour)},
		"made before":              {after: noon, made: noon.Add(-time.Second), want: true},
		"made at that time":        {after: noon, made: noon},
		"made for it":              {after: noon, made: noon.Add(-time.Second), madeFor: "2026-01-01T12:00:00Z"},
		"made for an earlier time": {after: noon, made: noon.Add(-time.Second), madeFor: "2026-01-01T11:00:00Z", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deployment := &clusterv1.MachineDeployment{}
			deployment.Spec.Rollout.After = metav1.NewTime(tc.after)
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
				CreationTimestamp: metav1.NewTime(tc.made), Annotations: map[string]string{lifecycle.RolloutAfterAnnotation: tc.madeFor},
			}}
			if got := lifecycle.OutOfDate(set, deployment, noon); (len(got) > 0) != tc.want {
				t.Errorf("out of date: %q, want %v", got, tc.want)
			}
		})
	}
}
