package incluster

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bootstrappers is the group of the tokens that machines join with, nodes that of the kubelets.
const (
	bootstrappers = "system:bootstrappers:kubeadm:default-node-token"
	nodes         = "system:nodes"
)

var (
	// firstClusterAdmins is the first Kubernetes whose admin.conf belongs to a group of kubeadm's own.
	firstClusterAdmins = semver.MustParse("1.29.0-0")
	// firstKubeletAPIAdmin is the first whose API server has a client certificate for kubelets that is in no group:
	// without a binding of its own logs, exec and port-forward end with the first new machine.
	firstKubeletAPIAdmin = semver.MustParse("1.36.0-0")
)

// grants returns the Roles and bindings that the kubeadm of a version counts on, as its init would make them
// (cmd/kubeadm/app/phases of Kubernetes); each Role before its binding.
func grants(version *semver.Version) []client.Object {
	out := []client.Object{
		role("kubeadm:nodes-kubeadm-config", configMapRule(configMapName)),
		roleBinding("kubeadm:nodes-kubeadm-config", group(bootstrappers), group(nodes)),
		role("kubeadm:kubelet-config", configMapRule("kubelet-config")),
		roleBinding("kubeadm:kubelet-config", group(nodes), group(bootstrappers)),
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:get-nodes"},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}},
		},
		clusterRoleBinding("kubeadm:get-nodes", "kubeadm:get-nodes", group(bootstrappers)),
		clusterRoleBinding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", group(bootstrappers)),
		clusterRoleBinding("kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", group(bootstrappers)),
		clusterRoleBinding("kubeadm:node-autoapprove-certificate-rotation", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", group(nodes)),
	}
	if !version.LessThan(firstClusterAdmins) {
		out = append(out, clusterRoleBinding("kubeadm:cluster-admins", "cluster-admin", group("kubeadm:cluster-admins")))
	}
	if !version.LessThan(firstKubeletAPIAdmin) {
		apiServer := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "kube-apiserver-kubelet-client"}
		out = append(out, clusterRoleBinding("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", apiServer))
	}
	return out
}

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}, Rules: rules}
}

func configMapRule(name string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}}
}

func roleBinding(name string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   subjects,
	}
}

func clusterRoleBinding(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects,
	}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
}

// grant adds to a live object what it lacks of what is wanted, and tells whether that was anything. What somebody else
// added stays. The problem is a binding to another role, which cannot be changed.
func grant(live, want client.Object) (changed bool, problem string) {
	switch want := want.(type) {
	case *rbacv1.Role:
		live := live.(*rbacv1.Role)
		live.Rules, changed = withMissing(live.Rules, want.Rules)
	case *rbacv1.ClusterRole:
		live := live.(*rbacv1.ClusterRole)
		live.Rules, changed = withMissing(live.Rules, want.Rules)
	case *rbacv1.RoleBinding:
		live := live.(*rbacv1.RoleBinding)
		if live.RoleRef != want.RoleRef {
			return false, boundElsewhere("RoleBinding kube-system/"+want.Name, live.RoleRef, want.RoleRef)
		}
		live.Subjects, changed = withMissing(live.Subjects, want.Subjects)
	case *rbacv1.ClusterRoleBinding:
		live := live.(*rbacv1.ClusterRoleBinding)
		if live.RoleRef != want.RoleRef {
			return false, boundElsewhere("ClusterRoleBinding "+want.Name, live.RoleRef, want.RoleRef)
		}
		live.Subjects, changed = withMissing(live.Subjects, want.Subjects)
	}
	return changed, ""
}

func boundElsewhere(object string, have, want rbacv1.RoleRef) string {
	return fmt.Sprintf("%s binds %s %s, and kubeadm counts on %s %s: delete it, and it is made anew", object, have.Kind, have.Name, want.Kind, want.Name)
}

func withMissing[T any](have, want []T) (all []T, changed bool) {
	for _, item := range want {
		if !includes(have, item) {
			have, changed = append(have, item), true
		}
	}
	return have, changed
}

func includes[T any](items []T, item T) bool {
	for _, candidate := range items {
		if equality.Semantic.DeepEqual(candidate, item) {
			return true
		}
	}
	return false
}
