package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/etcd"
)

func etcdMemberOn(node string, report etcd.Report) etcdMember {
	return etcdMember{machine: &clusterv1.Machine{}, node: node, report: report}
}

func TestDefragmentingGoesFollowersFirstAndOnlyWhileAllAreWell(t *testing.T) {
	leader := etcdMemberOn("a", etcd.Report{Member: 1, Leader: 1})
	follower, other := etcdMemberOn("b", etcd.Report{Member: 2, Leader: 1}), etcdMemberOn("c", etcd.Report{Member: 3, Leader: 1})
	silent := etcdMember{machine: &clusterv1.Machine{}, node: "d", err: errors.New("connection refused")}
	tests := map[string]struct {
		members   []etcdMember
		want      []string
		wantError string
	}{
		"the only member":               {members: []etcdMember{leader}, want: []string{"a"}},
		"the leader goes last":          {members: []etcdMember{leader, follower, other}, want: []string{"b", "c", "a"}},
		"a full member is to be helped": {members: []etcdMember{etcdMemberOn("a", etcd.Report{Member: 1, Leader: 1, Errors: []string{"memberID:1 alarm:NOSPACE"}})}, want: []string{"a"}},
		"a member is silent":            {members: []etcdMember{leader, silent}, wantError: `etcd member "d": connection refused`},
		"a member is corrupt":           {members: []etcdMember{etcdMemberOn("a", etcd.Report{Member: 1, Leader: 1, Errors: []string{"CORRUPT"}})}, wantError: "CORRUPT"},
		"no leader":                     {members: []etcdMember{etcdMemberOn("a", etcd.Report{Member: 1})}, wantError: "no leader"},
		"two leaders":                   {members: []etcdMember{leader, etcdMemberOn("b", etcd.Report{Member: 2, Leader: 2})}, wantError: "do not agree"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			order, err := defragOrder(tc.members)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Fatalf("error %v, want one with %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range order {
				got = append(got, m.node)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSnapshotIsTakenFromAFollowerThatIsWell(t *testing.T) {
	leader := etcdMemberOn("leader", etcd.Report{Member: 1, Leader: 1, Revision: 9})
	tests := map[string]struct {
		members []etcdMember
		want    string
	}{
		"the only member":           {members: []etcdMember{leader}, want: "leader"},
		"a follower":                {members: []etcdMember{leader, etcdMemberOn("b", etcd.Report{Member: 2, Leader: 1, Revision: 8})}, want: "b"},
		"the follower further on":   {members: []etcdMember{etcdMemberOn("b", etcd.Report{Member: 2, Leader: 1, Revision: 7}), etcdMemberOn("c", etcd.Report{Member: 3, Leader: 1, Revision: 8}), leader}, want: "c"},
		"not a learner":             {members: []etcdMember{etcdMemberOn("b", etcd.Report{Member: 2, Leader: 1, Learner: true}), leader}, want: "leader"},
		"not one without a leader":  {members: []etcdMember{etcdMemberOn("b", etcd.Report{Member: 2})}},
		"not one that is not there": {members: []etcdMember{{machine: &clusterv1.Machine{}, node: "b", err: errors.New("refused")}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := snapshotSource(tc.members)
			if (err != nil) != (tc.want == "") || got.node != tc.want {
				t.Errorf("got %q, %v, want %q", got.node, err, tc.want)
			}
		})
	}
}

func TestFileHasItsNameOnlyWhenItIsWhole(t *testing.T) {
	tests := map[string]struct {
		exists, replace bool
		fail            error
		want            string
	}{
		"new":                           {want: "new"},
		"in the place of another":       {exists: true, replace: true, want: "new"},
		"not in the place of another":   {exists: true, want: "old"},
		"failed":                        {fail: errors.New("cut off")},
		"failed, and the old one stays": {exists: true, replace: true, fail: errors.New("cut off"), want: "old"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "prod.db")
			if tc.exists {
				if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := writeWhole(path, tc.replace, func(out io.Writer) (int64, error) {
				n, _ := io.WriteString(out, "new")
				return int64(n), tc.fail
			})
			if (err == nil) != (tc.want == "new") {
				t.Fatalf("error %v", err)
			}
			got, _ := os.ReadFile(path)
			if string(got) != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) > 1 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestSizesAreWrittenInUnitsOf1024(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 30: "3.0 GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
