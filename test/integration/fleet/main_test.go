package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/operator/app"
	"github.com/millwright-dev/millwright/test/apiserver"
)

// The servers of all tests of this package.
var (
	management, remote *apiserver.Server
	admin              client.WithWatch
	operator           *rest.Config
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	if management, err = apiserver.Start(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, management.Stop()) }()
	if remote, err = apiserver.Start(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, remote.Stop()) }()
	ctx := context.Background()
	if err := management.Install(ctx, "crds", "rbac", "policies"); err != nil {
		return 1, err
	}
	if admin, err = client.NewWithWatch(management.Admin, client.Options{Scheme: app.NewScheme()}); err != nil {
		return 1, err
	}
	if operator, err = management.Operator(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
