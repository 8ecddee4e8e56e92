package vcenter

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// roundTripper sends the calls of a session: bounded in time, counted, and once more after a new login where the session
// died meanwhile.
type roundTripper struct{ s *Session }

func (t roundTripper) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	raw, login := t.s.raw()
	err := t.send(ctx, raw, req, res)
	if !isNotAuthenticated(err) && !isDenied(res) {
		return err
	}
	if err := t.s.relogin(ctx, login); err != nil {
		return err
	}
	// The fault of the first try would count as the second's.
	reflect.ValueOf(res).Elem().SetZero()
	raw, _ = t.s.raw()
	return t.send(ctx, raw, req, res)
}

func (t roundTripper) send(ctx context.Context, raw *soap.Client, req, res soap.HasFault) error {
	timeout := t.s.pool.opts.CallTimeout
	if _, ok := req.(*methods.WaitForUpdatesExBody); ok {
		timeout += t.s.pool.opts.watchWait
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t.s.pool.opts.Metrics.call(t.s.endpoint.Server, methodName(req))
	err := raw.RoundTrip(bounded, req, res)
	if err == nil || !isConnection(err) {
		return err
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return connectionError(t.s.endpoint, err)
}

// isDenied tells whether properties were not given out because there is no session, which is no fault of the call.
func isDenied(res soap.HasFault) bool {
	body, ok := res.(*methods.RetrievePropertiesExBody)
	if !ok || body.Res == nil || body.Res.Returnval == nil {
		return false
	}
	for _, object := range body.Res.Returnval.Objects {
		for _, missing := range object.MissingSet {
			if _, ok := missing.Fault.Fault.(*types.NotAuthenticated); ok {
				return true
			}
		}
	}
	return false
}

func methodName(req soap.HasFault) string {
	name := reflect.TypeOf(req).Elem().Name()
	return strings.TrimSuffix(name, "Body")
}
