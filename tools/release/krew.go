package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// krew writes the manifests of the plugins. The templates are those of krew's release bot: {{ .TagName }}, and
// {{ addURIAndSha URL TAG }} for the address of an archive and its digest.
func (r *release) krew(archives []archive) error {
	if err := os.MkdirAll(filepath.Join(r.out, "krew"), 0o755); err != nil {
		return err
	}
	for _, plugin := range plugins {
		source, err := os.ReadFile(filepath.Join(r.root, "krew", plugin+".yaml"))
		if err != nil {
			return err
		}
		manifest, err := r.manifest(string(source), archives)
		if err != nil {
			return fmt.Errorf("krew/%s.yaml: %w", plugin, err)
		}
		if err := os.WriteFile(filepath.Join(r.out, "krew", plugin+".yaml"), manifest, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// manifest fills in a template. Platforms that this release does not have are left out; an archive that no platform
// names, or a name without an archive on a platform that was built, is an error.
func (r *release) manifest(source string, archives []archive) ([]byte, error) {
	byFile := map[string]archive{}
	for _, a := range archives {
		byFile[a.file] = a
	}
	var absent []string
	functions := template.FuncMap{"addURIAndSha": func(url, tag string) (string, error) {
		url = strings.ReplaceAll(url, "{{ .TagName }}", tag)
		file := url[strings.LastIndex(url, "/")+1:]
		digest := byFile[file].sum
		if digest == "" {
			absent = append(absent, file)
			digest = strings.Repeat("0", 64)
		}
		return fmt.Sprintf("uri: %s/%s/%s\n    sha256: %s", r.baseURL, tag, file, digest), nil
	}}
	// In the bot's dialect the address is a string in which the tag stands as {{ .TagName }}: Go's template would end at
	// its first braces, were it not in a string.
	parsed, err := template.New("").Funcs(functions).Parse(source)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, map[string]string{"TagName": r.version}); err != nil {
		return nil, err
	}
	return r.withoutAbsent(out.Bytes(), absent)
}

// withoutAbsent drops the platforms that this release was not asked for.
func (r *release) withoutAbsent(manifest []byte, absent []string) ([]byte, error) {
	if len(absent) == 0 {
		return manifest, nil
	}
	for _, file := range absent {
		for _, p := range r.platforms {
			if strings.HasSuffix(file, fmt.Sprintf("_%s_%s%s", p.os, p.arch, p.extension())) {
				return nil, fmt.Errorf("it names %s, which was not made", file)
			}
		}
	}
	var plugin map[string]any
	if err := yaml.Unmarshal(manifest, &plugin); err != nil {
		return nil, err
	}
	spec, _ := plugin["spec"].(map[string]any)
	all, _ := spec["platforms"].([]any)
	var kept []any
	for _, item := range all {
		uri, _ := item.(map[string]any)["uri"].(string)
		if !slices.Contains(absent, uri[strings.LastIndex(uri, "/")+1:]) {
			kept = append(kept, item)
		}
	}
	spec["platforms"] = kept
	return yaml.Marshal(plugin)
}
