package staticpod

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// startPeriod is how often a starting component is probed. A kubelet waits for
	// the probe's own period, 10 s; that it answers is to be seen at once.
	startPeriod = 250 * time.Millisecond
	// readyPeriod and livePeriod are the least periods afterwards: kubeadm's
	// readiness probes come each second, too much for three control planes on a
	// laptop.
	readyPeriod = 3 * time.Second
	livePeriod  = 10 * time.Second

	firstBackoff = time.Second
	lastBackoff  = time.Minute
	// calm is how long a run lasts that makes the backoff begin anew.
	calm = 2 * time.Minute

	// maxLog is the size in bytes at which a log is put aside when its component
	// starts.
	maxLog = 16 << 20
)

// State is what a kubelet knows of a static pod.
type State struct {
	Manifest
	// Process is false for a pod that is recorded only; it counts as ready.
	Process bool
	// Running, Started, Ready and Live are the container's state by its probes.
	Running, Started, Ready, Live bool
	StartedAt                     time.Time
	Restarts                      int32
	// Waiting is why the container does not run, Message the details.
	Waiting, Message string
	// LastExit is the previous run's end, if there was one.
	LastExit *Exit
	// Log is the host's path of the container's log.
	Log string
}

// Exit is how a run of a component ended.
type Exit struct {
	Code              int
	Reason            string
	Started, Finished time.Time
}

// component keeps one static pod's process running.
type component struct {
	manager *Manager
	cancel  context.CancelFunc
	done    chan struct{}
	// longest bounds the grace period once the context has ended.
	longest time.Duration

	mu    sync.Mutex
	state State
}

func (c *component) snapshot() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *component) update(change func(*State)) {
	c.mu.Lock()
	before := c.state
	change(&c.state)
	changed := before.Running != c.state.Running || before.Started != c.state.Started || before.Ready != c.state.Ready ||
		before.Live != c.state.Live || before.Restarts != c.state.Restarts || before.Waiting != c.state.Waiting
	c.mu.Unlock()
	if changed {
		c.manager.notify()
	}
}

