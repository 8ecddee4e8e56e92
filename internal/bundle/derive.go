package bundle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/corefile"
)

// Derived is an entry of a ConfigMap that belongs to the cluster: once it is
// there, what a version brings is made from it instead of replacing it.
type Derived struct {
	// Namespace and Name are those of the ConfigMap, Key that of its data.
	Namespace string `yaml:"namespace"`
	Name      string `yaml:"name"`
	Key       string `yaml:"key"`
	// By is one of Derivations.
	By string `yaml:"by"`
}

// Derivations are the ways to make an entry from the live one.
var Derivations = []string{deriveLive, deriveCorefile, deriveKubeProxy}

const (
	// deriveLive keeps the live text.
	deriveLive = "live"
	// deriveCorefile migrates a Corefile from the version that the Deployment of the ConfigMap's name runs.
	deriveCorefile = "corefile"
	// deriveKubeProxy keeps the live configuration of kube-proxy, but for the parameters that are given.
	deriveKubeProxy = "kube-proxy"
)

// Live reads an object of the cluster; nil when there is none.
type Live func(kind schema.GroupKind, namespace, name string) (*unstructured.Unstructured, error)

var (
	configMapKind  = schema.GroupKind{Kind: "ConfigMap"}
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
)

// Derive makes the rendered objects of in fit the cluster: what its add-on derives
// is taken over from the live objects. It changes objects in place and returns
// what is worth telling a person.
func (in Input) Derive(objects []*unstructured.Unstructured, live Live) ([]string, error) {
	var notices []string
	for _, d := range in.Addon.Derived {
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GroupVersionKind().GroupKind() == configMapKind && o.GetNamespace() == d.Namespace && o.GetName() == d.Name
		})
		if i < 0 {
			continue
		}
		there, err := live(configMapKind, d.Namespace, d.Name)
		if err != nil {
			return nil, fmt.Errorf("read ConfigMap %s in namespace %s: %w", d.Name, d.Namespace, err)
		}
		if there == nil {
			continue
		}
		text, found, _ := unstructured.NestedString(there.Object, "data", d.Key)
		if !found {
			continue
		}
		text, told, err := in.derive(d, text, live)
		if err != nil {
			return nil, fmt.Errorf("%s %s: ConfigMap %s in namespace %s: %w", in.Addon.Name, in.Version.Version, d.Name, d.Namespace, err)
		}
		notices = append(notices, told...)
		if err := unstructured.SetNestedField(objects[i].Object, text, "data", d.Key); err != nil {
			return nil, fmt.Errorf("%s %s: ConfigMap %s: %w", in.Addon.Name, in.Version.Version, d.Name, err)
		}
	}
	return notices, nil
}

func (in Input) derive(d Derived, text string, live Live) (string, []string, error) {
	switch d.By {
	case deriveCorefile:
		return in.deriveCorefile(d, text, live)
	case deriveKubeProxy:
		derived, err := in.deriveKubeProxy(text)
		return derived, nil, err
	}
	return text, nil, nil
}

// Derives tells whether an object is among those that are made from live ones:
// taking its fields over loses nothing.
func (a *Addon) Derives(gk schema.GroupKind, namespace, name string) bool {
	return slices.ContainsFunc(a.Derived, func(d Derived) bool {
		return gk == configMapKind && d.Namespace == namespace && d.Name == name
	})
}

func (in Input) deriveCorefile(d Derived, text string, live Live) (string, []string, error) {
	deployment, err := live(deploymentKind, d.Namespace, d.Name)
	if err != nil {
		return "", nil, fmt.Errorf("read Deployment %s: %w", d.Name, err)
	}
	if deployment == nil {
		return text, nil, nil
	}
	running := ImageVersion(deployment)
	if running == "" {
		return text, []string{fmt.Sprintf("the Corefile stays as it is: the image of Deployment %s names no version to migrate from", d.Name)}, nil
	}
	migration, err := corefile.Migrate(text, running, in.Version.Version)
	if err != nil {
		return "", nil, err
	}
	var notices []string
	for _, notice := range migration.Notices {
		notices = append(notices, "Corefile: "+notice)
	}
	return migration.Corefile, notices, nil
}

// deriveKubeProxy lays the given mode over the live configuration. kube-proxy
// ends when its file changes, so that a configuration that already says the same
// stays as it is written.
func (in Input) deriveKubeProxy(text string) (string, error) {
	given, ok := in.Values["mode"]
	if !ok {
		return text, nil
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return "", fmt.Errorf("the configuration of kube-proxy: %w", err)
	}
	mode, _ := config["mode"].(string)
	if mode == "" {
		// kube-proxy's own default on Linux.
		mode = "iptables"
	}
	if mode == fmt.Sprint(given) {
		return text, nil
	}
	config["mode"] = given
	content, err := yaml.Marshal(config)
	return string(content), err
}

// ImageVersion is the version that the tag of a workload's first image names,
// without "v"; empty where it names none.
func ImageVersion(workload *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	container, _ := containers[0].(map[string]any)
	image, _ := container["image"].(string)
	image, _, _ = strings.Cut(image, "@")
	_, tag, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !ok {
		return ""
	}
	version, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
	if err != nil {
		return ""
	}
	// A distribution's suffix (v1.14.2-eksbuild.1) is no part of the version.
	return semver.New(version.Major(), version.Minor(), version.Patch(), "", "").String()
}
