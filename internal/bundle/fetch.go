package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

const (
	// maxSource is the largest file that is fetched, in bytes. The largest manifest known has 3 MB.
	maxSource = 64 << 20
	// fetchTimeout bounds one file from a network.
	fetchTimeout = time.Minute
)

// DigestError says that a file is not what the catalogue was made of.
type DigestError struct {
	Source Source
	// File is where the content came from: a path or an address.
	File string
	// Found is the sha256 of that content.
	Found string
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("%s is not the file that the catalogue names (%s): sha256 wanted %s, found %s: replace it with the published file",
		e.File, e.Source.URL, e.Source.SHA256, e.Found)
}

// Fetcher gets sources. Content is returned only when its digest is the one
// that the catalogue names, wherever it comes from.
type Fetcher struct {
	// Cache is a folder where sources are kept by their digest; none when empty.
	Cache string
	// Mirror is a folder, or an http(s) address, that stands for all hosts. When
	// it is set nothing else is asked, and the cache is not believed before it.
	Mirror string
	// HTTP is the client for addresses; http.DefaultClient when nil.
	HTTP *http.Client
}

// Fetch returns the content of all sources of a version, by their URL.
func (f *Fetcher) Fetch(ctx context.Context, v *Version) (map[string][]byte, error) {
	contents := make(map[string][]byte, len(v.Sources))
	for _, source := range v.Sources {
		content, err := f.Get(ctx, source)
		if err != nil {
			return nil, err
		}
		contents[source.URL] = content
	}
	return contents, nil
}

// Get returns the content of one source.
func (f *Fetcher) Get(ctx context.Context, source Source) ([]byte, error) {
	if f.Mirror != "" {
		return f.fromMirror(ctx, source)
	}
	if content := f.cached(source); content != nil {
		return content, nil
	}
	content, err := f.get(ctx, source.URL)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w: give a mirror that has it with --mirror or MILLWRIGHT_MIRROR", source.URL, err)
	}
	if err := verify(source, source.URL, content); err != nil {
		return nil, err
	}
	if err := f.keep(source, content); err != nil {
		return nil, fmt.Errorf("keep %s in the cache: %w", source.URL, err)
	}
	return content, nil
}

// fromMirror reads a source from below the mirror.
func (f *Fetcher) fromMirror(ctx context.Context, source Source) ([]byte, error) {
	below := source.MirrorPath()
	var content []byte
	var err error
	location := ""
	if isAddress(f.Mirror) {
		location = strings.TrimSuffix(f.Mirror, "/") + "/" + below
		content, err = f.get(ctx, location)
	} else {
		location = filepath.Join(strings.TrimPrefix(f.Mirror, "file://"), filepath.FromSlash(below))
		content, err = readFile(location)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s from the mirror: %w: put there what is published at %s", below, err, source.URL)
	}
	return content, verify(source, location, content)
}

// MirrorPath is where a source stands below a mirror.
func (s Source) MirrorPath() string {
	if s.Path != "" {
		return path.Clean(s.Path)
	}
	if u, err := url.Parse(s.URL); err == nil {
		return strings.TrimPrefix(path.Clean(u.Path), "/")
	}
	return ""
}

func isAddress(mirror string) bool {
	return strings.HasPrefix(mirror, "http://") || strings.HasPrefix(mirror, "https://")
}

func verify(source Source, location string, content []byte) error {
	if found := digest(content); found != source.SHA256 {
		return &DigestError{Source: source, File: location, Found: found}
	}
	return nil
}

// digest is the sha256 of content in hexadecimal digits.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (f *Fetcher) cacheFile(source Source) string {
	return filepath.Join(f.Cache, "sources", "sha256", source.SHA256)
}

// cached returns the content kept for a source, or nil when there is none that is whole.
func (f *Fetcher) cached(source Source) []byte {
	if f.Cache == "" {
		return nil
	}
	content, err := readFile(f.cacheFile(source))
	if err != nil || digest(content) != source.SHA256 {
		return nil
	}
	return content
}

// keep writes a source into the cache. The rename makes it appear whole or not at all.
func (f *Fetcher) keep(source Source, content []byte) error {
	if f.Cache == "" {
		return nil
	}
	file := f.cacheFile(source)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".partial-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(content)
	if err := errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}

func (f *Fetcher) get(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := f.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			return nil, wrapped.Err
		}
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", response.Status)
	}
	return readAll(response.Body)
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file)
}

// readAll reads up to maxSource bytes and refuses more.
func readAll(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxSource+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxSource {
		return nil, fmt.Errorf("more than %d MiB", maxSource>>20)
	}
	return content, nil
}
