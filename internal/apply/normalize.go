package apply

import (
	"encoding/base64"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Normalize changes an object as published into one that server-side apply
// takes. Published manifests are made for create and client-side apply, which
// forgive what server-side apply refuses or would own by mistake.
func Normalize(object *unstructured.Unstructured) {
	// What the server writes is not ours to claim. CRDs are published with a status by their generator.
	delete(object.Object, "status")
	for _, field := range []string{"creationTimestamp", "resourceVersion", "uid", "generation", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	dropNullTimestamps(object.Object)

	switch IDOf(object).GroupKind().String() {
	case "Secret":
		stringDataToData(object.Object)
	case "Service":
		spec, _ := object.Object["spec"].(map[string]any)
		normalizePorts(spec)
	default:
		if spec := podSpec(object); spec != nil {
			normalizePodSpec(spec)
		}
	}
}

// dropNullTimestamps removes "creationTimestamp: null", which Go programs write
// into the metadata of templates, at any depth.
func dropNullTimestamps(value any) {
	switch value := value.(type) {
	case map[string]any:
		if timestamp, ok := value["creationTimestamp"]; ok && timestamp == nil {
			delete(value, "creationTimestamp")
		}
		for _, inner := range value {
			dropNullTimestamps(inner)
		}
	case []any:
		for _, inner := range value {
			dropNullTimestamps(inner)
		}
	}
}

// stringDataToData moves stringData into data, as the server does. Server-side
// apply would keep what a later stringData no longer has.
func stringDataToData(secret map[string]any) {
	plain, _ := secret["stringData"].(map[string]any)
	delete(secret, "stringData")
	if len(plain) == 0 {
		return
	}
	data, _ := secret["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
		secret["data"] = data
	}
	for key, value := range plain {
		text, _ := value.(string)
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
}

// podTemplates is where the built-in workloads keep their pod spec.
var podTemplates = map[string][]string{
	"Pod":              {"spec"},
	"DaemonSet.apps":   {"spec", "template", "spec"},
	"Deployment.apps":  {"spec", "template", "spec"},
	"ReplicaSet.apps":  {"spec", "template", "spec"},
	"StatefulSet.apps": {"spec", "template", "spec"},
	"Job.batch":        {"spec", "template", "spec"},
	"CronJob.batch":    {"spec", "jobTemplate", "spec", "template", "spec"},
}

// podSpec returns the pod spec inside a built-in workload, not a copy; nil for other kinds.
func podSpec(object *unstructured.Unstructured) map[string]any {
	path, ok := podTemplates[IDOf(object).GroupKind().String()]
	if !ok {
		return nil
	}
	spec, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	found, _ := spec.(map[string]any)
	return found
}

func normalizePodSpec(spec map[string]any) {
	for _, field := range []string{"containers", "initContainers"} {
		list, _ := spec[field].([]any)
		for _, item := range list {
			container, ok := item.(map[string]any)
			if !ok {
				continue
			}
			normalizePorts(container)
			if env, ok := container["env"].([]any); ok {
				container["env"] = lastByName(env)
			}
		}
	}
}

// normalizePorts gives each port the default protocol, which is part of the key
// that server-side apply merges ports by, and drops repeated ports.
func normalizePorts(holder map[string]any) {
	ports, ok := holder["ports"].([]any)
	if !ok {
		return
	}
	var unique []any
	for _, item := range ports {
		if port, ok := item.(map[string]any); ok && port["protocol"] == nil {
			port["protocol"] = string(corev1.ProtocolTCP)
		}
		if !containsEqual(unique, item) {
			unique = append(unique, item)
		}
	}
	holder["ports"] = unique
}

func containsEqual(list []any, item any) bool {
	for _, other := range list {
		if reflect.DeepEqual(other, item) {
			return true
		}
	}
	return false
}

// lastByName keeps the last of several environment variables of one name: the
// one that a container gets.
func lastByName(env []any) []any {
	last := map[any]int{}
	name := func(item any) any {
		variable, _ := item.(map[string]any)
		return variable["name"]
	}
	for i, item := range env {
		last[name(item)] = i
	}
	kept := make([]any, 0, len(env))
	for i, item := range env {
		if last[name(item)] == i {
			kept = append(kept, item)
		}
	}
	return kept
}
