package integration

import (
	"context"
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

// The API server of all tests of this package; each test has a namespace of its own.
var (
	server   *apiserver.Server
	admin    client.WithWatch
	operator *rest.Config
	// scratch is a folder that is removed when all tests have run.
	scratch string
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
	if server, err = apiserver.Start(); err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := server.Stop(); err == nil {
			err = stopErr
		}
	}()
	if scratch, err = os.MkdirTemp("", "millwright-integration-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(scratch)
	ctx := context.Background()
	if err := server.Install(ctx, "crds", "rbac", "policies"); err != nil {
		return 1, err
	}
	if admin, err = client.NewWithWatch(server.Admin, client.Options{Scheme: app.NewScheme()}); err != nil {
		return 1, err
	}
	if operator, err = server.Operator(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
