package app

import (
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/vcenter"
	"github.com/millwright-dev/millwright/internal/workload"
	"github.com/millwright-dev/millwright/operator/addons/addon"
	"github.com/millwright-dev/millwright/operator/addons/release"
	"github.com/millwright-dev/millwright/operator/core/cluster"
	"github.com/millwright-dev/millwright/operator/core/machine"
	"github.com/millwright-dev/millwright/operator/core/machinedeployment"
	"github.com/millwright-dev/millwright/operator/core/machinehealthcheck"
	"github.com/millwright-dev/millwright/operator/core/machineset"
	"github.com/millwright-dev/millwright/operator/kubeadm/bootstrap"
	"github.com/millwright-dev/millwright/operator/kubeadm/controlplane"
	"github.com/millwright-dev/millwright/operator/upgrade"
	vspherecluster "github.com/millwright-dev/millwright/operator/vsphere/cluster"
	"github.com/millwright-dev/millwright/operator/vsphere/image"
	vspheremachine "github.com/millwright-dev/millwright/operator/vsphere/machine"
)

// group is a set of controllers that is started as a whole or not at all.
type group struct {
	name string
	// upstreamLeases are the leader-election Leases of the upstream controllers of the same kinds.
	upstreamLeases []string
	add            func(*setup) error
}

// groups returns all groups in the order in which they are started.
func groups() []group {
	return []group{
		{name: "core", upstreamLeases: []string{"controller-leader-election-capi"}, add: addCore},
		{name: "kubeadm", upstreamLeases: []string{
			"kubeadm-bootstrap-manager-leader-election-capi",
			"kubeadm-control-plane-manager-leader-election-capi",
		}, add: addKubeadm},
		{name: "vsphere", upstreamLeases: []string{"capv-controller-manager-runtime"}, add: addVSphere},
		// Upstream has nothing that reconciles these kinds.
		{name: "addons", add: addAddons},
		// Nobody else upgrades whole clusters.
		{name: "upgrade", add: addUpgrade},
	}
}

func groupNames() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

// setup is what the controllers of all groups share.
type setup struct {
	mgr      ctrl.Manager
	options  Options
	workload *workload.Pool
	sessions *vcenter.Pool
}

func newSetup(mgr ctrl.Manager, o Options) (*setup, error) {
	pool := workload.NewPool(mgr.GetClient(), workload.Options{UserAgent: mgr.GetConfig().UserAgent})
	if err := mgr.Add(pool); err != nil {
		return nil, err
	}
	sessions := vcenter.NewPool(vcenter.Options{Log: mgr.GetLogger().WithName("vcenter"), Metrics: vcenterMetrics()})
	if err := mgr.Add(sessions); err != nil {
		return nil, err
	}
	return &setup{mgr: mgr, options: o, workload: pool, sessions: sessions}, nil
}

// reconciler is what every controller's package has.
type reconciler interface {
	SetupWithManager(ctrl.Manager, controller.Options) error
}

func (s *setup) add(reconcilers ...reconciler) error {
	for _, r := range reconcilers {
		// A rate limiter counts failures by object and must not be shared between kinds.
		if err := r.SetupWithManager(s.mgr, controllerOptions(s.options)); err != nil {
			return err
		}
	}
	return nil
}

func addCore(s *setup) error {
	c, live := s.mgr.GetClient(), s.mgr.GetAPIReader()
	return s.add(
		&cluster.Reconciler{Client: c, Workload: s.workload, Recorder: s.mgr.GetEventRecorder("millwright-cluster")},
		&machinedeployment.Reconciler{Client: c, Live: live, Recorder: s.mgr.GetEventRecorder("millwright-machinedeployment")},
		&machineset.Reconciler{Client: c, Live: live, Recorder: s.mgr.GetEventRecorder("millwright-machineset")},
		&machinehealthcheck.Reconciler{Client: c, Workload: s.workload, Recorder: s.mgr.GetEventRecorder("millwright-machinehealthcheck")},
		&machine.Reconciler{Client: c, Live: live, Workload: s.workload, Recorder: s.mgr.GetEventRecorder("millwright-machine")},
	)
}

func addKubeadm(s *setup) error {
	c, live := s.mgr.GetClient(), s.mgr.GetAPIReader()
	return s.add(
		&bootstrap.Reconciler{Client: c, Live: live, Workload: s.workload},
		&controlplane.Reconciler{Client: c, Live: live, Workload: s.workload, Recorder: s.mgr.GetEventRecorder("millwright-kubeadm-controlplane")},
	)
}

func addVSphere(s *setup) error {
	c, live, namespace, sessions := s.mgr.GetClient(), s.mgr.GetAPIReader(), s.options.OperatorNamespace, s.sessions
	return s.add(
		&vspherecluster.Reconciler{Client: c, Live: live, Sessions: sessions, Namespace: namespace, Recorder: s.mgr.GetEventRecorder("millwright-vspherecluster")},
		&vspheremachine.Reconciler{Client: c, Live: live, Sessions: sessions, Namespace: namespace, Recorder: s.mgr.GetEventRecorder("millwright-vspheremachine")},
	)
}

func addAddons(s *setup) error {
	c, live := s.mgr.GetClient(), s.mgr.GetAPIReader()
	catalogue, err := s.options.catalogue()
	if err != nil {
		return err
	}
	return s.add(
		&addon.Reconciler{Client: c, Live: live, Recorder: s.mgr.GetEventRecorder("millwright-addon"), Catalogue: catalogue},
		&release.Reconciler{
			Client: c, Live: live, Workload: s.workload, Recorder: s.mgr.GetEventRecorder("millwright-addonrelease"),
			Catalogue: catalogue, Fetcher: &bundle.Fetcher{Cache: s.options.Cache, Mirror: s.options.Mirror},
		},
	)
}

func addUpgrade(s *setup) error {
	c, live := s.mgr.GetClient(), s.mgr.GetAPIReader()
	catalogue, err := s.options.catalogue()
	if err != nil {
		return err
	}
	return s.add(&upgrade.Reconciler{
		Catalogue: catalogue,
		Client:    c, Live: live, Workload: s.workload, Recorder: s.mgr.GetEventRecorder("millwright-clusterupgrade"),
		Images: &image.Lister{Client: c, Live: live, Sessions: s.sessions, Namespace: s.options.OperatorNamespace},
	})
}

// vcenterMetrics are registered once in a process, however many operators tests start in it.
var vcenterMetrics = sync.OnceValue(func() *vcenter.Metrics { return vcenter.NewMetrics(metrics.Registry) })
