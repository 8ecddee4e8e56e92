package incluster

import (
	"strings"

	"github.com/Masterminds/semver/v3"
)

// image is a reference to a container image, in parts.
type image struct {
	// repository is what comes before the last slash: "registry.k8s.io/coredns".
	repository, name, tag, digest string
}

func parseImage(reference string) image {
	var out image
	rest, digest, _ := strings.Cut(reference, "@")
	out.digest = digest
	slash := strings.LastIndex(rest, "/")
	if slash >= 0 {
		out.repository = rest[:slash]
	}
	out.name, out.tag, _ = strings.Cut(rest[slash+1:], ":")
	return out
}

func (i image) String() string {
	out := i.name
	if i.repository != "" {
		out = i.repository + "/" + out
	}
	if i.tag != "" {
		out += ":" + i.tag
	}
	if i.digest != "" {
		out += "@" + i.digest
	}
	return out
}

// at returns the image with another repository (empty: the same) and tag. A digest is kept only where nothing else
// changes: it is that of one image.
func (i image) at(repository, tag string) image {
	out := i
	out.tag = tag
	if repository != "" {
		out.repository = repository
	}
	if out != i {
		out.digest = ""
	}
	return out
}

// release returns the version that a tag tells, without what a vendor adds; nil when it tells none.
func release(tag string) *semver.Version {
	version, err := semver.NewVersion(strings.ReplaceAll(tag, "_", "+"))
	if err != nil {
		return nil
	}
	return semver.New(version.Major(), version.Minor(), version.Patch(), "", "")
}
