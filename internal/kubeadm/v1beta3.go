package kubeadm

import (
	"fmt"
	"slices"
)

// downgrade rewrites a v1beta4 document as v1beta3. What v1beta3 cannot say is left out, as the
// API documents for these fields ("only on Kubernetes >= 1.31"); Lost names it.
//
// The wait for the control plane moved between the two versions from ClusterConfiguration
// (timeoutForControlPlane) and discovery (timeout) to timeouts; limits are those in force.
func downgrade(document any, limits *timeouts) (map[string]any, error) {
	out, _, err := downgradeTelling(document, limits)
	return out, err
}

// downgradeTelling returns the paths of what was left out too.
func downgradeTelling(document any, limits *timeouts) (map[string]any, []string, error) {
	out, err := fields(document)
	if err != nil {
		return nil, nil, err
	}
	out["apiVersion"] = v1beta3
	var lost lostPaths
	lost.drop(out, "", "encryptionAlgorithm", "certificateValidityPeriod")
	// The authorities are made by us, and last as long as was asked.
	delete(out, "caCertificateValidityPeriod")
	if carried, ok := out["timeouts"].(map[string]any); ok {
		switch out["kind"] {
		case "InitConfiguration":
			delete(carried, "controlPlaneComponentHealthCheck")
		case "JoinConfiguration":
			delete(carried, "tlsBootstrap")
		}
		for _, name := range sortedKeys(carried) {
			lost.add("timeouts." + name)
		}
		delete(out, "timeouts")
	}
	if registration, ok := out["nodeRegistration"].(map[string]any); ok {
		lost.drop(registration, "nodeRegistration.", "imagePullSerial")
		lost.argsToMap(registration, "nodeRegistration.", "kubeletExtraArgs")
	}
	for _, name := range []string{"apiServer", "controllerManager", "scheduler"} {
		lost.downgradeComponent(out[name], name+".")
	}
	if etcd, ok := out["etcd"].(map[string]any); ok {
		lost.downgradeComponent(etcd["local"], "etcd.local.")
	}
	if limits == nil {
		return out, lost, nil
	}
	switch out["kind"] {
	case "ClusterConfiguration":
		if wait := limits.ControlPlaneComponentHealthCheck; wait != nil {
			apiServer, ok := out["apiServer"].(map[string]any)
			if !ok {
				apiServer = map[string]any{}
			}
			apiServer["timeoutForControlPlane"] = wait.Duration.String()
			out["apiServer"] = apiServer
		}
	case "JoinConfiguration":
		if wait := limits.TLSBootstrap; wait != nil {
			out["discovery"].(map[string]any)["timeout"] = wait.Duration.String()
		}
	}
	return out, lost, nil
}

// lostPaths are the fields that were left out, by their names in v1beta4.
type lostPaths []string

func (l *lostPaths) add(path string) { *l = append(*l, path) }

// drop removes fields of parent.
func (l *lostPaths) drop(parent map[string]any, prefix string, names ...string) {
	for _, name := range names {
		if _, ok := parent[name]; ok {
			delete(parent, name)
			l.add(prefix + name)
		}
	}
}

func (l *lostPaths) downgradeComponent(value any, prefix string) {
	component, ok := value.(map[string]any)
	if !ok {
		return
	}
	l.drop(component, prefix, "extraEnvs")
	l.argsToMap(component, prefix, "extraArgs")
}

// argsToMap turns a list of names and values into the map that v1beta3 wants, in which a name stands once: the last wins.
func (l *lostPaths) argsToMap(parent map[string]any, prefix, key string) {
	list, ok := parent[key].([]any)
	if !ok {
		return
	}
	args := map[string]any{}
	for _, item := range list {
		arg := item.(map[string]any)
		name, _ := arg["name"].(string)
		value, _ := arg["value"].(string)
		if _, twice := args[name]; twice {
			path := fmt.Sprintf("%s%s (all %q but the last)", prefix, key, name)
			if !slices.Contains(*l, path) {
				l.add(path)
			}
		}
		args[name] = value
	}
	parent[key] = args
}
