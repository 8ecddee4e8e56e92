// Package ignition reads an Ignition configuration as far as a guest that is a process acts on it: files, and the script
// of the unit kubeadm.service. The bytes of guestinfo.ignition.config.data go in, decoded; what comes out has the
// types that package cloudinit carries out.
package ignition

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/millwright-dev/millwright/sandbox/guest/cloudinit"
)

// Config is the part of an Ignition configuration that a guest acts on.
type Config struct {
	Files []cloudinit.File
	Users []string
	// Script are the lines that kubeadm.service runs, without those that only set up the shell.
	Script []string
	// Ignored are sections whose effect a process guest does not have.
	Ignored []string
}

// unitName is the unit that Cluster API's bootstrap providers write.
const unitName = "kubeadm.service"

// document is a configuration of specification 3 (https://coreos.github.io/ignition/configuration-v3_3/).
type document struct {
	Ignition struct {
		Version string `json:"version"`
	} `json:"ignition"`
	Passwd struct {
		Users []struct {
			Name string `json:"name"`
		} `json:"users"`
	} `json:"passwd"`
	Storage struct {
		Files       []file            `json:"files"`
		Disks       []json.RawMessage `json:"disks"`
		Filesystems []json.RawMessage `json:"filesystems"`
	} `json:"storage"`
	Systemd struct {
		Units []struct {
			Name     string `json:"name"`
			Enabled  bool   `json:"enabled"`
			Contents string `json:"contents"`
		} `json:"units"`
	} `json:"systemd"`
}

type file struct {
	Path     string     `json:"path"`
	Mode     *int       `json:"mode"`
	User     owner      `json:"user"`
	Group    owner      `json:"group"`
	Contents resource   `json:"contents"`
	Append   []resource `json:"append"`
}

type owner struct {
	ID   *int   `json:"id"`
	Name string `json:"name"`
}

func (o owner) String() string {
	switch {
	case o.ID != nil:
		return strconv.Itoa(*o.ID)
	case o.Name != "":
		return o.Name
	}
	return "root"
}

type resource struct {
	Source      string `json:"source"`
	Compression string `json:"compression"`
}

// Parse reads a configuration. Ignition stops the boot of a machine whose configuration it does not take.
func Parse(raw []byte) (*Config, error) {
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("config is not valid: %w", err)
	}
	if !strings.HasPrefix(doc.Ignition.Version, "3.") {
		return nil, fmt.Errorf("unsupported config version %q", doc.Ignition.Version)
	}
	config := &Config{}
	seen := map[string]bool{}
	for _, f := range doc.Storage.Files {
		if seen[f.Path] || !strings.HasPrefix(f.Path, "/") {
			return nil, fmt.Errorf("error at $.storage.files: path %q is there twice, or not absolute", f.Path)
		}
		seen[f.Path] = true
		files, err := f.read()
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", f.Path, err)
		}
		config.Files = append(config.Files, files...)
	}
	for _, user := range doc.Passwd.Users {
		config.Users = append(config.Users, user.Name)
	}
	for _, unit := range doc.Systemd.Units {
		if unit.Name != unitName || !unit.Enabled {
			config.Ignored = append(config.Ignored, "systemd.units "+unit.Name)
			continue
		}
		var err error
		if config.Script, err = config.script(unit.Contents); err != nil {
			return nil, err
		}
	}
	if len(doc.Storage.Disks) > 0 {
		config.Ignored = append(config.Ignored, "storage.disks")
	}
	if len(doc.Storage.Filesystems) > 0 {
		config.Ignored = append(config.Ignored, "storage.filesystems")
	}
	return config, nil
}

// read returns a file and what is appended to it.
func (f file) read() ([]cloudinit.File, error) {
	mode := os.FileMode(0o644)
	if f.Mode != nil {
		mode = os.FileMode(*f.Mode)
	}
	var out []cloudinit.File
	add := func(r resource, appended bool) error {
		content, err := r.read()
		if err != nil {
			return err
		}
		out = append(out, cloudinit.File{Path: f.Path, Content: content, Owner: f.User.String() + ":" + f.Group.String(), Mode: mode, Append: appended})
		return nil
	}
	if f.Contents.Source != "" || len(f.Append) == 0 {
		if err := add(f.Contents, false); err != nil {
			return nil, err
		}
	}
	for _, r := range f.Append {
		if err := add(r, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// read decodes a data URL (RFC 2397); nothing is fetched.
func (r resource) read() ([]byte, error) {
	if r.Source == "" {
		return nil, nil
	}
	head, body, ok := strings.Cut(r.Source, ",")
	if !ok || !strings.HasPrefix(head, "data:") {
		return nil, errors.New("a process guest fetches nothing: give the contents as a data URL")
	}
	text, err := url.PathUnescape(body)
	if err != nil {
		return nil, fmt.Errorf("data URL: %w", err)
	}
	content := []byte(text)
	if strings.HasSuffix(head, ";base64") {
		if content, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, fmt.Errorf("data URL: %w", err)
		}
	}
	switch r.Compression {
	case "":
		return content, nil
	case "gzip":
		reader, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		return io.ReadAll(reader)
	}
	return nil, fmt.Errorf("invalid compression method %q", r.Compression)
}

// script returns the lines of the file that a unit's ExecStart names.
func (c *Config) script(unit string) ([]string, error) {
	var path string
	for line := range strings.Lines(unit) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart="); ok {
			path = value
		}
	}
	for _, f := range c.Files {
		if f.Path != path {
			continue
		}
		if f.Mode&0o100 == 0 {
			return nil, fmt.Errorf("%s: Failed to execute %s: Permission denied", unitName, path)
		}
		var lines []string
		for line := range strings.Lines(string(f.Content)) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "set ") {
				lines = append(lines, line)
			}
		}
		return lines, nil
	}
	return nil, fmt.Errorf("%s: Failed to execute %q: No such file or directory", unitName, path)
}
