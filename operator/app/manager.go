package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=millwright-system,resources=leases,verbs=get;create;update

// leaseName is the Lease that the acting operator holds.
const leaseName = "millwright-operator"

// Leader election: a standby takes over within leaseDuration of the leader's death; renewDeadline and retryPeriod are
// in the proportion that client-go asks for.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// shutdownTimeout is how long running reconciles may take to end, within the 30 s that a pod has.
const shutdownTimeout = 20 * time.Second

// Retries of a failed reconcile: soon at first, for what heals by itself, and never more than half a minute apart, so
// that a vCenter that comes back is noticed.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// NewManager returns a manager with the controllers of the groups asked for. Groups that a live upstream controller
// keeps from starting are logged and left out; it is an error when none remains.
func NewManager(ctx context.Context, connection *rest.Config, o Options, log logr.Logger) (ctrl.Manager, error) {
	restConfig := rest.CopyConfig(connection)
	// The API server's own priority and fairness is the limit.
	restConfig.QPS = -1
	restConfig.UserAgent = rest.DefaultKubernetesUserAgent()

	secret := &corev1.Secret{}
	options := ctrl.Options{
		Scheme:    NewScheme(),
		Logger:    log,
		NewClient: newClient,
		Cache: cache.Options{
			// Nobody reads managedFields, and they are half of a small object.
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				// Secrets of clusters only: those of everybody else are none of our business.
				secret: {Label: ofSomeCluster()},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{
			Unstructured: true,
			DisableFor:   []client.Object{&corev1.ConfigMap{}},
		}},
		Metrics:                 metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:  o.ProbeAddress,
		GracefulShutdownTimeout: ptr.To(shutdownTimeout),
		// Tests start one operator after another in one process; nothing but metrics goes by the name.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	}
	if o.Namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
		// The operator's own too: Secrets of cluster-wide identities are there.
		options.Cache.ByObject[secret] = cache.ByObject{
			Label:      ofSomeCluster(),
			Namespaces: map[string]cache.Config{o.Namespace: {}, o.OperatorNamespace: {}},
		}
	}
	if o.LeaderElect {
		lock, err := newLock(restConfig, o)
		if err != nil {
			return nil, err
		}
		options.LeaderElection = true
		options.LeaderElectionReleaseOnCancel = true
		options.LeaderElectionResourceLockInterface = lock
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = ptr.To(leaseDuration), ptr.To(renewDeadline), ptr.To(retryPeriod)
	}
	mgr, err := ctrl.NewManager(restConfig, options)
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	if err := addProbes(mgr); err != nil {
		return nil, err
	}
	return mgr, addGroups(ctx, mgr, o, log)
}

// addGroups registers the controllers of the groups that may start.
func addGroups(ctx context.Context, mgr ctrl.Manager, o Options, log logr.Logger) error {
	leases, err := listLeases(ctx, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	setup, err := newSetup(mgr, o)
	if err != nil {
		return err
	}
	var refused []error
	started := 0
	for _, g := range groups() {
		if !slices.Contains(o.Controllers, g.name) {
			continue
		}
		if err := checkUpstream(leases, g, time.Now()); err != nil {
			log.Error(err, "Group left out", "group", g.name)
			refused = append(refused, err)
			continue
		}
		if err := g.add(setup); err != nil {
			return fmt.Errorf("set up the controllers of group %q: %w", g.name, err)
		}
		started++
	}
	if started == 0 {
		return fmt.Errorf("no group of controllers can be started: %w", errors.Join(refused...))
	}
	return nil
}

// newLock returns the Lease of leader election. client-go gives the Lease at once to whoever bears the holder's name,
// so an operator that was killed and comes back under its name goes on without waiting for its own Lease to expire.
// Two operators must therefore never share a name: pods do not, and on one host the ports of the second are taken.
func newLock(connection *rest.Config, o Options) (resourcelock.Interface, error) {
	restConfig := rest.CopyConfig(connection)
	// A request that hangs must fail before the Lease is lost.
	restConfig.Timeout = renewDeadline / 2
	clientset, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("set up leader election: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, o.OperatorNamespace, leaseName,
		clientset.CoreV1(), clientset.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: o.LeaderElectIdentity})
	if err != nil {
		return nil, fmt.Errorf("set up leader election: %w", err)
	}
	return lock, nil
}

// addProbes answers /healthz as long as the process does, and /readyz once the caches are filled.
func addProbes(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("caches are not filled yet")
		}
		return nil
	})
}

func controllerOptions(o Options) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: o.Concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

func ofSomeCluster() labels.Selector {
	// Constants of ours: a requirement that exists cannot be malformed.
	labelled, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	return labels.NewSelector().Add(*labelled)
}
