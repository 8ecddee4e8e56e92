package vcenter

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// ErrVMNotFound means that vCenter holds no virtual machine of that identity.
var ErrVMNotFound = errors.New("virtual machine not found in vCenter")

// ErrNoCloneSlot means that as many clones run already as the pool allows. The owner that asked is told when one ends.
var ErrNoCloneSlot = errors.New("as many clones as allowed are running in this vCenter")

// ErrClosed means that the session was given up because nobody uses it any more; ask the Pool again.
var ErrClosed = errors.New("session with vCenter is closed")

// Kind is a kind of inventory object, in a user's words.
type Kind string

// Kinds that lookups name in their errors.
const (
	KindDatacenter    Kind = "datacenter"
	KindTemplate      Kind = "template"
	KindSnapshot      Kind = "snapshot"
	KindFolder        Kind = "folder"
	KindDatastore     Kind = "datastore"
	KindNetwork       Kind = "network"
	KindResourcePool  Kind = "resource pool"
	KindStoragePolicy Kind = "storage policy"
)

func (k Kind) plural() string {
	if stem, ok := strings.CutSuffix(string(k), "y"); ok {
		return stem + "ies"
	}
	return string(k) + "s"
}

// NotFoundError means that an object named by the user is not there.
type NotFoundError struct {
	Kind Kind
	// Name is the name or path looked for; Place is where, such as `datacenter "DC0"`.
	Name, Place string
	// Existing are names of objects of that kind in that place, not all when there are many.
	Existing []string
}

func (e *NotFoundError) Error() string {
	there := fmt.Sprintf("there is no %s there", e.Kind)
	if len(e.Existing) > 0 {
		there = fmt.Sprintf("%s there: %s", e.Kind.plural(), quoted(e.Existing))
	}
	return fmt.Sprintf("%s %q not found in %s; %s: correct the name, create the %s or give the account the privilege to see it",
		e.Kind, e.Name, e.Place, there, e.Kind)
}

// AmbiguousError means that a name, or the lack of one, stands for several objects.
type AmbiguousError struct {
	Kind        Kind
	Name, Place string
	Candidates  []string
}

func (e *AmbiguousError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("no %s is named and %s has several (%s): name one", e.Kind, e.Place, quoted(e.Candidates))
	}
	return fmt.Sprintf("%s %q is ambiguous in %s, it matches %s: give the inventory path", e.Kind, e.Name, e.Place, quoted(e.Candidates))
}

// InvalidError means that what is asked for cannot be had from this template.
type InvalidError struct {
	// Field is the field of the spec to mend.
	Field, Message string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Message }

// LoginError means that vCenter refused the credentials.
type LoginError struct {
	Server, Username string
	Err              error
}

func (e *LoginError) Error() string {
	return fmt.Sprintf("vCenter %q refused the user name %q or its password: correct the credentials", e.Server, e.Username)
}

func (e *LoginError) Unwrap() error { return e.Err }

// CertificateError means that vCenter's certificate is not trusted and no thumbprint was given.
type CertificateError struct {
	Server string
	// Thumbprint is the SHA-256 sum of the certificate that the server presented, empty when unknown.
	Thumbprint string
	Err        error
}

func (e *CertificateError) Error() string {
	return fmt.Sprintf("certificate of vCenter %q is not trusted: set thumbprint, after comparing it with the real one "+
		"(the server presents %s), or have the operator trust its CA: %v", e.Server, e.Thumbprint, e.Err)
}

func (e *CertificateError) Unwrap() error { return e.Err }

// ThumbprintError means that vCenter presents another certificate than the pinned one.
type ThumbprintError struct {
	Server, Want, Got string
}

func (e *ThumbprintError) Error() string {
	return fmt.Sprintf("vCenter %q presents a certificate with thumbprint %s, not the pinned %s: "+
		"if its certificate was renewed, set the new thumbprint; otherwise somebody answers in its place", e.Server, e.Got, e.Want)
}

// UnreachableError means that vCenter does not answer, or answers that it cannot serve.
type UnreachableError struct {
	Server string
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("vCenter %q does not answer: check that it runs and that the operator can reach it: %s", e.Server, bare(e.Err))
}

// bare leaves out addresses and ports of our own side: a message in a condition must not differ from try to try.
func bare(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// TaskError means that vCenter accepted a task and failed at it.
type TaskError struct {
	// What is the task in words, such as `clone template "ubuntu"`.
	What string
	Err  error
}

func (e *TaskError) Error() string { return fmt.Sprintf("vCenter failed to %s: %v", e.What, e.Err) }

func (e *TaskError) Unwrap() error { return e.Err }

// taskFault makes an error of the fault of a task; nil for nil. vCenter's own message is better than the fault's type.
func taskFault(what string, info *types.LocalizedMethodFault) error {
	if info == nil {
		return nil
	}
	return &TaskError{What: what, Err: explained{task.Error{LocalizedMethodFault: info}}}
}

// explained names the type of a fault beside the server's message, which is often empty or says little.
type explained struct{ fault task.Error }

func (e explained) Error() string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", e.fault.Fault()), "*types.")
	message := strings.TrimSpace(e.fault.LocalizedMessage)
	if message == "" || strings.HasPrefix(message, "*types.") {
		return name
	}
	return fmt.Sprintf("%s (%s)", message, name)
}

func (e explained) Unwrap() error { return e.fault }

// IsNotFound tells whether err means that the managed object of the call is gone.
func IsNotFound(err error) bool {
	return errors.Is(err, ErrVMNotFound) || fault.Is(err, &types.ManagedObjectNotFound{})
}

func isNotAuthenticated(err error) bool { return fault.Is(err, &types.NotAuthenticated{}) }

// isConnection tells whether err comes from the way to the server and not from the server's answer. Everything that is no
// SOAP fault is one: refused connections, time-outs, a 503 of the proxy in front.
func isConnection(err error) bool {
	return err != nil && !soap.IsSoapFault(err) && !soap.IsVimFault(err)
}

// connectionError gives the errors of dialing and logging in their types.
func connectionError(e Endpoint, err error) error {
	var pin *ThumbprintError
	if errors.As(err, &pin) {
		return pin
	}
	var untrusted *untrustedError
	if errors.As(err, &untrusted) {
		return &CertificateError{Server: e.Server, Thumbprint: untrusted.thumbprint, Err: untrusted.err}
	}
	if fault.Is(err, &types.InvalidLogin{}) {
		return &LoginError{Server: e.Server, Username: e.Username, Err: err}
	}
	return &UnreachableError{Server: e.Server, Err: err}
}

// untrustedError carries the thumbprint of a certificate that the system's roots do not vouch for.
type untrustedError struct {
	thumbprint string
	err        error
}

func (e *untrustedError) Error() string { return e.err.Error() }

func (e *untrustedError) Unwrap() error { return e.err }

func thumbprint256(cert *x509.Certificate) string { return soap.ThumbprintSHA256(cert) }

// maxListed is how many names an error lists.
const maxListed = 10

func quoted(names []string) string {
	shown := names
	if len(shown) > maxListed {
		shown = shown[:maxListed]
	}
	out := make([]string, 0, len(shown)+1)
	for _, name := range shown {
		out = append(out, fmt.Sprintf("%q", name))
	}
	if rest := len(names) - len(shown); rest > 0 {
		out = append(out, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(out, ", ")
}

// IsInState tells whether a change was refused because it had been made already, or another was in the way. What vCenter
// holds now tells which.
func IsInState(err error) bool { return fault.Is(err, &types.InvalidPowerState{}) }
