package guest

import (
	"context"
	"net"
	"strconv"

	"github.com/millwright-dev/millwright/sandbox/guest/staticpod"
)

// endpoint is a virtual address that a machine may hold.
type endpoint struct {
	address string
	port    int
}

// heldEndpoints returns the virtual addresses of kube-vip pods, and whether this
// machine can answer for them: its kube-apiserver lives.
func heldEndpoints(states []staticpod.State) map[endpoint]bool {
	live := false
	for _, state := range states {
		if name, _ := staticpod.Component(state.Pod); name == "kube-apiserver" && state.Live {
			live = true
		}
	}
	held := map[endpoint]bool{}
	for _, state := range states {
		if address, port, ok := staticpod.VirtualAddress(state.Pod); ok {
			held[endpoint{address, port}] = live
		}
	}
	return held
}

// announce tells the daemon of each change of a virtual address until the
// context ends, and gives up those that are held then.
func announce(ctx context.Context, pods *staticpod.Manager, own string, out *events) {
	changed := pods.Subscribe()
	up := map[endpoint]bool{}
	tell := func(e endpoint, isUp bool) {
		if up[e] == isUp {
			return
		}
		up[e] = isUp
		out.send(Event{Kind: "vip", Address: e.address, Port: e.port, Backend: net.JoinHostPort(own, strconv.Itoa(e.port)), Up: &isUp})
	}
	for {
		held := heldEndpoints(pods.States())
		for e := range up {
			tell(e, held[e])
		}
		for e, live := range held {
			tell(e, live)
		}
		select {
		case <-ctx.Done():
			for e := range up {
				tell(e, false)
			}
			return
		case <-changed:
		}
	}
}
