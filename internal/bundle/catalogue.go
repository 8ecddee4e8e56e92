package bundle

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// addonFile describes an add-on, in its folder.
const addonFile = "addon.yaml"

// Catalogue is a set of add-ons.
type Catalogue struct {
	addons []*Addon
}

// Load reads every add-on of a file system: one folder each, named as the
// add-on. A folder without addon.yaml is an error.
func Load(files fs.FS) (*Catalogue, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	catalogue := &Catalogue{}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		folder, err := fs.Sub(files, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read the catalogue: %w", err)
		}
		addon, err := loadAddon(entry.Name(), folder)
		if err != nil {
			return nil, err
		}
		catalogue.addons = append(catalogue.addons, addon)
	}
	slices.SortFunc(catalogue.addons, func(a, b *Addon) int {
		byCategory := slices.Index(Categories, a.Category) - slices.Index(Categories, b.Category)
		if byCategory != 0 {
			return byCategory
		}
		return strings.Compare(a.Name, b.Name)
	})
	return catalogue, nil
}

// loadAddon reads and checks one folder: addon.yaml, and that each version has
// its kustomization and parameters that agree with the schema.
func loadAddon(name string, files fs.FS) (*Addon, error) {
	file := name + "/" + addonFile
	content, err := fs.ReadFile(files, addonFile)
	if err != nil {
		return nil, &FileError{File: file, Err: err}
	}
	addon, err := parseAddon(file, content)
	if err != nil {
		return nil, err
	}
	if addon.Name != name {
		return nil, &FileError{File: file, Err: fmt.Errorf("name is %q, but the folder is %q", addon.Name, name)}
	}
	addon.files = files
	for i := range addon.Versions {
		if err := checkVersionFolder(addon, &addon.Versions[i]); err != nil {
			return nil, err
		}
	}
	return addon, nil
}

// checkVersionFolder checks what can be checked of a version without its sources.
func checkVersionFolder(addon *Addon, v *Version) error {
	if err := checkKustomization(addon, v); err != nil {
		return err
	}
	parameters, err := addon.defaults(v)
	if err != nil {
		return err
	}
	return addon.schemaOf(v).agreesWith(addon.fileName(v, parametersFile), parameters)
}

// fileName is how errors call a file of a version's folder.
func (a *Addon) fileName(v *Version, file string) string {
	return a.Name + "/" + v.Version + "/" + file
}

// Addons lists the catalogue by category, then name.
func (c *Catalogue) Addons() []*Addon { return c.addons }

// Addon returns one add-on by its name.
func (c *Catalogue) Addon(name string) (*Addon, error) {
	known := make([]string, 0, len(c.addons))
	for _, addon := range c.addons {
		if addon.Name == name {
			return addon, nil
		}
		known = append(known, addon.Name)
	}
	return nil, &UnknownError{What: "add-on", Name: name, Known: known}
}
