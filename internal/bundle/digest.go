package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
)

// Digest condenses all that a render depends on: the add-on's folder, the version, the customization, and the
// parameters with the facts that it uses. The sources are in it by the digests that the add-on names, and need not be
// there. What is wrong with the parameters is an error, as in Check.
func (in Input) Digest() (string, error) {
	parameters, err := in.Addon.parameters(in.Version, in.Facts, in.Values)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	add := func(name string, content []byte) {
		// With their lengths, so that no two inputs are written alike.
		fmt.Fprintf(hash, "%d %d\n%s%s", len(name), len(content), name, content)
	}
	err = fs.WalkDir(in.Addon.files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(in.Addon.files, name)
		if err != nil {
			return err
		}
		add(name, content)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read add-on %s: %w", in.Addon.Name, err)
	}
	values, err := json.Marshal(parameters)
	if err != nil {
		return "", fmt.Errorf("parameters of %s: %w", in.Addon.Name, err)
	}
	add(in.Addon.Name+" "+in.Version.Version, values)
	add("customization", []byte(in.Custom.String()))
	return hex.EncodeToString(hash.Sum(nil)), nil
}
