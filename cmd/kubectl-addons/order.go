package main

import (
	"fmt"
	"slices"
	"strings"
)

// inOrder sorts add-ons so that each comes after those it depends on, and
// otherwise as they were given. Dependencies that are neither among them nor
// installed come back as missing, one text each.
func inOrder(sets []*rendered, installed []string) (sorted []*rendered, missing []string, err error) {
	byName := map[string]*rendered{}
	for _, set := range sets {
		byName[set.Addon.Name] = set
	}
	var visit func(set *rendered, path []string) error
	visit = func(set *rendered, path []string) error {
		name := set.Addon.Name
		if slices.Contains(path, name) {
			return fmt.Errorf("add-ons depend on each other in a circle: %s: the catalogue has to be mended", strings.Join(append(path, name), " -> "))
		}
		if slices.Contains(sorted, set) {
			return nil
		}
		for _, dependency := range set.Version.DependsOn {
			if needed := byName[dependency]; needed != nil {
				if err := visit(needed, append(path, name)); err != nil {
					return err
				}
			} else if !slices.Contains(installed, dependency) {
				missing = append(missing, fmt.Sprintf("%s %s needs add-on %s, which is not installed", name, set.Version.Version, dependency))
			}
		}
		sorted = append(sorted, set)
		return nil
	}
	for _, set := range sets {
		if err := visit(set, nil); err != nil {
			return nil, nil, err
		}
	}
	return sorted, missing, nil
}
