package rootfs

import (
	"os"
	"path/filepath"
	"strings"
)

// Root is the folder on the host that a guest takes for its "/".
type Root string

// Path returns where the guest's absolute path lies on the host. A path cannot
// leave the root: ".." at its top stays there, as it does at a real "/".
func (r Root) Path(guest string) string {
	return filepath.Join(string(r), filepath.Clean("/"+guest))
}

// Guest replaces every mention of the root in text by nothing, which leaves the
// path as the guest sees it.
func (r Root) Guest(text string) string {
	if r == "" || r == "/" {
		return text
	}
	return strings.ReplaceAll(text, string(r), "")
}

// Contains tells whether path already lies below the root.
func (r Root) Contains(path string) bool {
	return path == string(r) || strings.HasPrefix(path, string(r)+string(filepath.Separator))
}

// Exists tells whether the guest has something at path.
func (r Root) Exists(guest string) bool {
	_, err := os.Stat(r.Path(guest))
	return err == nil
}

// WriteFile writes a file of the guest and the folders above it.
func (r Root) WriteFile(guest string, data []byte, mode os.FileMode) error {
	path := r.Path(guest)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, mode)
}