// run starts the component again and again until the context ends.
func (c *component) run(ctx context.Context) {
	defer close(c.done)
	pod := c.state.Pod
	backoff := firstBackoff
	for ctx.Err() == nil {
		began := time.Now()
		if p, err := c.start(); err != nil {
			c.manager.log("Error: failed to start container %q: %v", pod.Name, err)
			c.update(func(s *State) { s.Waiting, s.Message = "CreateContainerError", err.Error() })
		} else {
			reason := c.watch(ctx, p)
			c.ended(p, reason)
			if ctx.Err() != nil {
				return
			}
			c.manager.log("Container %q exited with code %d (%s); see %s", pod.Name, p.code, reason, c.manager.host.Root.Guest(c.state.Log))
		}
		if time.Since(began) > calm {
			backoff = firstBackoff
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

func (c *component) start() (*process, error) {
	pod, host := c.state.Pod, c.manager.host
	program, err := Translate(pod, host)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(program.Path); err != nil {
		return nil, fmt.Errorf("image %q: the sandbox has not built it: %w", pod.Spec.Containers[0].Image, err)
	}
	for _, volume := range pod.Spec.Volumes {
		if err := prepareVolume(host, volume); err != nil {
			return nil, err
		}
	}
	if err := rotate(c.state.Log); err != nil {
		return nil, err
	}
	p, err := c.manager.spawner.start(program, string(host.Root), c.state.Log)
	if err != nil {
		return nil, err
	}
	for _, note := range program.Notes {
		c.manager.log("%s runs with %s", pod.Name, note)
	}
	c.update(func(s *State) {
		s.Running, s.StartedAt, s.Waiting, s.Message = true, p.started, "", ""
	})
	return p, nil
}

// prepareVolume makes what a kubelet would make of a hostPath, and refuses one
// that is not there.
func prepareVolume(host Host, volume corev1.Volume) error {
	if volume.HostPath == nil {
		return nil
	}
	kind := corev1.HostPathUnset
	if volume.HostPath.Type != nil {
		kind = *volume.HostPath.Type
	}
	target := host.Root.Path(volume.HostPath.Path)
	switch kind {
	case corev1.HostPathDirectoryOrCreate, corev1.HostPathUnset:
		if _, err := os.Stat(target); err == nil {
			return nil
		}
		return os.MkdirAll(target, 0o755)
	case corev1.HostPathFileOrCreate:
		file, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644)
		if err != nil {
			return err
		}
		return file.Close()
	case corev1.HostPathFile, corev1.HostPathDirectory:
		if _, err := os.Stat(target); err != nil {
			return fmt.Errorf("hostPath type check failed: %s is not a %s", volume.HostPath.Path, kind)
		}
	}
	return nil
}

func rotate(log string) error {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return err
	}
	if info, err := os.Stat(log); err == nil && info.Size() > maxLog {
		return os.Rename(log, log+".1")
	}
	return nil
}

// watch probes a running process until it ends, and ends it when the context
// does or its probes fail for too long.
func (c *component) watch(ctx context.Context, p *process) (reason string) {
	probing, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-p.done
		cancel()
	}()
	pod, host := c.state.Pod, c.manager.host
	container := &pod.Spec.Containers[0]
	startup := newCheck(container.StartupProbe, container, host, startPeriod)
	ready := newCheck(container.ReadinessProbe, container, host, readyPeriod)
	live := newCheck(container.LivenessProbe, container, host, livePeriod)
	var deadline time.Time
	if startup != nil {
		// The manifest's patience counts, not the quicker probing.
		deadline = p.started.Add(time.Duration(startup.threshold)*startup.period + time.Duration(container.StartupProbe.InitialDelaySeconds)*time.Second)
		startup.period = startPeriod
	}

	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			if p.code == 0 {
				return "Completed"
			}
			return "Error"
		case <-ctx.Done():
			p.stop(min(grace(pod), c.longest))
			return "Completed"
		case <-tick.C:
		}
		switch now := time.Now(); {
		case startup != nil && !startup.ok(probing):
			if now.After(deadline) {
				c.manager.log("Container %q failed startup probe, will be restarted", pod.Name)
				p.stop(min(grace(pod), replaceGrace))
				return "Error"
			}
			tick.Reset(startPeriod)
		default:
			startup = nil
			c.readiness(probing, ready, now)
			if !c.liveness(probing, live, now) {
				c.manager.log("Container %q failed liveness probe, will be restarted", pod.Name)
				p.stop(min(grace(pod), replaceGrace))
				return "Error"
			}
			tick.Reset(time.Until(soonest(now, ready, live)))
		}
	}
}

func (c *component) readiness(ctx context.Context, ready *check, now time.Time) {
	isReady := true
	if ready != nil {
		if now.Before(ready.next) {
			return
		}
		isReady = ready.ok(ctx)
		ready.next = now.Add(ready.period)
		if !c.snapshot().Ready {
			// It has not been ready yet: look again soon.
			ready.next = now.Add(startPeriod)
		} else if !isReady && ready.failures < ready.threshold {
			return
		}
	}
	if ctx.Err() == nil {
		c.update(func(s *State) { s.Started, s.Ready = true, isReady })
	}
}

// liveness returns false when the container is to be restarted.
func (c *component) liveness(ctx context.Context, live *check, now time.Time) bool {
	if live == nil || now.Before(live.next) {
		if live == nil {
			c.update(func(s *State) { s.Live = true })
		}
		return true
	}
	isLive := live.ok(ctx)
	live.next = now.Add(live.period)
	if ctx.Err() != nil {
		return true
	}
	c.update(func(s *State) { s.Live = isLive })
	return live.failures < live.threshold
}

func soonest(now time.Time, checks ...*check) time.Time {
	next := now.Add(livePeriod)
	for _, check := range checks {
		if check != nil && check.next.Before(next) {
			next = check.next
		}
	}
	return next
}

func (c *component) ended(p *process, reason string) {
	c.update(func(s *State) {
		s.Running, s.Started, s.Ready, s.Live = false, false, false, false
		s.Restarts++
		s.LastExit = &Exit{Code: p.code, Reason: reason, Started: p.started, Finished: time.Now()}
		s.Waiting, s.Message = "CrashLoopBackOff", fmt.Sprintf("back-off restarting failed container %s", s.Pod.Name)
	})
}

// grace is how long a pod's containers may take to end (30 s by default).
func grace(pod *corev1.Pod) time.Duration {
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}
