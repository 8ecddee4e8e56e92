package process

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Pauses before a dead process is started again: none after it has run a
// while, else doubling. Even one that dies at once is back within a second.
const (
	restartPauseMin = 50 * time.Millisecond
	restartPauseMax = 800 * time.Millisecond
	ranWell         = 5 * time.Second
)

// Status is what a supervised process is doing.
type Status struct {
	Identity
	Started  time.Time `json:"started"`
	Restarts int       `json:"restarts"`
	// LastExit says how the previous run ended; empty in the first.
	LastExit string `json:"lastExit,omitempty"`
	Running  bool   `json:"running"`
}

// Supervise starts what next returns and starts it again whenever it ends,
// until ctx is done; then it asks it to end and, after grace, ends it. The log
// gets a line at each turn. report is called at each change, from one
// goroutine.
func (r *Runner) Supervise(ctx context.Context, next func() (Spec, error), log *os.File, grace time.Duration, report func(Status)) {
	var status Status
	pause := restartPauseMin
	for {
		began := time.Now()
		ended := r.once(ctx, next, grace, func(id Identity) {
			status.Identity, status.Started, status.Running = id, time.Now(), true
			report(status)
		})
		status.Running, status.LastExit = false, ended
		report(status)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > ranWell {
			pause = restartPauseMin
		}
		fmt.Fprintf(log, "sandbox: %s: %s; starting it again in %s\n", time.Now().Format(time.RFC3339), ended, pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, restartPauseMax)
		status.Restarts++
	}
}

// once runs what next returns to its end and says how it ended.
func (r *Runner) once(ctx context.Context, next func() (Spec, error), grace time.Duration, started func(Identity)) string {
	spec, err := next()
	if err != nil {
		return err.Error()
	}
	p, err := r.Start(spec)
	if err != nil {
		return err.Error()
	}
	started(p.Identity)
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Stop(grace)
	}
	if p.Err() != nil {
		return fmt.Sprintf("%s ended: %v", spec.Name, p.Err())
	}
	return spec.Name + " ended"
}

// Stop asks the process to end, ends it and its group after grace, and returns
// when it is gone.
func (p *Process) Stop(grace time.Duration) {
	_ = p.Terminate()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.Kill()
		<-p.done
	}
}
