package incluster

import (
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/corefile"
)

const (
	// dnsName is that of CoreDNS's Deployment, its container and its ConfigMap.
	dnsName = "coredns"
	// corefileKey and backupKey are those of the ConfigMap; the backup's is kubeadm's and upstream's name.
	corefileKey = "Corefile"
	backupKey   = "Corefile-backup"
	// officialRepository is the one whose CoreDNS has a folder of its own.
	officialRepository = "registry.k8s.io"
)

// defaultDNS is the CoreDNS that kubeadm's first release of a minor version of Kubernetes 1 installs (CoreDNSVersion of
// cmd/kubeadm/app/constants). A running one that is newer stays.
var defaultDNS = map[uint64]string{
	30: "v1.11.1", 31: "v1.11.1", 32: "v1.11.3", 33: "v1.12.0",
	34: "v1.12.1", 35: "v1.13.1", 36: "v1.14.2", 37: "v1.14.6",
}

// dnsGrants is what CoreDNS reads since v1.8.1.
var dnsGrants = rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}}

// dns is CoreDNS as it is in the cluster.
type dns struct {
	deployment *appsv1.Deployment
	config     *corev1.ConfigMap
}

// dnsTarget returns the image that CoreDNS is to have, the same as now where nothing asks for another. The problem is
// a wish that cannot be met.
func dnsTarget(now image, spec bootstrapv1.ClusterConfiguration, version *semver.Version) (to image, problem string) {
	repository := spec.DNS.ImageRepository
	if repository == "" {
		repository = spec.ImageRepository
	}
	if repository == officialRepository {
		repository += "/coredns"
	}
	running := release(now.tag)
	tag := spec.DNS.ImageTag
	if tag == "" {
		tag = now.tag
		if offered := release(defaultDNS[version.Minor()]); running != nil && offered != nil && offered.GreaterThan(running) {
			tag = defaultDNS[version.Minor()]
		}
	}
	to = now.at(repository, tag)
	switch next := release(to.tag); {
	case to == now:
		return now, ""
	case running == nil:
		return now, fmt.Sprintf("CoreDNS runs %s, whose tag tells no version, so that its Corefile cannot be migrated: it stays: move it by hand", now)
	case next == nil:
		return now, fmt.Sprintf("clusterConfiguration.dns.imageTag %q tells no version, so that the Corefile cannot be migrated: give it as v1.14.6", spec.DNS.ImageTag)
	case next.LessThan(running):
		return now, fmt.Sprintf("clusterConfiguration.dns.imageTag is %s, and CoreDNS runs %s: it is not moved back: set %s or later, or remove it", spec.DNS.ImageTag, now.tag, now.tag)
	}
	return to, ""
}

// next returns the object to write on the way to an image, already changed; nil when the way is done. A Corefile that
// the new CoreDNS cannot read is replaced in four steps, each of which finds what those before it have done:
//
//  1. its text is kept as backup,
//  2. the running CoreDNS is pointed at the backup, since it may not read the new text,
//  3. the migrated text is written,
//  4. the new CoreDNS is started with it.
//
// One that it can read stays as it is, and the image alone changes.
func (d dns) next(to image) (client.Object, error) {
	container := containerOf(&d.deployment.Spec.Template.Spec, dnsName)
	from := parseImage(container.Image)
	source := sourceOf(d.deployment)
	onBackup := source != nil && source.Key == backupKey
	switch {
	case from == to && !onBackup:
		return nil, nil
	case from == to:
		// Somebody else has started it, with the text that was read until now; the other one is for it.
		source.Key = corefileKey
		return d.deployment, nil
	}
	text := d.config.Data[corefileKey]
	if onBackup {
		text = d.config.Data[backupKey]
	}
	if text == "" {
		return nil, errors.New("ConfigMap kube-system/coredns holds no Corefile")
	}
	migration, err := corefile.Migrate(text, release(from.tag).String(), release(to.tag).String())
	if err != nil {
		return nil, err
	}
	if onBackup || migration.Changed {
		switch {
		case source == nil:
			return nil, errors.New("its Corefile has to be migrated, but its Deployment does not mount that of ConfigMap kube-system/coredns by name")
		case !onBackup && d.config.Data[backupKey] != text:
			d.config.Data[backupKey] = text
			return d.config, nil
		case !onBackup:
			source.Key = backupKey
			return d.deployment, nil
		case d.config.Data[corefileKey] != migration.Corefile:
			d.config.Data[corefileKey] = migration.Corefile
			return d.config, nil
		}
		source.Key = corefileKey
	}
	container.Image = to.String()
	return d.deployment, nil
}

// sourceOf returns which key of the ConfigMap a Deployment mounts as Corefile; nil when it does otherwise.
func sourceOf(deployment *appsv1.Deployment) *corev1.KeyToPath {
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.ConfigMap == nil || volume.ConfigMap.Name != dnsName {
			continue
		}
		for i := range volume.ConfigMap.Items {
			if volume.ConfigMap.Items[i].Path == corefileKey {
				return &volume.ConfigMap.Items[i]
			}
		}
	}
	return nil
}
