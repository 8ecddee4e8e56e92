// Package apiserver gives tests a real API server: etcd and kube-apiserver as processes on loopback, with the CRDs, RBAC
// and policies of this repository installed.
//
// In: the binaries that `make sandbox-build` puts in the cache. Out: connections as administrator and as the
// operator's service account. There is no kube-controller-manager: nothing collects garbage, nothing aggregates roles.
package apiserver
