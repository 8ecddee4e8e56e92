package sandboxtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Version is the Kubernetes version of the clusters that tests make where the version is not their subject.
const Version = "v1.37.2"

// Sandbox is a running sandbox. The environment of the process names it: PATH, KUBECONFIG and what vsphere.env exports.
type Sandbox struct {
	Root    string            // of the repository
	Dir     string            // the sandbox's state
	VSphere map[string]string // from vsphere.env
}

// Main starts the sandbox that s becomes, with further arguments of `sandbox up`, runs the tests of the package and
// ends the sandbox. It returns the exit code. E2E_KEEP leaves the sandbox's state and logs behind.
func Main(m *testing.M, s *Sandbox, args ...string) int {
	if err := s.locate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctrl.SetLogger(logr.Discard())
	// Stopped in every case: a half-started sandbox has processes too.
	defer s.down()
	if err := s.up(args...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// locate finds the repository and its programs and makes the folder of the sandbox's state.
func (s *Sandbox) locate() error {
	_, file, _, _ := runtime.Caller(0)
	s.Root = filepath.Dir(filepath.Dir(filepath.Dir(file)))
	for _, program := range []string{"sandbox", "operator", "kubectl-machines", "kubectl-addons"} {
		if _, err := os.Stat(filepath.Join(s.Root, "bin", program)); err != nil {
			return fmt.Errorf("bin/%s is missing: run `make build sandbox-build` first", program)
		}
	}
	var err error
	s.Dir, err = os.MkdirTemp("", "millwright-test-")
	return err
}

func (s *Sandbox) up(args ...string) error {
	environment := map[string]string{
		"PATH":       filepath.Join(s.Root, "bin") + string(os.PathListSeparator) + os.Getenv("PATH"),
		"KUBECONFIG": filepath.Join(s.Dir, "kubeconfig"),
	}
	if err := setenv(environment); err != nil {
		return err
	}
	up := exec.Command("sandbox", append([]string{"up", "--dir", s.Dir}, args...)...)
	up.Dir, up.Stdout, up.Stderr = s.Root, os.Stdout, os.Stderr
	if err := up.Run(); err != nil {
		return fmt.Errorf("sandbox up: %w", err)
	}
	var err error
	if s.VSphere, err = readEnv(filepath.Join(s.Dir, "vsphere.env")); err != nil {
		return err
	}
	return setenv(s.VSphere)
}

func (s *Sandbox) down() {
	if out, err := exec.Command("sandbox", "down", "--dir", s.Dir).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "sandbox down: %v\n%s", err, out)
	}
	if os.Getenv("E2E_KEEP") == "" {
		os.RemoveAll(s.Dir)
	}
}

func setenv(environment map[string]string) error {
	var errs []error
	for name, value := range environment {
		errs = append(errs, os.Setenv(name, value))
	}
	return errors.Join(errs...)
}

// readEnv reads NAME=value lines; values may be in single or double quotes and
// start with "export ".
func readEnv(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "), "=")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		env[name] = strings.Trim(value, `'"`)
	}
	return env, lines.Err()
}
