package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// archive is one plugin for one platform, packed.
type archive struct {
	plugin   string
	platform platform
	// file is its name in the release; sum its sha256 in hex.
	file, sum string
}

// entry is a file in an archive.
type entry struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// extension is what people of the platform can unpack.
func (p platform) extension() string {
	if p.os == "windows" {
		return ".zip"
	}
	return ".tar.gz"
}

// pack makes an archive that depends on nothing but the entries and the time: no owner, no name of a machine.
func pack(p platform, when time.Time, entries []entry) ([]byte, error) {
	if p.os == "windows" {
		return packZip(when, entries)
	}
	var out bytes.Buffer
	// The header's time stays zero: Go leaves it out then.
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(zipped, when, entries); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func writeTar(w io.Writer, when time.Time, entries []entry) error {
	packed := tar.NewWriter(w)
	for _, e := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: int64(len(e.content)), ModTime: when,
			Format: tar.FormatPAX,
		}
		if e.mode.IsDir() {
			header.Typeflag, header.Mode = tar.TypeDir, int64(e.mode.Perm())
			if e.mode&fs.ModeSticky != 0 {
				header.Mode |= 0o1000
			}
		}
		if err := packed.WriteHeader(header); err != nil {
			return err
		}
		if _, err := packed.Write(e.content); err != nil {
			return err
		}
	}
	return packed.Close()
}

func packZip(when time.Time, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	packed := zip.NewWriter(&out)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when}
		header.SetMode(e.mode)
		w, err := packed.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// sums writes SHA256SUMS of every file of the release, as sha256sum --check reads it.
func (r *release) sums() error {
	var lines strings.Builder
	err := filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == mark {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(r.out, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum(content), filepath.ToSlash(relative))
		return nil
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
