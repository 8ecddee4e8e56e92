package bundle

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// testMirror has what the catalogue in testdata names by URL.
const testMirror = "testdata/mirror"

// demo loads the add-on of testdata.
func demo(t *testing.T) *Addon {
	t.Helper()
	catalogue, err := Load(os.DirFS("testdata/catalogue"))
	if err != nil {
		t.Fatal(err)
	}
	addon, err := catalogue.Addon("demo")
	if err != nil {
		t.Fatal(err)
	}
	return addon
}

func demoVersion(t *testing.T, version string) (*Addon, *Version) {
	t.Helper()
	addon := demo(t)
	v, err := addon.Version(version)
	if err != nil {
		t.Fatal(err)
	}
	return addon, v
}

// edited is the catalogue of testdata with one file changed: every old in it
// becomes new. An empty old appends.
func edited(t *testing.T, file, old, new string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	source := os.DirFS("testdata/catalogue")
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(source, name)
		files[name] = &fstest.MapFile{Data: content}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	content := string(files[file].Data)
	if old == "" {
		content += new
	} else if !strings.Contains(content, old) {
		t.Fatalf("%s does not contain %q", file, old)
	} else {
		content = strings.ReplaceAll(content, old, new)
	}
	files[file].Data = []byte(content)
	return files
}
