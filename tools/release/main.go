package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// platforms are those of krew's manifests; the image is made for those of them that run Linux.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

var plugins = []string{"machines", "addons"}

// release is what all parts of a release have in common.
type release struct {
	// root is the repository, out the folder that is made.
	root, out string
	// version is a tag: v1.2.3, with what semver allows after it.
	version string
	// baseURL is where the archives will be, without the version.
	baseURL string
	// image is the operator's image without a tag.
	image string
	// time is that of everything in the release.
	time      time.Time
	platforms []platform
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	r := release{platforms: platforms}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.root, "root", ".", "the repository")
	flags.StringVar(&r.out, "out", "dist", "folder to make; it must not exist, or have been made by this program")
	flags.StringVar(&r.version, "version", "", "version, as the tag has it: v1.2.3")
	flags.StringVar(&r.baseURL, "base-url", "https://github.com/millwright-dev/millwright/releases/download", "where the archives will be, without the version")
	flags.StringVar(&r.image, "image", "ghcr.io/millwright-dev/millwright-operator", "name of the operator's image, without a tag")
	only := flags.String("platforms", "", "build for these only, as linux/amd64,darwin/arm64; krew's manifests then name no others")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err := r.complete(ctx, *only); err != nil {
		return err
	}
	return r.make(ctx)
}

var tag = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// complete checks the flags and finds out what they leave open.
func (r *release) complete(ctx context.Context, only string) error {
	if !tag.MatchString(r.version) {
		return fmt.Errorf("-version is %q: want a tag such as v1.2.3", r.version)
	}
	var err error
	if r.platforms, err = choose(only); err != nil {
		return err
	}
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	r.time, err = commitTime(ctx, r.root)
	return err
}

// choose reads -platforms; empty are all.
func choose(only string) ([]platform, error) {
	if only == "" {
		return platforms, nil
	}
	var chosen []platform
	for name := range strings.SplitSeq(only, ",") {
		found := false
		for _, p := range platforms {
			if p.String() == name {
				chosen, found = append(chosen, p), true
			}
		}
		if !found {
			return nil, fmt.Errorf("-platforms: no release is made for %q", name)
		}
	}
	return chosen, nil
}

// commitTime is SOURCE_DATE_EPOCH (reproducible-builds.org) or else the time of the commit.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		out, err := exec.CommandContext(ctx, "git", "-C", root, "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("ask git for the time of the commit (or set SOURCE_DATE_EPOCH): %w", err)
		}
		seconds = strings.TrimSpace(string(out))
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(n, 0).UTC(), nil
}

// mark is the file by which a folder that this program made is known: no other is emptied.
const mark = ".millwright-release"

func (r *release) make(ctx context.Context) error {
	if entries, err := os.ReadDir(r.out); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(r.out, mark)); err != nil {
			return fmt.Errorf("%s exists and was not made by this program: name another folder with -out", r.out)
		}
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, mark), nil, 0o644); err != nil {
		return err
	}
	archives, err := r.plugins(ctx)
	if err != nil {
		return err
	}
	if err := r.krew(archives); err != nil {
		return err
	}
	if err := r.installManifests(ctx); err != nil {
		return err
	}
	if err := r.operator(ctx); err != nil {
		return err
	}
	return r.sums()
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
