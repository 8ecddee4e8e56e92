package staticpod

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

// Host is where a guest's pods really run.
type Host struct {
	Root rootfs.Root
	// Address is the guest's own, in 127.0.0.0/8.
	Address string
	// BinDir has the components of Version; those of another version are looked
	// for in a folder beside it whose name differs in the version only.
	BinDir, Version string
}

// Program is a process to start.
type Program struct {
	Path string
	Args []string
	Env  []string
	// Notes say what was changed beyond paths and addresses.
	Notes []string
}

// components are the pods that run as processes: container command → the flags
// whose value is an address, or a list of URLs, on which the component listens
// or by which it reaches its own machine.
var components = map[string]struct{ addresses, urls []string }{
	"etcd": {urls: []string{
		"listen-client-urls", "advertise-client-urls", "listen-peer-urls", "initial-advertise-peer-urls", "listen-metrics-urls"}},
	"kube-apiserver":          {addresses: []string{"bind-address"}, urls: []string{"etcd-servers"}},
	"kube-controller-manager": {addresses: []string{"bind-address"}},
	"kube-scheduler":          {addresses: []string{"bind-address"}},
}

// notPaths are flags whose value may begin with a slash and is no file.
var notPaths = []string{"etcd-prefix", "authorization-always-allow-paths", "cors-allowed-origins"}

// Component returns the name of the program that the pod runs, and whether it is
// one that a guest starts.
func Component(pod *corev1.Pod) (string, bool) {
	if len(pod.Spec.Containers) == 0 {
		return "", false
	}
	line := commandLine(&pod.Spec.Containers[0])
	if len(line) == 0 {
		return pod.Spec.Containers[0].Name, false
	}
	name := path.Base(line[0])
	_, known := components[name]
	return name, known
}

// Translate returns the process that stands for a static pod's container.
func Translate(pod *corev1.Pod, host Host) (Program, error) {
	name, known := Component(pod)
	if !known {
		return Program{}, fmt.Errorf("static pod %q: %q is not a component that a process guest runs", pod.Name, name)
	}
	container := &pod.Spec.Containers[0]
	binary, err := host.binary(name, container.Image)
	if err != nil {
		return Program{}, fmt.Errorf("static pod %q: %w", pod.Name, err)
	}
	program := Program{Path: binary}
	files := mounts(pod, container)
	bound := false
	for _, arg := range commandLine(container)[1:] {
		flag, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		dashes := arg[:len(arg)-len(strings.TrimLeft(arg, "-"))]
		switch {
		case dashes == "":
			arg = host.file(arg, files)
		case !hasValue:
		case name == "kube-apiserver" && flag == "advertise-address":
			value = Advertise(value)
			program.Notes = append(program.Notes, "--advertise-address "+value+", as kube-apiserver refuses a loopback one")
			arg = dashes + flag + "=" + value
		case slices.Contains(components[name].addresses, flag):
			bound = true
			arg = dashes + flag + "=" + host.listen(value)
		case slices.Contains(components[name].urls, flag):
			arg = dashes + flag + "=" + host.urls(value)
		case !slices.Contains(notPaths, flag):
			arg = dashes + flag + "=" + host.file(value, files)
		}
		program.Args = append(program.Args, arg)
	}
	if !bound && len(components[name].addresses) > 0 {
		program.Args = append(program.Args, "--bind-address="+host.Address)
	}
	if name == "etcd" {
		program.Args = append(program.Args, "--unsafe-no-fsync")
		program.Notes = append(program.Notes, "--unsafe-no-fsync, as many members share one disk")
	}
	for _, env := range container.Env {
		if env.ValueFrom == nil {
			program.Env = append(program.Env, env.Name+"="+env.Value)
		}
	}
	return program, nil
}

// Advertise returns the address that stands for a loopback one where loopback is
// refused: 127.x.y.z becomes 198.18.y.z, of the range that RFC 2544 reserves for
// benchmarks. Nothing listens there.
func Advertise(address string) string {
	ip := net.ParseIP(address).To4()
	if ip == nil || !ip.IsLoopback() {
		return address
	}
	return net.IPv4(198, 18, ip[2], ip[3]).String()
}

func commandLine(container *corev1.Container) []string {
	return slices.Concat(container.Command, container.Args)
}

// local tells whether an address means "this machine".
func local(host string) bool {
	if host == "" || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

func (h Host) listen(address string) string {
	if local(address) {
		return h.Address
	}
	return address
}

// urls replaces this machine's names in a comma-separated list of URLs by the
// guest's address, once each.
func (h Host) urls(list string) string {
	var out []string
	for raw := range strings.SplitSeq(list, ",") {
		if u, err := url.Parse(raw); err == nil && u.Host != "" && local(u.Hostname()) {
			if port := u.Port(); port != "" {
				u.Host = net.JoinHostPort(h.Address, port)
			} else {
				u.Host = h.Address
			}
			raw = u.String()
		}
		if !slices.Contains(out, raw) {
			out = append(out, raw)
		}
	}
	return strings.Join(out, ",")
}

// mount is where a path inside a container comes from.
type mount struct{ inside, guest string }

// mounts lists the container's hostPath mounts, the deepest first.
func mounts(pod *corev1.Pod, container *corev1.Container) []mount {
	var out []mount
	for _, m := range container.VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name == m.Name && volume.HostPath != nil {
				out = append(out, mount{inside: path.Clean(m.MountPath), guest: path.Join(volume.HostPath.Path, m.SubPath)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b mount) int { return len(b.inside) - len(a.inside) })
	return out
}

// file maps absolute paths, one or a comma-separated list, to the host.
func (h Host) file(value string, files []mount) string {
	parts := strings.Split(value, ",")
	for n, part := range parts {
		if !strings.HasPrefix(part, "/") || h.Root.Contains(part) {
			return value
		}
		parts[n] = h.Root.Path(inGuest(part, files))
	}
	return strings.Join(parts, ",")
}

func inGuest(inside string, files []mount) string {
	for _, m := range files {
		if inside == m.inside {
			return m.guest
		}
		if rest, below := strings.CutPrefix(inside, m.inside+"/"); below {
			return path.Join(m.guest, rest)
		}
	}
	return inside
}

// binary finds the component at the version of its image.
func (h Host) binary(name, image string) (string, error) {
	dir := h.BinDir
	if version := imageVersion(image); name != "etcd" && version != "" && version != h.Version {
		base := filepath.Base(h.BinDir)
		if !strings.Contains(base, h.Version) {
			return "", fmt.Errorf("image %q is not of this machine's version %s", image, h.Version)
		}
		dir = filepath.Join(filepath.Dir(h.BinDir), strings.Replace(base, h.Version, version, 1))
	}
	return filepath.Join(dir, name), nil
}

// imageVersion returns the vX.Y.Z of an image's tag.
func imageVersion(image string) string {
	image, _, _ = strings.Cut(image, "@")
	at := strings.LastIndexByte(image, ':')
	if at < 0 || strings.Contains(image[at:], "/") {
		return ""
	}
	tag, _, _ := strings.Cut(image[at+1:], "_")
	if !strings.HasPrefix(tag, "v") {
		return ""
	}
	return tag
}
