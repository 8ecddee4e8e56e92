package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/addons"
	"github.com/millwright-dev/millwright/internal/bundle"
)

// Environment variables that stand for flags or folders.
const (
	mirrorVariable    = "MILLWRIGHT_MIRROR"
	catalogueVariable = "MILLWRIGHT_CATALOGUE"
	cacheVariable     = "MILLWRIGHT_CACHE"
)

// catalogueFlags choose the catalogue, and where what it names by URL comes from.
type catalogueFlags struct {
	from   string
	mirror string
}

func (f *catalogueFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.from, "catalogue", "", "Folder of bundles, or of one, instead of the built-in catalogue (default $"+catalogueVariable+").")
	_ = cmd.MarkFlagDirname("catalogue")
}

func (f *catalogueFlags) addMirrorFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.mirror, "mirror", "", "Folder or URL that has what the catalogue names by URL, instead of the network (default $"+mirrorVariable+").")
}

// load reads the chosen catalogue.
func (f *catalogueFlags) load(context.Context) (*bundle.Catalogue, error) {
	from := f.from
	if from == "" {
		from = os.Getenv(catalogueVariable)
	}
	if from == "" {
		return bundle.Load(addons.Files)
	}
	return bundle.Open(from)
}

// find looks one add-on of the chosen catalogue up.
func (f *catalogueFlags) find(ctx context.Context, name string) (*bundle.Addon, error) {
	catalogue, err := f.load(ctx)
	if err != nil {
		return nil, err
	}
	return catalogue.Addon(name)
}

// fetcher gets what the catalogue names by URL.
func (f *catalogueFlags) fetcher() *bundle.Fetcher {
	mirror := f.mirror
	if mirror == "" {
		mirror = os.Getenv(mirrorVariable)
	}
	return &bundle.Fetcher{Cache: cacheFolder(), Mirror: mirror}
}

// cacheFolder is where sources are kept; none where the system has no place for it.
func cacheFolder() string {
	if folder := os.Getenv(cacheVariable); folder != "" {
		return folder
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "millwright")
}

// completeNames completes arguments with the names of the catalogue that are not there yet.
func completeNames(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	catalogue, err := flagged(cmd).load(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, addon := range catalogue.Addons() {
		if strings.HasPrefix(addon.Name, toComplete) && !slices.Contains(args, addon.Name) {
			names = append(names, addon.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeName is completeNames for commands that take one name.
func completeName(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeNames(cmd, args, toComplete)
}

// completeVersions completes a flag with the versions of the add-on that is named.
func completeVersions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	addon := namedAddon(cmd, args)
	if addon == nil {
		return []string{autoVersion}, cobra.ShellCompDirectiveNoFileComp
	}
	return append([]string{autoVersion}, addon.VersionNames()...), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeParameters completes the name in --set, not the value behind it.
func completeParameters(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	addon := namedAddon(cmd, args)
	if addon == nil || strings.Contains(toComplete, "=") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, name := range addon.Parameters.Names() {
		names = append(names, name+"=")
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// namedAddon is the add-on that the arguments name alone; else nil.
func namedAddon(cmd *cobra.Command, args []string) *bundle.Addon {
	if len(args) != 1 {
		return nil
	}
	addon, err := flagged(cmd).find(cmd.Context(), args[0])
	if err != nil {
		return nil
	}
	return addon
}

// flagged is the catalogue that the flags typed so far choose.
func flagged(cmd *cobra.Command) *catalogueFlags {
	flags := &catalogueFlags{}
	if flag := cmd.Flags().Lookup("catalogue"); flag != nil {
		flags.from = flag.Value.String()
	}
	return flags
}
