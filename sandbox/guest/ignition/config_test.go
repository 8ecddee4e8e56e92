package ignition

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/sandbox/guest/cloudinit"
)

func TestFilesAndTheScriptOfKubeadmAreRead(t *testing.T) {
	got, err := Parse([]byte(`{
		"ignition": {"version": "3.3.0"},
		"passwd": {"users": [{"name": "ops"}]},
		"storage": {"disks": [{"device": "/dev/sdb"}], "files": [
			{"path": "/etc/a", "mode": 384, "user": {"id": 5}, "group": {"name": "adm"}, "contents": {"source": "data:;base64,aGVsbG8="}, "append": [{"source": "data:,%20more"}]},
			{"path": "/etc/kubeadm.sh", "mode": 448, "contents": {"source": "data:,%23!/bin/bash%0Aset%20-e%0Akubeadm%20join%0Aecho%20x"}}
		]},
		"systemd": {"units": [{"name": "kubeadm.service", "enabled": true, "contents": "[Service]\nExecStart=/etc/kubeadm.sh\n"}, {"name": "srv.mount", "enabled": true}]}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Files: []cloudinit.File{
			{Path: "/etc/a", Content: []byte("hello"), Owner: "5:adm", Mode: os.FileMode(0o600)},
			{Path: "/etc/a", Content: []byte(" more"), Owner: "5:adm", Mode: os.FileMode(0o600), Append: true},
			{Path: "/etc/kubeadm.sh", Content: []byte("#!/bin/bash\nset -e\nkubeadm join\necho x"), Owner: "root:root", Mode: os.FileMode(0o700)},
		},
		Users: []string{"ops"}, Script: []string{"kubeadm join", "echo x"}, Ignored: []string{"systemd.units srv.mount", "storage.disks"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIgnitionWouldNotTakeIsRefused(t *testing.T) {
	files := func(list string) string {
		return `{"ignition": {"version": "3.3.0"}, "storage": {"files": [` + list + `]}, "systemd": {"units": [{"name": "kubeadm.service", "enabled": true, "contents": "ExecStart=/x\n"}]}}`
	}
	for name, tc := range map[string]struct{ config, want string }{
		"no JSON":                {"#cloud-config\n", "config is not valid"},
		"Ignition 2":             {`{"ignition": {"version": "2.3.0"}}`, `unsupported config version "2.3.0"`},
		"a path twice":           {files(`{"path": "/x"}, {"path": "/x"}`), "is there twice"},
		"a relative path":        {files(`{"path": "x"}`), "not absolute"},
		"something to fetch":     {files(`{"path": "/x", "contents": {"source": "https://example.org"}}`), "fetches nothing"},
		"broken base64":          {files(`{"path": "/x", "contents": {"source": "data:;base64,!"}}`), "data URL"},
		"another compression":    {files(`{"path": "/x", "contents": {"source": "data:,x", "compression": "xz"}}`), `compression method "xz"`},
		"a script that is none":  {files(`{"path": "/y"}`), "No such file"},
		"one that cannot be run": {files(`{"path": "/x", "mode": 420}`), "Permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(tc.config)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
