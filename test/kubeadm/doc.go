// Package kubeadm asks kubeadm itself whether it takes the configuration that internal/kubeadm writes: the kubeadm of
// each minor version that the sandbox can build, with its strict parser and its validation.
//
// The programs are built once into the cache, which takes minutes; where they are not there, only `make endurance`
// builds them, and the tests are skipped otherwise.
package kubeadm
