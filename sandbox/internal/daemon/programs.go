package daemon

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/millwright-dev/millwright/sandbox/internal/build"
	"github.com/millwright-dev/millwright/sandbox/internal/guests"
)

// programs gets what guests need, once for each Kubernetes version however
// many machines ask. A failure is not kept: the next machine tries again.
type programs struct {
	daemon *daemon
	// ctx is that of the daemon: a build goes on when the machine that asked
	// for it first is powered off.
	ctx context.Context

	mu       sync.Mutex
	versions map[string]*preparation
}

type preparation struct {
	done   chan struct{}
	result guests.Programs
	err    error
}

func (p *programs) get(ctx context.Context, version string) (guests.Programs, error) {
	p.mu.Lock()
	v := p.versions[version]
	if v == nil {
		v = &preparation{done: make(chan struct{})}
		if p.versions == nil {
			p.versions = map[string]*preparation{}
		}
		p.versions[version] = v
		go p.prepare(version, v)
	}
	p.mu.Unlock()
	select {
	case <-v.done:
		return v.result, v.err
	case <-ctx.Done():
		return guests.Programs{}, ctx.Err()
	}
}

func (p *programs) prepare(version string, v *preparation) {
	defer close(v.done)
	v.result, v.err = p.build(version)
	if v.err != nil {
		log.Printf("programs of Kubernetes %s: %v", version, v.err)
		p.mu.Lock()
		delete(p.versions, version)
		p.mu.Unlock()
	}
}

func (p *programs) build(version string) (guests.Programs, error) {
	binaries, err := p.daemon.Builder.Kubernetes(p.ctx, version)
	if err != nil {
		return guests.Programs{}, err
	}
	guest := p.daemon.Guest
	if guest == "" && version == build.DefaultVersion {
		guest = p.daemon.BuiltGuest
	}
	if guest == "" {
		if guest, err = p.daemon.Builder.Guest(p.ctx, version); err != nil {
			return guests.Programs{}, fmt.Errorf("guest: %w", err)
		}
	}
	return guests.Programs{Guest: guest, Dir: binaries.Dir}, nil
}
