package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Names of kubectl's ApplySet, from its code; the KEP's text (3659) has an older prefix.
const (
	setIDLabel                = "applyset.kubernetes.io/id"
	partOfLabel               = "applyset.kubernetes.io/part-of"
	toolingAnnotation         = "applyset.kubernetes.io/tooling"
	groupKindsAnnotation      = "applyset.kubernetes.io/contains-group-kinds"
	otherNamespacesAnnotation = "applyset.kubernetes.io/additional-namespaces"
)

const (
	// toolingName and toolingVersion say who keeps a set. The version is that of
	// what the parent holds, not of the binary: a new release must not rewrite
	// every parent.
	toolingName    = "millwright"
	toolingVersion = "v1.0.0"

	// ParentNamespace holds the parents of all sets.
	ParentNamespace = "kube-system"
	// AddonLabel is on each parent; its value is the set's name.
	AddonLabel   = "addons.millwright.dev/addon"
	parentPrefix = "millwright-addon-"
)

// Keys of the parent's data.
const (
	versionKey    = "version"
	stateKey      = "state"
	parametersKey = "parameters"
	customKey     = "customization"
	inventoryKey  = "inventory"
	retainedKey   = "retained"
	historyKey    = "history"
)

// State says how far the last change of a set came.
type State string

// A set is Applying from before its first write until after its last.
const (
	StateApplying State = "Applying"
	StateApplied  State = "Applied"
)

// Member is an object of a set as its inventory holds it.
type Member struct {
	ID `json:",inline"`
	// Owned is a digest of the fields that we own on the object, empty while it
	// is not known. Another one on the live object means that somebody took a
	// field over: drift that can be seen without rendering.
	Owned string `json:"owned,omitempty"`
}

// Parent is the record of a set: the ApplySet parent and what its data holds.
type Parent struct {
	// Name is the set's name.
	Name       string
	Version    string
	State      State
	Parameters map[string]any
	// Customization is that of the Set.
	Customization string
	// Members are sorted by ID.
	Members []Member
	// Retained are objects that left the set and stay in the cluster.
	Retained []Member
	// History are the last revisions, the oldest first.
	History []Revision
}

// InSet tells whether an object belongs to a set, ours or one of kubectl's: who else writes to it fights with that.
func InSet(object metav1.Object) bool { return object.GetLabels()[partOfLabel] != "" }

func parentName(set string) string { return parentPrefix + set }

// setID is the value of the label on the parent and, under another key, on each member.
func setID(set string) string {
	// name.namespace.kind.group of the parent; the group of ConfigMap is empty.
	sum := sha256.Sum256([]byte(parentName(set) + "." + ParentNamespace + ".ConfigMap."))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// object is the parent as it is written.
func (p *Parent) object() (*unstructured.Unstructured, error) {
	parameters, err := json.Marshal(p.Parameters)
	if err != nil {
		return nil, fmt.Errorf("parameters of set %s: %w", p.Name, err)
	}
	data := map[string]any{
		versionKey:   p.Version,
		stateKey:     string(p.State),
		inventoryKey: memberLines(p.Members),
	}
	if len(p.Parameters) > 0 {
		data[parametersKey] = string(parameters)
	}
	if p.Customization != "" {
		data[customKey] = p.Customization
	}
	if len(p.Retained) > 0 {
		data[retainedKey] = memberLines(p.Retained)
	}
	if len(p.History) > 0 {
		history, err := historyLines(p.History)
		if err != nil {
			return nil, fmt.Errorf("history of set %s: %w", p.Name, err)
		}
		data[historyKey] = history
	}
	groupKinds, namespaces := map[string]bool{}, map[string]bool{}
	for _, member := range slices.Concat(p.Members, p.Retained) {
		groupKinds[member.GroupKind().String()] = true
		if member.Namespace != "" && member.Namespace != ParentNamespace {
			namespaces[member.Namespace] = true
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": map[string]any{
			"name":      parentName(p.Name),
			"namespace": ParentNamespace,
			"labels":    map[string]any{setIDLabel: setID(p.Name), AddonLabel: p.Name},
			"annotations": map[string]any{
				toolingAnnotation:         toolingName + "/" + toolingVersion,
				groupKindsAnnotation:      sortedKeys(groupKinds),
				otherNamespacesAnnotation: sortedKeys(namespaces),
			},
		},
		"data": data,
	}}, nil
}

