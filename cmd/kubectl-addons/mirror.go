package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// Files that a mirror has beside the published ones.
const (
	imagesFile    = "images.txt"
	checksumsFile = "SHA256SUMS"
)

// mirrorOptions copy what add-ons need into a folder.
type mirrorOptions struct {
	*cli.Options
	catalogue catalogueFlags

	folder     string
	names      []string
	kubernetes string
}

func newMirrorCommand(o *cli.Options) *cobra.Command {
	mirror := &mirrorOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "mirror FOLDER [NAME...]",
		Short: "Copy what add-ons need into a folder, for clusters without a network",
		Long: templates.LongDesc(`
			Copy the published files of add-ons into a folder, each checked against its digest, and list the
			images that they run. Without a name it is the whole catalogue; without --kubernetes-version every
			version. Files that are there and right are not fetched again.

			"--mirror FOLDER" then installs from the folder, and nothing else is asked. Images are for
			the tools of the registry to copy: images.txt has one a line, as rendered with the defaults.
			SHA256SUMS is for "sha256sum --check".`),
		Example: templates.Examples(`
			# Everything for the add-ons of clusters that run Kubernetes 1.36
			{{kubectl}} mirror ./mirror calico coredns metrics-server --kubernetes-version v1.36.3

			# On the other side of the gap
			{{kubectl}} install calico --mirror ./mirror`),
		Args: cli.AtLeastOneArg("FOLDER"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return completeNames(cmd, args[1:], toComplete)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			mirror.folder, mirror.names = args[0], args[1:]
			return mirror.run(cmd.Context())
		},
	}
	mirror.catalogue.addFlags(cmd)
	mirror.catalogue.addMirrorFlag(cmd)
	cmd.Flags().StringVar(&mirror.kubernetes, "kubernetes-version", "", "Only the versions that are stated for this Kubernetes version.")
	return cmd
}

func (o *mirrorOptions) run(ctx context.Context) error {
	catalogue, err := o.catalogue.load(ctx)
	if err != nil {
		return err
	}
	chosen, err := o.choose(catalogue)
	if err != nil {
		return err
	}
	fetcher := o.catalogue.fetcher()
	var images []string
	sums := map[string]string{}
	for _, version := range chosen {
		err := o.copyAll(ctx, fetcher, version, sums)
		if err != nil && version.Untested && len(o.names) == 0 && ctx.Err() == nil {
			fmt.Fprintf(o.ErrOut, "warning: an untested version is left out: %v\n", err)
			continue
		}
		if err != nil {
			return err
		}
		images = append(images, version.Images...)
	}
	slices.Sort(images)
	images = slices.Compact(images)
	if err := o.write(imagesFile, images); err != nil {
		return err
	}
	var lines []string
	for _, below := range slices.Sorted(maps.Keys(sums)) {
		lines = append(lines, sums[below]+"  "+below)
	}
	if err := o.write(checksumsFile, lines); err != nil {
		return err
	}
	fmt.Fprintf(o.ErrOut, "%s has %d files of %d versions, and lists %d images.\n", o.folder, len(sums), len(chosen), len(images))
	return nil
}

// choose picks the versions that are mirrored.
func (o *mirrorOptions) choose(catalogue *bundle.Catalogue) ([]*bundle.Version, error) {
	addons := catalogue.Addons()
	if len(o.names) > 0 {
		addons = nil
		for _, name := range o.names {
			addon, err := catalogue.Addon(name)
			if err != nil {
				return nil, err
			}
			addons = append(addons, addon)
		}
	}
	var chosen []*bundle.Version
	for _, addon := range addons {
		before := len(chosen)
		for i := range addon.Versions {
			fits, err := addon.Versions[i].Fits(o.kubernetes)
			if err != nil {
				return nil, cli.UsageErrorf("--kubernetes-version: %w", err)
			}
			if fits {
				chosen = append(chosen, &addon.Versions[i])
			}
		}
		if len(chosen) == before {
			fmt.Fprintf(o.ErrOut, "warning: no version of %s is stated for Kubernetes %s: it is left out\n", addon.Name, o.kubernetes)
		}
	}
	return chosen, nil
}

// copyAll copies the sources of a version and notes their digests in sums.
func (o *mirrorOptions) copyAll(ctx context.Context, fetcher *bundle.Fetcher, version *bundle.Version, sums map[string]string) error {
	for _, source := range version.Sources {
		below := source.MirrorPath()
		if sum, there := sums[below]; there && sum != source.SHA256 {
			return fmt.Errorf("%s is there twice with other content: give one of the two a path in its addon.yaml", below)
		}
		if err := o.copy(ctx, fetcher, source); err != nil {
			return err
		}
		sums[below] = source.SHA256
	}
	return nil
}

// copy puts a source where a mirror has it. It appears whole or not at all.
func (o *mirrorOptions) copy(ctx context.Context, fetcher *bundle.Fetcher, source bundle.Source) error {
	there := &bundle.Fetcher{Mirror: o.folder}
	if _, err := there.Get(ctx, source); err == nil {
		fmt.Fprintf(o.Out, "%s unchanged\n", source.MirrorPath())
		return nil
	}
	content, err := fetcher.Get(ctx, source)
	if err != nil {
		return err
	}
	file := filepath.Join(o.folder, filepath.FromSlash(source.MirrorPath()))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := writeWhole(file, content); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s copied\n", source.MirrorPath())
	return nil
}

func (o *mirrorOptions) write(name string, lines []string) error {
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return err
	}
	text := strings.Join(lines, "\n")
	if text != "" {
		text += "\n"
	}
	return writeWhole(filepath.Join(o.folder, name), []byte(text))
}

// writeWhole writes a file under another name and renames it.
func writeWhole(file string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".partial-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(content)
	if err := errors.Join(err, temporary.Chmod(0o644), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}
