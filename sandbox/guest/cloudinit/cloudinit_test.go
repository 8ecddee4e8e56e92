package cloudinit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

func packed(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestGuestinfoIsDecodedByItsEncoding(t *testing.T) {
	cases := map[string]struct{ value, encoding, want, wantErr string }{
		"plain":             {value: "#cloud-config", want: "#cloud-config"},
		"base64":            {value: "I2Nsb3Vk\nLWNvbmZpZw==", encoding: "base64", want: "#cloud-config"},
		"gzip and base64":   {value: packed(t, "hello"), encoding: "gzip+base64", want: "hello"},
		"its short name":    {value: packed(t, "hello"), encoding: "gz+b64", want: "hello"},
		"not base64":        {value: "#cloud-config", encoding: "base64", wantErr: "decode base64"},
		"not compressed":    {value: "aGVsbG8=", encoding: "gzip+base64", wantErr: "decompress"},
		"a foreign one":     {value: "x", encoding: "rot13", wantErr: `unknown encoding "rot13"`},
		"cut short, packed": {value: packed(t, strings.Repeat("long", 100))[:24], encoding: "gz+b64", wantErr: "decompress"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(tc.value, tc.encoding)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || string(got) != tc.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestJinjaVariablesAreThoseOfCloudInit(t *testing.T) {
	inst, err := ParseMetadata([]byte("instance-id: vm-1\nlocal-hostname: node-1.example.org\nnetwork:\n  nic-0: eth0\n"), "uuid", "vm", "127.1.0.4")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		in, want, wantErr string
		missing           []string
	}{
		"no header, no rendering": {in: "#cloud-config\n{{ local_hostname }}", want: "#cloud-config\n{{ local_hostname }}"},
		"host names":              {in: "## template: jinja\n{{ local_hostname }} {{ds.meta_data.hostname}}", want: "node-1 node-1.example.org"},
		"v1":                      {in: "## template: jinja\n{{ v1.instance_id }} {{ v1.platform }}", want: "vm-1 vmware"},
		"hyphens":                 {in: "## template: jinja\n{{ ds.meta_data.local_hostname }} {{ ds.meta_data['local-hostname'] }} {{ ds.meta_data.network.nic_0 }}", want: "node-1.example.org node-1.example.org eth0"},
		"address":                 {in: "## template: jinja\n{{ ds.meta_data.local_ipv4 }}", want: "127.1.0.4"},
		"comment and raw":         {in: "## template: jinja\na{# no #}b{% raw %}{{ x }}{% endraw %}c", want: "ab{{ x }}c"},
		"missing":                 {in: "## template: jinja\nx: {{ ds.meta_data.nope }}", want: "x: CI_MISSING_JINJA_VAR/nope", missing: []string{"nope"}},
		"missing with default":    {in: "## template: jinja\n{{ ds.meta_data.nope | default('d') | upper }}", want: "D"},
		"below a missing one":     {in: "## template: jinja\n{{ nope.x }}", wantErr: `line 2: "nope" is undefined`},
		"unclosed":                {in: "## template: jinja\nline\n{{ local_hostname", wantErr: `line 3: "{{" has no "}}"`},
		"statement":               {in: "## template: jinja\n{% for x in y %}{% endfor %}", wantErr: "not supported"},
		"lone braces":             {in: "## template: jinja\n{\"a\": {}}", want: "{\"a\": {}}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, missing, err := Render([]byte(tc.in), inst.Variables())
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.missing, missing); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCloudConfigIsReadAsCloudInitReadsIt(t *testing.T) {
	config, warnings, err := Parse([]byte(`#cloud-config
write_files:
- path: /a
  content: plain
- path: /b
  encoding: base64
  content: aGVsbG8=
  permissions: "0600"
  owner: root:root
- path: /c
  encoding: gzip+base64
  content: ` + packed(t, "packed") + `
  permissions: 0640
  append: true
- path: /d
  encoding: rot13
  content: x
  permissions: rw
- content: nowhere
users:
- default
- name: capv
  sudo: ALL=(ALL) NOPASSWD:ALL
runcmd:
- echo hi
- [ls, -l, 1]
ntp: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Files: []File{
			{Path: "/a", Content: []byte("plain"), Owner: "root:root", Mode: 0o644},
			{Path: "/b", Content: []byte("hello"), Owner: "root:root", Mode: 0o600},
			{Path: "/c", Content: []byte("packed"), Owner: "root:root", Mode: 0o640, Append: true},
			{Path: "/d", Content: []byte("x"), Owner: "root:root", Mode: 0o644},
		},
		Users:       []string{"default", "capv"},
		RunCommands: []Command{{Shell: "echo hi"}, {Args: []string{"ls", "-l", "1"}}},
		Ignored:     []string{"ntp"},
	}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Error(diff)
	}
	if len(warnings) != 3 {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestWhatCloudInitRefusesFails(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"no header":        {"write_files: []", "must be #cloud-config"},
		"a script":         {"#!/bin/sh\nkubeadm init", "unhandled non-multipart"},
		"broken yaml":      {"#cloud-config\na: [b", "failed loading yaml blob"},
		"runcmd a mapping": {"#cloud-config\nruncmd: {a: b}", "failed to shellify runcmd: input was type dict"},
		"runcmd of a map":  {"#cloud-config\nruncmd:\n- {a: b}", "unable to shellify type dict"},
		"bad base64":       {"#cloud-config\nwrite_files:\n- {path: /x, encoding: b64, content: '%%'}", "write_files: /x: decode base64"},
		"files a string":   {"#cloud-config\nwrite_files: x", "expected a list"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse([]byte(tc.in))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestFilesStayInTheRootAndNeedTheirOwner(t *testing.T) {
	root := rootfs.Root(t.TempDir())
	quiet := func(string, ...any) {}
	files := []File{
		{Path: "/run/x", Content: []byte("a"), Owner: "root:root", Mode: 0o600},
		{Path: "/run/x", Content: []byte("b"), Owner: "0:0", Mode: 0o600, Append: true},
		{Path: "/../../up", Content: []byte("c"), Owner: "root", Mode: 0o000},
	}
	if err := WriteFiles(root, files, nil, quiet); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/run/x": "ab", "/up": "c"} {
		if got, err := os.ReadFile(root.Path(path)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	late := []File{{Path: "/y", Owner: "capv:capv", Mode: 0o644}}
	if err := WriteFiles(root, late, nil, quiet); err == nil || !strings.Contains(err.Error(), "name not found: 'capv'") {
		t.Errorf("error %v", err)
	}
	if err := WriteFiles(root, late, []string{"capv"}, quiet); err != nil {
		t.Error(err)
	}
}

func TestCommandsRunInsideTheGuestOnly(t *testing.T) {
	root := rootfs.Root(t.TempDir())
	if err := os.MkdirAll(root.Path("/run/cluster-api"), 0o755); err != nil {
		t.Fatal(err)
	}
	const sentinel = "/run/cluster-api/bootstrap-success.complete"
	cases := map[string]struct {
		commands []Command
		kubeadm  error
		want     []string
		sentinel bool
		wantErr  string
	}{
		"the form of the bootstrap provider": {
			commands: []Command{{Shell: "kubeadm init --config /run/kubeadm/kubeadm.yaml --v=5 && echo success > " + sentinel}},
			want:     []string{"kubeadm init --config /run/kubeadm/kubeadm.yaml --v=5"}, sentinel: true,
		},
		"a failure skips the sentinel and not the rest": {
			commands: []Command{{Shell: "kubeadm join && echo success > " + sentinel}, {Shell: "hostnamectl set-hostname \"n 1\""}},
			kubeadm:  errors.New("no"), want: []string{"kubeadm join", "hostname n 1"}, wantErr: "no",
		},
		"as arguments, by a shell": {
			commands: []Command{{Args: []string{"/bin/bash", "-xc", "sudo /usr/bin/kubeadm join --config '/a b'"}}},
			want:     []string{"kubeadm join --config /a b"},
		},
		"the host is left alone": {
			commands: []Command{
				{Shell: "systemctl stop kubelet; rm -rf /"},
				{Shell: "for s in $(find /etc/pre-kubeadm-commands/ -name '*.sh'); do \"$s\"; done"},
				{Args: []string{"reboot"}},
			},
			want: []string{"log systemctl stop kubelet", "log rm -rf /", "log for s in $(find /etc/pre-kubeadm-commands/ -name '*.sh'); do \"$s\"; done", "log reboot"},
		},
		"kubeadm in a loop is refused": {
			commands: []Command{{Shell: "until kubeadm join --config /x; do sleep 1; done"}},
			wantErr:  "understands kubeadm only in simple commands",
		},
		"kubeadm through another program is refused": {
			commands: []Command{{Shell: "timeout 5 kubeadm join"}}, wantErr: "cannot run kubeadm through timeout",
		},
		"or runs after a failure": {
			commands: []Command{{Shell: "kubeadm init || echo failed > " + sentinel}},
			kubeadm:  errors.New("no"), want: []string{"kubeadm init"}, sentinel: true, wantErr: "no",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(root.Path(sentinel))
			var got []string
			shell := Shell{
				Root:        root,
				Kubeadm:     func(args []string) error { got = append(got, "kubeadm "+strings.Join(args, " ")); return tc.kubeadm },
				SetHostname: func(name string) { got = append(got, "hostname "+name) },
				Log: func(format string, args ...any) {
					if line, found := strings.CutSuffix(fmt.Sprintf(format, args...), "    # not run: a process guest leaves the host alone"); found {
						got = append(got, "log "+strings.TrimPrefix(line, "+ "))
					}
				},
			}
			err := shell.Run(tc.commands)
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if root.Exists(sentinel) != tc.sentinel {
				t.Errorf("sentinel there: %v, want %v", !tc.sentinel, tc.sentinel)
			}
		})
	}
}
