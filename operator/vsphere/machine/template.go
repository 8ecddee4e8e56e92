package machine

import (
	"fmt"
	"regexp"
	"strings"
)

// Images built by the Kubernetes image-builder, and those that CAPV publishes, have the version in their name, as in
// ubuntu-2404-kube-v1.37.2, and in their annotation, as in "… and Kubernetes v1.37.2 …".
var (
	versionInName       = regexp.MustCompile(`(?i)(?:^|[-_.])(?:kube|k8s|kubernetes)[-_.]?v?(\d+\.\d+\.\d+)`)
	versionInAnnotation = regexp.MustCompile(`(?i)\bkubernetes:? v?(\d+\.\d+\.\d+)`)
)

// versionMismatch tells that a template clearly has another Kubernetes version than the one wanted; empty when it has the
// wanted one or does not say.
func versionMismatch(want, template, annotation string) string {
	wanted := release(want)
	if wanted == "" {
		return ""
	}
	has := ""
	if match := versionInName.FindStringSubmatch(template); match != nil {
		has = match[1]
	} else if match := versionInAnnotation.FindStringSubmatch(annotation); match != nil {
		has = match[1]
	}
	if has == "" || has == wanted {
		return ""
	}
	return fmt.Sprintf("template %q has Kubernetes v%s and the Machine wants %s: name a template of that version in the "+
		"VSphereMachineTemplate, or ask for v%s", template, has, want, has)
}

var releaseVersion = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)`)

// release is the version without prefix, pre-release and build.
func release(version string) string {
	match := releaseVersion.FindStringSubmatch(strings.TrimSpace(version))
	if match == nil {
		return ""
	}
	return match[1]
}
