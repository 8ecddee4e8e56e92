package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
	"github.com/millwright-dev/millwright/sandbox/guest/staticpod"
)

// Options are what a kubelet gets from its machine.
type Options struct {
	Root    rootfs.Root
	Machine Machine
	Static  *staticpod.Manager
	// Log writes to the guest's console.
	Log func(format string, args ...any)
}

// Kubelet is one hollow kubelet.
type Kubelet struct {
	Options
	settings Settings
	client   kubernetes.Interface

	mu      sync.Mutex
	nodeUID types.UID
	podCIDR string
}

// New returns a kubelet that does nothing yet.
func New(o Options) *Kubelet {
	o.Machine.BootID = string(uuid.NewUUID())
	return &Kubelet{Options: o}
}

// Run works until the context ends. Like systemd it starts the kubelet anew when
// its files are such that it cannot run.
func (k *Kubelet) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.run(ctx)
		if ctx.Err() != nil {
			return
		}
		k.Log("Failed to run kubelet: %v", err)
		select {
		case <-ctx.Done():
		case <-time.After(restartDelay):
		}
	}
}

func (k *Kubelet) run(ctx context.Context) error {
	settings, err := ReadSettings(k.Root, k.Machine.Hostname)
	if err != nil {
		return err
	}
	k.settings = settings
	if len(settings.WithoutEffect) > 0 {
		k.Log("Flags without effect on a hollow kubelet: %s", strings.Join(settings.WithoutEffect, ", "))
	}
	k.Log("Starting kubelet %s as node %s", k.Machine.Version, settings.NodeName)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	healthz, err := net.Listen("tcp", net.JoinHostPort(k.Machine.Address, strconv.Itoa(settings.HealthzPort)))
	if err != nil {
		return fmt.Errorf("serve healthz: %w", err)
	}
	return together(ctx, cancel,
		func() error { return serve(ctx, http.HandlerFunc(healthy), healthz) },
		func() error {
			if settings.StaticPodPath == "" {
				<-ctx.Done()
				return nil
			}
			return k.Static.Run(ctx, settings.StaticPodPath)
		},
		func() error { return k.connected(ctx) },
	)
}

// connected does what needs an API server. Static pods run without it.
func (k *Kubelet) connected(ctx context.Context) error {
	config, err := credentials(ctx, k.Root, k.settings.NodeName, k.Log)
	if err != nil {
		return err
	}
	if k.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("make a client of %s: %w", kubeconfigPath, err)
	}
	pods := newPods(k)
	server, listener, err := k.server(pods)
	if err != nil {
		return err
	}
	if err := k.register(ctx); err != nil {
		_ = listener.Close()
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return together(ctx, cancel,
		func() error { return serve(ctx, server, listener) },
		func() error { k.lease(ctx); return nil },
		func() error { k.reportStatus(ctx); return nil },
		func() error { return pods.run(ctx) },
	)
}

// together runs functions until all have returned; the first that fails ends the
// others through cancel.
func together(ctx context.Context, cancel context.CancelFunc, functions ...func() error) error {
	failed := make(chan error, len(functions))
	for _, f := range functions {
		go func() {
			err := f()
			if err != nil {
				cancel()
			}
			failed <- err
		}()
	}
	var errs []error
	for range functions {
		if err := <-failed; err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return ctx.Err()
	}
	return errors.Join(errs...)
}

// serve answers on the listener until the context ends.
func serve(ctx context.Context, handler http.Handler, listener net.Listener) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return nil
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("ok"))
}
