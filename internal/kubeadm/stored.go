package kubeadm

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"
)

// v1 is read by kubeadm of v1.37 and later; it has the fields of v1beta4.
const v1 = "kubeadm.k8s.io/v1"

// owned is a field of the stored ClusterConfiguration that the spec decides on. What kubeadm fills in where the spec
// says nothing (fallback) is not a difference.
type owned struct {
	path     string
	fallback any
	// noIsSaid is set where false differs from nothing: a feature gate may be on by default.
	noIsSaid bool
}

// ownedFields are the fields of a spec that may change in the life of a cluster; the others are fixed by kubeadm init.
// Fallbacks are those of kubeadm's API (kubernetes.io, "kubeadm Configuration (v1beta4)").
var ownedFields = []owned{
	{path: "apiServer.certSANs"},
	{path: "apiServer.extraArgs"},
	{path: "apiServer.extraEnvs"},
	{path: "apiServer.extraVolumes"},
	{path: "apiServer.timeoutForControlPlane", fallback: "4m0s"},
	{path: "caCertificateValidityPeriod", fallback: "87600h0m0s"},
	{path: "certificateValidityPeriod", fallback: "8760h0m0s"},
	{path: "controllerManager.extraArgs"},
	{path: "controllerManager.extraEnvs"},
	{path: "controllerManager.extraVolumes"},
	{path: "dns.imageRepository"},
	{path: "dns.imageTag"},
	{path: "encryptionAlgorithm", fallback: "RSA-2048"},
	{path: "etcd.external.caFile"},
	{path: "etcd.external.certFile"},
	{path: "etcd.external.endpoints"},
	{path: "etcd.external.keyFile"},
	{path: "etcd.local.dataDir", fallback: "/var/lib/etcd"},
	{path: "etcd.local.extraArgs"},
	{path: "etcd.local.extraEnvs"},
	{path: "etcd.local.imageRepository"},
	{path: "etcd.local.imageTag"},
	{path: "etcd.local.peerCertSANs"},
	{path: "etcd.local.serverCertSANs"},
	{path: "featureGates", noIsSaid: true},
	{path: "imageRepository", fallback: "registry.k8s.io"},
	{path: "scheduler.extraArgs"},
	{path: "scheduler.extraEnvs"},
	{path: "scheduler.extraVolumes"},
}

// UpdateClusterConfiguration brings the ClusterConfiguration that a cluster keeps (ConfigMap kubeadm-config), and that
// kubeadm join reads on each new control plane machine, to a version and a spec. Fields that are none of the spec's
// stay as they are; a text that says all of it already comes back byte by byte. An error is for the user to correct.
func UpdateClusterConfiguration(stored string, spec bootstrapv1.KubeadmConfigSpec, cluster *clusterv1.Cluster, version string) (string, error) {
	api, err := apiFor(version)
	if err != nil {
		return "", err
	}
	if err := checkFeatureGates(spec.ClusterConfiguration.FeatureGates, version); err != nil {
		return "", err
	}
	have := map[string]any{}
	if err := yaml.Unmarshal([]byte(stored), &have); err != nil {
		return "", fmt.Errorf("read the stored ClusterConfiguration: %w", err)
	}
	changed, err := bringTo(have, api, version)
	if err != nil {
		return "", err
	}
	want, err := wanted(spec, cluster, version, api)
	if err != nil {
		return "", err
	}
	if spec.ClusterConfiguration.IsDefined() && movesEtcd(have, want) {
		return "", errors.New("clusterConfiguration.etcd: a cluster cannot move between etcd on its control plane and an external one: set it back")
	}
	decided := []owned{{path: "kubernetesVersion"}}
	if spec.ClusterConfiguration.IsDefined() {
		// Who gives no clusterConfiguration leaves all of it to what the cluster has.
		decided = append(decided, ownedFields...)
	}
	for _, field := range decided {
		path := strings.Split(field.path, ".")
		value := at(want, path)
		if field.same(at(have, path), value) {
			continue
		}
		put(have, path, value)
		changed = true
	}
	if !changed {
		return stored, nil
	}
	text, err := yaml.Marshal(have)
	if err != nil {
		return "", fmt.Errorf("write the stored ClusterConfiguration: %w", err)
	}
	return string(text), nil
}

