// Package pki makes the certificates that a Kubernetes control plane starts from: certificate
// authorities, the service account key pair, client certificates and kubeconfigs.
//
// PEM and options go in, PEM goes out. The clock comes with the options, so results are
// reproducible but for the random keys. The package knows neither Secrets nor clusters: who keeps
// the bytes, and under what name, is the caller's business.
package pki
