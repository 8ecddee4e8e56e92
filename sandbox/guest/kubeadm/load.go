package kubeadm

import (
	"bytes"
	"fmt"
	"os"

	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	kubeadmapiv1 "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/v1beta4"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	kubeadmutil "k8s.io/kubernetes/cmd/kubeadm/app/util"
	configutil "k8s.io/kubernetes/cmd/kubeadm/app/util/config"
	"sigs.k8s.io/yaml"
)

// The guest has no runtime socket to be found.
var loadOptions = configutil.LoadOrDefaultConfigurationOptions{SkipCRIDetect: true}

// loadInit loads an init configuration with kubeadm's loader.
func (g Guest) loadInit(path string) (*kubeadmapi.InitConfiguration, error) {
	prepared, remove, err := g.prepare(path, constants.InitConfigurationKind)
	if err != nil {
		return nil, err
	}
	defer remove()
	cfg, err := configutil.LoadOrDefaultInitConfiguration(prepared, nil, nil, loadOptions)
	if err != nil {
		return nil, err
	}
	if err := configutil.VerifyAPIServerBindAddress(cfg.LocalAPIEndpoint.AdvertiseAddress); err != nil {
		return nil, err
	}
	cfg.LocalAPIEndpoint.AdvertiseAddress = g.Address
	return cfg, refuseHostChanges(&cfg.ClusterConfiguration)
}

// loadJoin loads a join configuration with kubeadm's loader.
func (g Guest) loadJoin(path string) (*kubeadmapi.JoinConfiguration, error) {
	prepared, remove, err := g.prepare(path, constants.JoinConfigurationKind)
	if err != nil {
		return nil, err
	}
	defer remove()
	cfg, err := configutil.LoadOrDefaultJoinConfiguration(prepared, nil, loadOptions)
	if err != nil {
		return nil, err
	}
	if cfg.ControlPlane != nil {
		if err := configutil.VerifyAPIServerBindAddress(cfg.ControlPlane.LocalAPIEndpoint.AdvertiseAddress); err != nil {
			return nil, err
		}
		cfg.ControlPlane.LocalAPIEndpoint.AdvertiseAddress = g.Address
	}
	return cfg, nil
}

// prepare writes a copy of the configuration for kubeadm's loader, with the two
// values that it would otherwise ask the host for: the machine's name and the
// address of its default route.
func (g Guest) prepare(path, kind string) (file string, remove func(), err error) {
	raw, err := os.ReadFile(g.Root.Path(path))
	if err != nil {
		return "", nil, fmt.Errorf("unable to read config from %q: %s", path, g.Root.Guest(err.Error()))
	}
	if raw, err = g.complete(raw, kind); err != nil {
		return "", nil, err
	}
	copied, err := os.CreateTemp("", "kubeadm-*.yaml")
	if err != nil {
		return "", nil, fmt.Errorf("prepare %s: %w", path, err)
	}
	remove = func() { _ = os.Remove(copied.Name()) }
	_, err = copied.Write(raw)
	if closed := copied.Close(); err == nil {
		err = closed
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("prepare %s: %w", path, err)
	}
	return copied.Name(), remove, nil
}

// complete fills in the documents of the kind, and adds one when there is only a
// cluster's configuration.
func (g Guest) complete(raw []byte, kind string) ([]byte, error) {
	documents, err := kubeadmutil.SplitConfigDocuments(raw)
	if err != nil {
		return nil, err
	}
	found, ofCluster := false, false
	var out [][]byte
	for gvk, document := range documents {
		ofCluster = ofCluster || gvk.Group == kubeadmapi.GroupName && gvk.Kind == constants.ClusterConfigurationKind
		if gvk.Group == kubeadmapi.GroupName && gvk.Kind == kind {
			found = true
			if document, err = g.fill(document, kind); err != nil {
				return nil, err
			}
		}
		out = append(out, document)
	}
	if !found && ofCluster && kind == constants.InitConfigurationKind {
		document, err := g.fill([]byte("apiVersion: "+kubeadmapiv1.SchemeGroupVersion.String()+"\nkind: "+kind+"\n"), kind)
		if err != nil {
			return nil, err
		}
		out = append(out, document)
	}
	return bytes.Join(out, []byte("\n"+constants.YAMLDocumentSeparator)), nil
}

func (g Guest) fill(document []byte, kind string) ([]byte, error) {
	fields := map[string]any{}
	if err := yaml.Unmarshal(document, &fields); err != nil {
		return nil, err
	}
	registration := child(fields, "nodeRegistration")
	if name, _ := registration["name"].(string); name == "" {
		registration["name"] = g.Hostname
	}
	endpoint := fields
	if kind == constants.JoinConfigurationKind {
		endpoint, _ = fields["controlPlane"].(map[string]any)
	}
	if endpoint != nil {
		local := child(endpoint, "localAPIEndpoint")
		if address, _ := local["advertiseAddress"].(string); address == "" || loopback(address) {
			local["advertiseAddress"] = g.Placeholder
		}
	}
	return yaml.Marshal(fields)
}

// child returns a mapping inside another, and makes it when it is not there. A
// value of another type is left for kubeadm to complain about.
func child(fields map[string]any, name string) map[string]any {
	switch inner := fields[name].(type) {
	case map[string]any:
		return inner
	case nil:
		made := map[string]any{}
		fields[name] = made
		return made
	default:
		return map[string]any{}
	}
}
