package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/workload"
	"github.com/millwright-dev/millwright/operator/kubeadm/certificates"
)

// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigs/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;delete

// retryInput is how soon we look again for what the user has to provide: Secrets without the
// cluster's label are not watched.
const retryInput = 10 * time.Second

// Reconciler reconciles KubeadmConfigs.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache, which holds no ConfigMaps and only labelled Secrets.
	Live     client.Reader
	Workload *workload.Pool
	// TokenTTL is how long a bootstrap token lives without us; 15 minutes when zero.
	TokenTTL time.Duration

	resolver     *contract.Resolver
	certificates *certificates.Store
	lock         initLock
	tokens       tokenSchedule
}

// Reconcile brings one KubeadmConfig a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config := &bootstrapv1.KubeadmConfig{}
	if err := r.Client.Get(ctx, req.NamespacedName, config); err != nil {
		if apierrors.IsNotFound(err) {
			r.tokens.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !config.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s, err := r.observe(ctx, config)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s == nil {
		return ctrl.Result{}, r.tellPool(ctx, config)
	}

	helper := patch.New(config, r.Client)
	if contract.Paused(s.cluster, config) {
		conditions.Set(config, contract.PausedCondition(s.cluster, config))
		return ctrl.Result{}, helper.Patch(ctx, config)
	}
	again, err := r.act(ctx, *s, helper)
	var bad *inputError
	switch {
	case errors.As(err, &bad):
		dataMissing(config, bad.message)
		again, err = retryInput, nil
	case errors.Is(err, workload.ErrNotConnected):
		// The connection is an event.
		dataMissing(config, "Waiting for the API server of Cluster "+s.cluster.Name+" to answer")
		err = nil
	case err != nil && config.Status.DataSecretName == "" && !apierrors.IsConflict(err):
		// Bootstrap failures are told where people look, besides being retried.
		dataMissing(config, err.Error())
	}
	conditions.Set(config, contract.PausedCondition(s.cluster, config))
	summarize(config)
	if err := errors.Join(err, helper.Patch(ctx, config)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// observe reads what the next step depends on, all of it from the cache; nil while the config has no
// Machine or the Machine no Cluster, which are events.
func (r *Reconciler) observe(ctx context.Context, config *bootstrapv1.KubeadmConfig) (*snapshot, error) {
	machine, err := contract.OwnerMachine(ctx, r.Client, config)
	if machine == nil || err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
	if err := r.Client.Get(ctx, key, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("get Cluster %q of KubeadmConfig %q: %w", key, config.Name, err)
	}
	return &snapshot{config: config, machine: machine, cluster: cluster}, nil
}

// tellPool says why the config of a MachinePool gets no user data.
func (r *Reconciler) tellPool(ctx context.Context, config *bootstrapv1.KubeadmConfig) error {
	for _, owner := range config.OwnerReferences {
		if owner.Kind != "MachinePool" {
			continue
		}
		helper := patch.New(config, r.Client)
		dataMissing(config, "MachinePool "+owner.Name+" owns this config, and machine pools are not supported: use a MachineDeployment")
		summarize(config)
		return helper.Patch(ctx, config)
	}
	return nil
}

// act carries out the next step and returns when to look again; zero means that an event tells.
func (r *Reconciler) act(ctx context.Context, s snapshot, helper *patch.Helper) (time.Duration, error) {
	d := next(s)
	switch d.step {
	case done:
		dataAvailable(s, s.config.Status.DataSecretName)
		r.tokens.forget(client.ObjectKeyFromObject(s.config))
		return 0, r.ownData(ctx, s.config)
	case takeOver:
		dataAvailable(s, *s.machine.Spec.Bootstrap.DataSecretName)
		return 0, nil
	case refreshToken:
		dataAvailable(s, s.config.Status.DataSecretName)
		return r.refreshToken(ctx, s)
	case initialize:
		return 0, r.initialize(ctx, s)
	case joinControlPlane, joinWorker:
		return r.join(ctx, s, d.step, helper)
	default:
		dataMissing(s.config, d.message)
		return 0, nil
	}
}

func (r *Reconciler) refreshToken(ctx context.Context, s snapshot) (time.Duration, error) {
	now := time.Now()
	if wait := r.tokens.due(client.ObjectKeyFromObject(s.config)).Sub(now); wait > 0 {
		return wait, nil
	}
	connection, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		// Who cannot be reached cannot be joined either; the machine's token is looked at again in time.
		return r.ttl() / 3, nil
	}
	again, err := ensureToken(ctx, connection.Client, s.config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token, now, r.ttl())
	if err != nil {
		return 0, err
	}
	r.tokens.set(client.ObjectKeyFromObject(s.config), now.Add(again))
	return again, nil
}

func (r *Reconciler) ttl() time.Duration {
	if r.TokenTTL == 0 {
		return defaultTokenTTL
	}
	return r.TokenTTL
}

// tokenSchedule remembers when each token is to be looked at next, so that the many events of a
// machine on its way cost the workload cluster nothing. After a restart each is looked at once.
type tokenSchedule struct {
	mu sync.Mutex
	at map[client.ObjectKey]time.Time
}

func (t *tokenSchedule) due(config client.ObjectKey) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at[config]
}

func (t *tokenSchedule) set(config client.ObjectKey, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == nil {
		t.at = map[client.ObjectKey]time.Time{}
	}
	t.at[config] = at
}

func (t *tokenSchedule) forget(config client.ObjectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.at, config)
}
