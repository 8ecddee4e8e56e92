// Package cloudinit renders the user data with which a machine becomes a node: a cloud-config that
// writes certificates, the kubeadm configuration and the user's files, and then runs kubeadm.
//
// A KubeadmConfig's spec and a finished kubeadm configuration go in, bytes come out. Secrets that
// the spec refers to are resolved by the caller; what kubeadm reads is made by internal/kubeadm.
// cloud-init runs the result through Jinja before it parses it as YAML, so YAML is written in a
// style in which Jinja expressions stay as their author typed them.
package cloudinit
