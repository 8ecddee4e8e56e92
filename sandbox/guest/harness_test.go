//go:build unix

package guest

import (
	"bufio"
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// kubernetesVersion is the one whose binaries the test needs: this module's, or
// another of ../versions that SANDBOX_TEST_KUBERNETES names.
var kubernetesVersion = cmp.Or(os.Getenv("SANDBOX_TEST_KUBERNETES"), moduleVersion)

const moduleVersion = "v1.37.2"

// binaries returns the cache's folder for the version, or skips the test: the
// sandbox builds it when it first starts.
func binaries(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("MILLWRIGHT_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Skip("no cache folder:", err)
		}
		cache = filepath.Join(user, "millwright")
	}
	dir := filepath.Join(cache, kubernetesVersion+"-"+runtime.GOOS+"-"+runtime.GOARCH)
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Skipf("%s is not built: run make sandbox once", name)
		}
	}
	return dir
}

// buildGuest builds the guest with the version that kubeadm's code goes by.
func buildGuest(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest")
	minor := strings.Split(kubernetesVersion, ".")[1]
	args := []string{"build", "-o", path, "-ldflags", fmt.Sprintf("-X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=1 -X %[1]s.gitMinor=%[3]s",
		"k8s.io/component-base/version", kubernetesVersion, minor)}
	if kubernetesVersion != moduleVersion {
		args = append(args, "-modfile=../versions/"+kubernetesVersion+".mod")
	}
	build := exec.Command("go", append(args, "./cmd/guest")...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build guest: %v\n%s", err, out)
	}
	return path
}

// lab is a network of guests with one virtual address.
type lab struct {
	t          *testing.T
	guest, bin string
	endpoint   string
	ca         map[string]string
	caCert     *x509.Certificate
	token      string

	mu       sync.Mutex
	backends map[string]bool
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, bin: binaries(t), guest: buildGuest(t), backends: map[string]bool{}, token: "abcdef.0123456789abcdef"}
	l.endpoint = l.address(1)
	l.ca = map[string]string{}
	for name, common := range map[string]string{"ca": "kubernetes", "etcd/ca": "etcd-ca", "front-proxy-ca": "front-proxy-ca"} {
		cert, key, err := pkiutil.NewCertificateAuthority(&pkiutil.CertConfig{Config: certutil.Config{CommonName: common}})
		if err != nil {
			t.Fatal(err)
		}
		if name == "ca" {
			l.caCert = cert
		}
		l.ca[name+".crt"] = string(pkiutil.EncodeCertPEM(cert))
		l.ca[name+".key"] = encodeKey(t, key)
	}
	key, err := pkiutil.NewPrivateKey("")
	if err != nil {
		t.Fatal(err)
	}
	public, err := pkiutil.EncodePublicKeyPEM(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	l.ca["sa.key"], l.ca["sa.pub"] = encodeKey(t, key), string(public)
	l.forward()
	return l
}

func encodeKey(t *testing.T, key crypto.Signer) string {
	t.Helper()
	raw, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// address returns the nth loopback address of this test process, outside the
// blocks that sandboxes claim.
func (l *lab) address(n int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 128+pid>>8&63, pid&255, n)
}

// forward does the daemon's part: it listens on the virtual address and forwards
// to a guest that said that it holds it.
func (l *lab) forward() {
	listener, err := net.Listen("tcp", l.endpoint+":6443")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.pipe(conn)
		}
	}()
}

func (l *lab) pipe(conn net.Conn) {
	defer conn.Close()
	l.mu.Lock()
	backend := ""
	for address, up := range l.backends {
		if up {
			backend = address
		}
	}
	l.mu.Unlock()
	if backend == "" {
		return
	}
	behind, err := net.Dial("tcp", backend)
	if err != nil {
		return
	}
	defer behind.Close()
	go func() {
		_, _ = io.Copy(behind, conn)
		_ = behind.Close()
	}()
	_, _ = io.Copy(conn, behind)
}

// vm is one guest process.
type vm struct {
	lab     *lab
	config  Config
	console string
	cmd     *exec.Cmd
	power   io.Closer
	done    chan struct{}

	mu      sync.Mutex
	changed chan struct{}
	seen    []Event
}

