package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

// billOfMaterials writes an SPDX 2.3 document of a binary: the modules that Go recorded in it, with their checksums.
func (r *release) billOfMaterials(binary, name string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read what Go recorded in %s: %w", binary, err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	folder := filepath.Join(r.out, "sbom")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(folder, name+".spdx.json"))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := spdxjson.Write(document(info, name, r.version, sum(content), r.time), file); err != nil {
		return err
	}
	return file.Close()
}

// document makes the SPDX document of a binary. Its namespace is derived from the binary's digest, so that the same
// binary has the same document.
func document(info *debug.BuildInfo, name, version, digest string, when time.Time) *spdx.Document {
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      name,
		DocumentNamespace: "https://" + info.Main.Path + "/spdx/" + name + "-" + digest,
		CreationInfo: &spdx.CreationInfo{
			Created:  when.Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: info.Main.Path + "/tools/release-" + version}},
		},
	}
	main := module("main", info.Main.Path, version)
	main.PackageLicenseDeclared = "Apache-2.0"
	main.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: digest}}
	main.PrimaryPackagePurpose = "APPLICATION"
	doc.Packages = append(doc.Packages, main)
	doc.Relationships = append(doc.Relationships, relate("DOCUMENT", common.TypeRelationshipDescribe, "main"))
	dependencies := append([]*debug.Module{{Path: "stdlib", Version: info.GoVersion}}, info.Deps...)
	for i, dep := range dependencies {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		id := common.ElementID(fmt.Sprintf("module-%d", i))
		p := module(id, dep.Path, dep.Version)
		if dep.Sum != "" {
			p.PackageComment = "Go module checksum " + dep.Sum
		}
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, relate("main", common.TypeRelationshipContains, id))
	}
	return doc
}

func module(id common.ElementID, path, version string) *spdx.Package {
	return &spdx.Package{
		PackageSPDXIdentifier: id, PackageName: path, PackageVersion: version,
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION",
		PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/" + path + "@" + version,
		}},
	}
}

func relate(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(to)), Relationship: kind,
	}
}
