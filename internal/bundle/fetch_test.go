package bundle

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sourceURL = "https://example.com/demo/v2.0.0/demo.yaml"

// published is the content that the catalogue of testdata names.
func published(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(testMirror, "demo/v2.0.0/demo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// upstream answers every address with content, and counts how often.
type upstream struct {
	content []byte
	asked   int
}

func (u *upstream) RoundTrip(request *http.Request) (*http.Response, error) {
	u.asked++
	recorder := httptest.NewRecorder()
	_, _ = recorder.Write(u.content)
	return recorder.Result(), nil
}

// unreachable is a network that is not there.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no such host")
}

func TestASourceIsFetchedOnceAndThenFoundInTheCache(t *testing.T) {
	_, v := demoVersion(t, "2.0.0")
	network := &upstream{content: published(t)}
	fetcher := &Fetcher{Cache: t.TempDir(), HTTP: &http.Client{Transport: network}}
	for range 2 {
		contents, err := fetcher.Fetch(context.Background(), v)
		if err != nil {
			t.Fatal(err)
		}
		if string(contents[sourceURL]) != string(network.content) {
			t.Error("the content is not what upstream publishes")
		}
	}
	if network.asked != 1 {
		t.Errorf("upstream was asked %d times, want once", network.asked)
	}
}

func TestADamagedCacheIsFetchedAnew(t *testing.T) {
	_, v := demoVersion(t, "2.0.0")
	network := &upstream{content: published(t)}
	fetcher := &Fetcher{Cache: t.TempDir(), HTTP: &http.Client{Transport: network}}
	file := fetcher.cacheFile(v.Sources[0])
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, network.content[:10], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := fetcher.Fetch(context.Background(), v); err != nil {
		t.Fatal(err)
	}
	if network.asked != 1 {
		t.Errorf("upstream was asked %d times, want once", network.asked)
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != string(network.content) {
		t.Errorf("the cache was not mended: %v", err)
	}
}

func TestWithoutANetworkTheErrorPointsToAMirror(t *testing.T) {
	_, v := demoVersion(t, "2.0.0")
	fetcher := &Fetcher{HTTP: &http.Client{Transport: unreachable{}}}
	_, err := fetcher.Fetch(context.Background(), v)
	want := "fetch " + sourceURL + ": no such host: give a mirror that has it with --mirror or MILLWRIGHT_MIRROR"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestAMirrorAnswersForAllHosts(t *testing.T) {
	_, v := demoVersion(t, "2.0.0")
	server := httptest.NewServer(http.StripPrefix("/files", http.FileServer(http.Dir(testMirror))))
	defer server.Close()
	for name, mirror := range map[string]string{"a folder": testMirror, "an address": server.URL + "/files/"} {
		t.Run(name, func(t *testing.T) {
			network := unreachable{}
			fetcher := &Fetcher{Mirror: mirror, HTTP: &http.Client{Transport: network}}
			if strings.HasPrefix(mirror, "http") {
				fetcher.HTTP = server.Client()
			}
			contents, err := fetcher.Fetch(context.Background(), v)
			if err != nil {
				t.Fatal(err)
			}
			if string(contents[sourceURL]) != string(published(t)) {
				t.Error("the content is not that of the mirror")
			}
		})
	}
}

func TestAChangedFileOfTheMirrorIsRefusedWithBothDigests(t *testing.T) {
	_, v := demoVersion(t, "2.0.0")
	mirror, cache := t.TempDir(), t.TempDir()
	network := &upstream{content: published(t)}
	// A good copy in the cache must not hide that the mirror is bad.
	if _, err := (&Fetcher{Cache: cache, HTTP: &http.Client{Transport: network}}).Fetch(context.Background(), v); err != nil {
		t.Fatal(err)
	}
	changed := published(t)
	changed[len(changed)/2] ^= 1
	file := filepath.Join(mirror, "demo/v2.0.0/demo.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, changed, 0o644); err != nil {
		t.Fatal(err)
	}

	_, err := (&Fetcher{Cache: cache, Mirror: mirror, HTTP: &http.Client{Transport: network}}).Fetch(context.Background(), v)
	var wrong *DigestError
	if !errors.As(err, &wrong) {
		t.Fatalf("error %v, want a *DigestError", err)
	}
	for _, word := range []string{file, v.Sources[0].SHA256, digest(changed)} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not name %s: %v", word, err)
		}
	}
}

func TestAFileThatTheMirrorLacksIsNamed(t *testing.T) {
	_, v := demoVersion(t, "2.0.0")
	_, err := (&Fetcher{Mirror: t.TempDir()}).Fetch(context.Background(), v)
	if err == nil || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), sourceURL) {
		t.Errorf("error %v, want one that names %s", err, sourceURL)
	}
}

func TestTheMirrorPathIsThatOfTheAddressUnlessGiven(t *testing.T) {
	cases := map[string]struct {
		source Source
		want   string
	}{
		"given":          {Source{URL: "https://example.com/a/b.yaml", Path: "x/y.yaml"}, "x/y.yaml"},
		"of the address": {Source{URL: "https://example.com/a/b.yaml"}, "a/b.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.source.MirrorPath(); got != tc.want {
				t.Errorf("mirrorPath() = %q, want %q", got, tc.want)
			}
		})
	}
}
