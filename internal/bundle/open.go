package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Open reads a catalogue from a folder of the local file system: one folder an
// add-on, or the folder of a single one. Nothing outside the folder is read, not
// even through a symbolic link.
func Open(folder string) (*Catalogue, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		var wrapped *fs.PathError
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("open the catalogue %s: %w", folder, err)
	}
	// The root stays open for as long as the process lives: add-ons read their files when they are rendered.
	return OpenFS(root.FS())
}

// OpenFS is Open for any file system.
func OpenFS(files fs.FS) (*Catalogue, error) {
	content, err := fs.ReadFile(files, addonFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Load(files)
	}
	if err != nil {
		return nil, &FileError{File: addonFile, Err: err}
	}
	addon, err := parseAddon(addonFile, content)
	if err != nil {
		return nil, err
	}
	if addon, err = loadAddon(addon.Name, files); err != nil {
		return nil, err
	}
	return &Catalogue{addons: []*Addon{addon}}, nil
}