// create prepares a machine with user data made of the template and values.
func (l *lab) create(n int, name, userdata string, values map[string]any) *vm {
	l.t.Helper()
	merged := map[string]any{"CA": l.ca, "Endpoint": l.endpoint, "Version": kubernetesVersion, "Token": l.token}
	for key, value := range values {
		merged[key] = value
	}
	var text strings.Builder
	indent := func(n int, s string) string {
		return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+strings.Repeat(" ", n))
	}
	parsed, err := template.New("userdata").Delims("<%", "%>").Funcs(template.FuncMap{"indent": indent}).Parse(userdata)
	if err == nil {
		err = parsed.Execute(&text, merged)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	dir := filepath.Join(l.t.TempDir(), name)
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	v := &vm{lab: l, console: filepath.Join(dir, "console.log"), changed: make(chan struct{}), config: Config{
		Name: name, UUID: string(uuid.NewUUID()), Address: l.address(n), KubernetesVersion: kubernetesVersion,
		Dir: dir, BinDir: l.bin, NumCPUs: 2, MemoryMiB: 4096,
		Guestinfo: map[string]string{
			"userdata": encode(text.String()), "userdata.encoding": "base64",
			"metadata": encode("instance-id: " + name + "\nlocal-hostname: " + name + "\n"), "metadata.encoding": "base64",
		},
	}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		l.t.Fatal(err)
	}
	raw, err := json.Marshal(v.config)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "guest.json"), raw, 0o644)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		v.powerOff()
		if l.t.Failed() {
			v.dump()
		}
	})
	return v
}

func (v *vm) powerOn() *vm {
	t := v.lab.t
	t.Helper()
	serial, err := os.OpenFile(v.console, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer serial.Close()
	v.cmd = exec.Command(v.lab.guest, "run", "--config", filepath.Join(v.config.Dir, "guest.json"))
	v.cmd.Stderr = serial
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := v.cmd.StdoutPipe()
	if err == nil {
		v.power, err = v.cmd.StdinPipe()
	}
	if err == nil {
		err = v.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	v.done = make(chan struct{})
	v.mu.Lock()
	v.seen = nil
	v.mu.Unlock()
	go v.follow(out)
	return v
}

func (v *vm) follow(out io.Reader) {
	defer close(v.done)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		event := Event{}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			v.lab.t.Errorf("%s: no event: %s", v.config.Name, lines.Text())
			continue
		}
		if event.Kind == "vip" {
			v.lab.mu.Lock()
			v.lab.backends[event.Backend] = *event.Up
			v.lab.mu.Unlock()
		}
		v.mu.Lock()
		v.seen = append(v.seen, event)
		close(v.changed)
		v.changed = make(chan struct{})
		v.mu.Unlock()
	}
	_ = v.cmd.Wait()
}

// reach waits for a phase and returns its message.
func (v *vm) reach(phase Phase, within time.Duration) string {
	v.lab.t.Helper()
	timeout := time.After(within)
	for {
		v.mu.Lock()
		changed := v.changed
		for _, event := range v.seen {
			if event.Kind == "phase" && event.Phase == phase {
				v.mu.Unlock()
				return event.Message
			}
			if event.Phase == PhaseFailed {
				v.mu.Unlock()
				v.lab.t.Fatalf("%s failed: %s", v.config.Name, event.Message)
			}
		}
		v.mu.Unlock()
		select {
		case <-changed:
		case <-v.done:
			v.lab.t.Fatalf("%s ended before it was %s", v.config.Name, phase)
		case <-timeout:
			v.lab.t.Fatalf("%s is not %s after %s", v.config.Name, phase, within)
		}
	}
}

// powerOff closes the guest's standard input and waits for its end.
func (v *vm) powerOff() {
	if v.cmd == nil {
		return
	}
	_ = v.power.Close()
	<-v.done
	v.cmd = nil
}

// kill ends the guest at once, as a lost power cord would, and waits until
// nothing of it listens any more. On Linux its children must die with it; the
// sandbox's daemon kills the process group.
func (v *vm) kill() {
	v.lab.t.Helper()
	pid := v.cmd.Process.Pid
	if runtime.GOOS != "linux" {
		pid = -pid
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	<-v.done
	v.cmd = nil
	v.lab.mu.Lock()
	delete(v.lab.backends, v.config.Address+":6443")
	v.lab.mu.Unlock()
	for _, port := range []string{"2379", "6443", "10250", "10257"} {
		eventually(v.lab.t, 10*time.Second, func(context.Context) error {
			conn, err := net.Dial("tcp", net.JoinHostPort(v.config.Address, port))
			if err != nil {
				return nil
			}
			_ = conn.Close()
			return fmt.Errorf("something of %s listens on port %s", v.config.Name, port)
		})
	}
}

func (v *vm) log() string {
	raw, err := os.ReadFile(v.console)
	if err != nil {
		v.lab.t.Fatal(err)
	}
	return string(raw)
}

func (v *vm) dump() {
	lines := strings.Split(v.log(), "\n")
	v.lab.t.Logf("console of %s:\n%s", v.config.Name, strings.Join(lines[max(0, len(lines)-60):], "\n"))
}

// eventually waits for a condition that returns why it does not hold yet.
func eventually(t *testing.T, within time.Duration, holds func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var err error
	for {
		if err = holds(ctx); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", within, err)
		case <-tick.C:
		}
	}
}
