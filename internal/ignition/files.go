package ignition

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_3/types"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/millwright-dev/millwright/internal/cloudinit"
)

const (
	scriptPath  = "/etc/kubeadm.sh"
	sudoersPath = "/etc/sudoers.d/90-kubeadmconfig-users"
	timePath    = "/etc/systemd/timesyncd.conf.d/50-kubeadmconfig.conf"
)

// source is a file with the field that it comes from.
type source struct {
	bootstrapv1.File
	field string
}

// renderFiles returns all files, each path once: to what is there already Ignition appends, and the last of several
// that replace it wins, as with cloud-init.
func renderFiles(in cloudinit.Input) ([]types.File, error) {
	var out []types.File
	for _, s := range sources(in) {
		if s.ContentFrom.IsDefined() {
			return nil, fmt.Errorf("%s still refers to Secret %q: its content must be read first", s.field, s.ContentFrom.Secret.Name)
		}
		if strings.HasPrefix(s.Path, "/run/") || strings.HasPrefix(s.Path, "/tmp/") {
			return nil, fmt.Errorf("%s.path is %s: Ignition writes files before that folder is there: use one below /etc or /opt", s.field, s.Path)
		}
		resource, err := resourceOf(s)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(out, func(f types.File) bool { return f.Path == s.Path })
		add := ptr.Deref(s.Append, false)
		switch {
		case at < 0:
			out = append(out, types.File{Node: types.Node{Path: s.Path}})
			at = len(out) - 1
		case !add:
			out[at] = types.File{Node: types.Node{Path: s.Path}}
		}
		if add {
			out[at].Append = append(out[at].Append, resource)
		} else {
			out[at].Contents, out[at].Overwrite = resource, ptr.To(true)
		}
		if out[at].Mode, err = modeOf(s, out[at].Mode); err != nil {
			return nil, err
		}
		setOwner(&out[at], s.Owner)
	}
	return out, nil
}

// sources returns all files in the order in which they are written. What a user appends to kubeadm's configuration, by
// its path here or with cloud-init, comes after it.
func sources(in cloudinit.Input) []source {
	config := cloudinit.JoinConfigPath
	if in.Command == cloudinit.Init {
		config = cloudinit.InitConfigPath
	}
	var out, appended []source
	own := func(path, permissions, content string) source {
		return source{bootstrapv1.File{Path: path, Owner: "root:root", Permissions: permissions, Content: content}, path}
	}
	for _, file := range in.Certificates {
		out = append(out, source{file, "certificate " + file.Path})
	}
	for i, file := range in.Spec.Files {
		s := source{file, fmt.Sprintf("spec.files[%d]", i)}
		if ptr.Deref(file.Append, false) && (file.Path == config || file.Path == ConfigPath) {
			// It keeps the owner and permissions that ours has.
			s.Path, s.Owner, s.Permissions = ConfigPath, "", ""
			appended = append(appended, s)
			continue
		}
		out = append(out, s)
	}
	if lines := sudoers(in.Spec.Users); lines != "" {
		out = append(out, own(sudoersPath, "0440", lines))
	}
	if servers := in.Spec.NTP.Servers; len(servers) > 0 {
		out = append(out, own(timePath, "0644", "[Time]\nNTP="+strings.Join(servers, " ")+"\n"))
	}
	out = append(out, own(scriptPath, "0700", script(in)), own(ConfigPath, "0640", string(in.Config)))
	return append(out, appended...)
}

// resourceOf undoes what cloud-init would undo on the machine, but for gzip, which Ignition knows.
func resourceOf(s source) (types.Resource, error) {
	content := []byte(s.Content)
	var out types.Resource
	switch s.Encoding {
	case bootstrapv1.Base64, bootstrapv1.GzipBase64:
		decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s.Content), ""))
		if err != nil {
			// Its error quotes the content.
			return out, fmt.Errorf("%s.content is not in base64, which its encoding says: encode it, or remove the encoding", s.field)
		}
		content = decoded
	}
	if s.Encoding == bootstrapv1.Gzip || s.Encoding == bootstrapv1.GzipBase64 {
		out.Compression = ptr.To("gzip")
	}
	out.Source = ptr.To("data:;base64," + base64.StdEncoding.EncodeToString(content))
	return out, nil
}

// modeOf returns what is asked for; without that what the file has, and for a new one cloud-init's default. To what is
// only appended to, the image has given its own.
func modeOf(s source, have *int) (*int, error) {
	switch {
	case s.Permissions != "":
	case have == nil && !ptr.Deref(s.Append, false):
		return ptr.To(0o644), nil
	default:
		return have, nil
	}
	mode, err := strconv.ParseInt(s.Permissions, 8, 32)
	if err != nil {
		return nil, fmt.Errorf("%s.permissions %q are not octal: give them as \"0640\"", s.field, s.Permissions)
	}
	return ptr.To(int(mode)), nil
}

// setOwner takes user:group, each a name or a number.
func setOwner(file *types.File, owner string) {
	if owner == "" {
		return
	}
	user, group, _ := strings.Cut(owner, ":")
	if id, err := strconv.Atoi(user); err == nil {
		file.User = types.NodeUser{ID: &id}
	} else if user != "" {
		file.User = types.NodeUser{Name: &user}
	}
	if id, err := strconv.Atoi(group); err == nil {
		file.Group = types.NodeGroup{ID: &id}
	} else if group != "" {
		file.Group = types.NodeGroup{Name: &group}
	}
}

// script is what kubeadm.service runs. A command that fails ends it, and the machine counts as failed.
func script(in cloudinit.Input) string {
	kubeadm := "kubeadm " + string(in.Command) + " --config " + ConfigPath
	if in.Spec.Verbosity != nil {
		kubeadm += fmt.Sprintf(" --v %d", *in.Spec.Verbosity)
	}
	lines := []string{"#!/bin/bash", "set -e"}
	lines = append(lines, in.Spec.PreKubeadmCommands...)
	lines = append(lines, kubeadm,
		"mkdir -p /run/cluster-api && echo success > "+cloudinit.SentinelPath,
		// It holds a token, and the unit runs only while it is there.
		"mv "+ConfigPath+" /tmp/")
	lines = append(lines, in.Spec.PostKubeadmCommands...)
	return strings.Join(lines, "\n") + "\n"
}
