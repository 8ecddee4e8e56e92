package controlplane

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/internal/etcd"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// lostAfter is how long an API server is silent before people are told how to bring it back.
const lostAfter = 5 * time.Minute

// quorumLost tells whether etcd has no quorum, or that may be why the API server does not answer.
func quorumLost(s *snapshot) bool {
	return s.initialized() && s.stackedEtcd() && (!s.workload.connected || errors.Is(s.workload.etcdErr, etcd.ErrNoLeader))
}

// recoverySteps tells a person what to do about a control plane that does not answer, one step a line.
func recoverySteps(s *snapshot) string {
	var names []string
	for _, r := range s.replicas {
		if r.node() != "" {
			names = append(names, r.machine.Name)
		}
	}
	need := quorum(len(names))
	var steps []string
	switch {
	case len(names) == 0:
		steps = append(steps, "No machine is left that ever joined")
	case len(names) == 1:
		steps = append(steps, fmt.Sprintf("Start the host of Machine %s: what etcd holds is there alone, and nothing is deleted", names[0]))
	default:
		steps = append(steps, fmt.Sprintf("Start the hosts of Machines %s: as soon as %d of the %d run, etcd agrees again and all else is done here; nothing is deleted meanwhile",
			strings.Join(names, ", "), need, len(names)))
	}
	steps = append(steps,
		fmt.Sprintf("If the network between the operator and %s is at fault, mend that: nothing else is needed", s.cluster.Spec.ControlPlaneEndpoint.String()),
		fmt.Sprintf("If too few hosts can be started, what they hold is lost: have a snapshot of etcd ready (kubectl machines etcd snapshot), "+
			"let spec.kubeadmConfigSpec.preKubeadmCommands restore it, and annotate the KubeadmControlPlane with %s=%s: its Machines are deleted, and a new one begins from the snapshot, "+
			"or empty without one (docs/control-planes.md)", lifecycle.BeginAnewAnnotation, s.controlPlane.Name))
	for i := range steps {
		steps[i] = fmt.Sprintf("%d. %s", i+1, steps[i])
	}
	return strings.Join(steps, "\n")
}