func sortedKeys(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), ",")
}

// parseParent reads a parent. One that another tool keeps is a *ForeignParentError.
func parseParent(set string, object *unstructured.Unstructured) (*Parent, error) {
	tooling := object.GetAnnotations()[toolingAnnotation]
	if name, _, _ := strings.Cut(tooling, "/"); name != toolingName {
		return nil, &ForeignParentError{Name: object.GetName(), Tooling: tooling}
	}
	if got := object.GetLabels()[setIDLabel]; got != setID(set) {
		return nil, fmt.Errorf("configmap %s in namespace %s: label %s is %q, want %q: somebody changed it: put it back",
			object.GetName(), ParentNamespace, setIDLabel, got, setID(set))
	}
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("configmap %s in namespace %s: %w", object.GetName(), ParentNamespace, err)
	}
	parent := &Parent{Name: set, Version: data[versionKey], State: State(data[stateKey]), Customization: data[customKey]}
	if text := data[parametersKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &parent.Parameters); err != nil {
			return nil, fmt.Errorf("configmap %s in namespace %s: data.%s: %w", object.GetName(), ParentNamespace, parametersKey, err)
		}
	}
	for key, into := range map[string]*[]Member{inventoryKey: &parent.Members, retainedKey: &parent.Retained} {
		if *into, err = parseMembers(data[key]); err != nil {
			return nil, fmt.Errorf("configmap %s in namespace %s: data.%s: %w", object.GetName(), ParentNamespace, key, err)
		}
	}
	if parent.History, err = parseHistory(data[historyKey]); err != nil {
		return nil, fmt.Errorf("configmap %s in namespace %s: data.%s: %w", object.GetName(), ParentNamespace, historyKey, err)
	}
	return parent, nil
}

// memberLines writes members one a line, so that a person can read and diff them.
func memberLines(members []Member) string {
	var b strings.Builder
	for _, member := range members {
		line, _ := json.Marshal(member) // strings only: cannot fail
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

func parseMembers(lines string) ([]Member, error) {
	var members []Member
	for line := range strings.Lines(lines) {
		var member Member
		if err := json.Unmarshal([]byte(line), &member); err != nil {
			return nil, err
		}
		members = append(members, member)
	}
	return members, nil
}

// sameParent tells whether the live parent already says what want would write.
func sameParent(live, want *unstructured.Unstructured) bool {
	if live == nil {
		return false
	}
	liveData, _, _ := unstructured.NestedStringMap(live.Object, "data")
	wantData, _, _ := unstructured.NestedStringMap(want.Object, "data")
	return maps.Equal(liveData, wantData) &&
		includes(live.GetLabels(), want.GetLabels()) &&
		includes(live.GetAnnotations(), want.GetAnnotations())
}

func includes(all, some map[string]string) bool {
	for key, value := range some {
		if found, ok := all[key]; !ok || found != value {
			return false
		}
	}
	return true
}

// ForeignParentError says that a set of this name is kept by another tool.
type ForeignParentError struct {
	// Name is that of the parent ConfigMap.
	Name string
	// Tooling is what its annotation says.
	Tooling string
}

func (e *ForeignParentError) Error() string {
	if e.Tooling == "" {
		return fmt.Sprintf("configmap %s in namespace %s is in the way: it is not a set of ours: delete or rename it", e.Name, ParentNamespace)
	}
	return fmt.Sprintf("the set of configmap %s in namespace %s is kept by %s: uninstall it with that tool first", e.Name, ParentNamespace, e.Tooling)
}