// bringTo converts a stored ClusterConfiguration to an API that the kubeadm of a version reads, and tells whether it had to.
func bringTo(have map[string]any, api, version string) (changed bool, err error) {
	kind, _ := have["kind"].(string)
	from, _ := have["apiVersion"].(string)
	switch {
	case kind != "ClusterConfiguration":
		return false, fmt.Errorf("the stored ClusterConfiguration has kind %q: restore it: kubeadm join reads it", kind)
	case from == api, from == v1 && api == v1beta4:
		return false, nil
	case from == v1beta3 && api == v1beta4:
		upgradeStored(have)
		return true, nil
	default:
		return false, fmt.Errorf("the stored ClusterConfiguration is %q, and kubeadm %s reads %q: convert it with kubeadm config migrate", from, version, api)
	}
}

// upgradeStored rewrites v1beta3 as v1beta4: the reverse of downgrade.
func upgradeStored(have map[string]any) {
	have["apiVersion"] = v1beta4
	for _, path := range []string{"apiServer", "controllerManager", "scheduler", "etcd.local"} {
		component, ok := at(have, strings.Split(path, ".")).(map[string]any)
		if !ok {
			continue
		}
		// It became a timeout of the machine that joins.
		delete(component, "timeoutForControlPlane")
		args, ok := component["extraArgs"].(map[string]any)
		if !ok {
			continue
		}
		list := []any{}
		for _, name := range slices.Sorted(maps.Keys(args)) {
			list = append(list, map[string]any{"name": name, "value": args[name]})
		}
		component["extraArgs"] = list
	}
}

// wanted is what kubeadm init would be given for the spec today.
func wanted(spec bootstrapv1.KubeadmConfigSpec, cluster *clusterv1.Cluster, version, api string) (map[string]any, error) {
	document := newClusterConfiguration(spec.ClusterConfiguration, cluster, version)
	if api == v1beta3 {
		return downgrade(document, newTimeouts(spec.InitConfiguration.Timeouts))
	}
	return fields(document)
}

func movesEtcd(have, want map[string]any) bool {
	local, external := at(have, []string{"etcd", "local"}) != nil, at(have, []string{"etcd", "external"}) != nil
	if at(want, []string{"etcd", "external"}) != nil {
		return local
	}
	return external
}

// at returns the value of a path; nil where there is none.
func at(value any, path []string) any {
	for _, name := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// put sets the value of a path; nil removes it.
func put(object map[string]any, path []string, value any) {
	last := len(path) - 1
	for _, name := range path[:last] {
		child, ok := object[name].(map[string]any)
		if !ok {
			if value == nil {
				return
			}
			child = map[string]any{}
			object[name] = child
		}
		object = child
	}
	if value == nil {
		delete(object, path[last])
		return
	}
	object[path[last]] = value
}

// same compares what is stored with what is wanted, where kubeadm has filled in its default and left out what is empty.
func (o owned) same(have, want any) bool {
	have, want = o.plain(have), o.plain(want)
	if have == nil {
		have = o.fallback
	}
	if want == nil {
		want = o.fallback
	}
	return reflect.DeepEqual(have, want)
}

// plain drops what is empty.
func (o owned) plain(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, item := range value {
			if item = o.plain(item); item != nil {
				out[name] = item
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		out := []any{}
		for _, item := range value {
			out = append(out, o.plain(item))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case string:
		if value == "" {
			return nil
		}
	case bool:
		if !value && !o.noIsSaid {
			return nil
		}
	}
	return value
}
