// Package testserver gives tests of commands a real kube-apiserver (of package
// apiserver) with the CRDs of this repository, a kubeconfig for it, and objects as
// controllers would leave them.
//
// In come files of further CRDs and documents of YAML; out go a kubeconfig and
// objects with status and owners. It runs no controller, and only tests import it.
package testserver
