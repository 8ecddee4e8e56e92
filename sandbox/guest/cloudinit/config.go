package cloudinit

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Config is the part of a cloud-config that a guest acts on.
type Config struct {
	BootCommands []Command
	Files        []File
	Users        []string
	RunCommands  []Command
	// Ignored are top-level keys whose effect a process guest does not have.
	Ignored []string
}

// Command is an entry of runcmd or bootcmd: a shell line, or the arguments of a
// program that no shell sees.
type Command struct {
	Shell string
	Args  []string
}

// File is an entry of write_files with its content decoded.
type File struct {
	Path    string
	Content []byte
	Owner   string
	Mode    os.FileMode
	Append  bool
	// Defer puts the file off until users exist.
	Defer bool
}

// warnings that cloud-init logs and goes on from, as it says them.
type warnings []string

func (w *warnings) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

// Parse reads user data after rendering. An error is what makes cloud-init drop
// the user data or fail a module; what it only complains about comes back as
// warnings.
func Parse(userdata []byte) (*Config, []string, error) {
	first, _, _ := bytes.Cut(userdata, []byte("\n"))
	if header := strings.TrimSpace(string(first)); header != "#cloud-config" {
		if len(header) > 60 {
			header = header[:60]
		}
		return nil, nil, fmt.Errorf("unhandled non-multipart (text/x-not-multipart) userdata: %q...: the first line must be #cloud-config", header)
	}
	document := map[string]any{}
	if err := yaml.Unmarshal(userdata, &document); err != nil {
		return nil, nil, fmt.Errorf("failed loading yaml blob: %s", strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	config := &Config{}
	var warn warnings
	var failed [4]error
	config.BootCommands, failed[0] = commands("bootcmd", document["bootcmd"])
	config.Files, failed[1] = files(document["write_files"], &warn)
	config.Users, failed[2] = users(document["users"])
	config.RunCommands, failed[3] = commands("runcmd", document["runcmd"])
	for _, key := range slices.Sorted(maps.Keys(document)) {
		if !slices.Contains([]string{"bootcmd", "write_files", "users", "runcmd"}, key) {
			config.Ignored = append(config.Ignored, key)
		}
	}
	return config, warn, errors.Join(failed[:]...)
}

func commands(key string, value any) ([]Command, error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("failed to shellify %s: input was type %s, expected list or tuple", key, pythonType(value))
	}
	var out []Command
	for _, entry := range list {
		switch entry := entry.(type) {
		case string:
			out = append(out, Command{Shell: entry})
		case []any:
			command := Command{}
			for _, arg := range entry {
				command.Args = append(command.Args, asPython(arg))
			}
			out = append(out, command)
		default:
			return nil, fmt.Errorf("unable to shellify type %s in %s: expected list, string or tuple", pythonType(entry), key)
		}
	}
	return out, nil
}

func files(value any, warn *warnings) ([]File, error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("write_files: type %s, expected a list", pythonType(value))
	}
	var out []File
	for n, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("write_files[%d]: type %s, expected a mapping", n, pythonType(entry))
		}
		path := text(fields["path"])
		if path == "" {
			warn.add("No path provided to write for entry %d in module write_files", n+1)
			continue
		}
		content, err := decodeContent(path, text(fields["content"]), text(fields["encoding"]), warn)
		if err != nil {
			return nil, err
		}
		owner := text(fields["owner"])
		if owner == "" {
			owner = "root:root"
		}
		out = append(out, File{
			Path: path, Content: content, Owner: owner, Mode: mode(path, fields["permissions"], warn),
			Append: isTrue(fields["append"]), Defer: isTrue(fields["defer"]),
		})
	}
	return out, nil
}

// decodeContent knows the aliases of cc_write_files. An unknown one is plain
// text with a warning there, and so here.
func decodeContent(path, content, encoding string, warn *warnings) ([]byte, error) {
	var err error
	data := []byte(content)
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "text/plain":
	case "b64", "base64":
		data, err = fromBase64(content)
	case "gz", "gzip":
		data, err = gunzip(data)
	case "gz+b64", "gz+base64", "gzip+b64", "gzip+base64":
		if data, err = fromBase64(content); err == nil {
			data, err = gunzip(data)
		}
	default:
		warn.add("Unknown encoding type %s, assuming text/plain", encoding)
	}
	if err != nil {
		return nil, fmt.Errorf("write_files: %s: %w", path, err)
	}
	return data, nil
}

// mode reads permissions: text is octal, a number is what YAML made of it.
func mode(path string, value any, warn *warnings) os.FileMode {
	const fallback = 0o644
	switch value := value.(type) {
	case nil:
		return fallback
	case float64:
		if value == math.Trunc(value) && value >= 0 && value <= 0o7777 {
			return os.FileMode(value)
		}
	case string:
		if value == "" {
			return fallback
		}
		if bits, err := strconv.ParseUint(strings.TrimPrefix(value, "0o"), 8, 12); err == nil {
			return os.FileMode(bits)
		}
	}
	warn.add("Undecodable permissions %v for %s, returning default 0o%o", value, path, fallback)
	return fallback
}

func users(value any) ([]string, error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("users: type %s, expected a list", pythonType(value))
	}
	var names []string
	for n, entry := range list {
		switch entry := entry.(type) {
		case string:
			names = append(names, entry)
		case map[string]any:
			name := text(entry["name"])
			if name == "" {
				return nil, fmt.Errorf("users[%d] has no name", n)
			}
			names = append(names, name)
		default:
			return nil, fmt.Errorf("users[%d]: type %s, expected a name or a mapping", n, pythonType(entry))
		}
	}
	return names, nil
}

func isTrue(value any) bool {
	switch value := value.(type) {
	case bool:
		return value
	case string:
		switch strings.ToLower(value) {
		case "true", "1", "on", "yes":
			return true
		}
	}
	return false
}

func pythonType(value any) string {
	switch value.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case float64:
		return "int"
	case string:
		return "str"
	case []any:
		return "list"
	default:
		return "dict"
	}
}
