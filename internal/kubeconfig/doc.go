// Package kubeconfig knows where the kubeconfig of a cluster is kept and what may be in it.
//
// In: the bytes from the Secret <cluster>-kubeconfig, which whoever may write Secrets in that namespace can replace. Out:
// a client configuration, or why there is none. It reads no file, starts no program and makes no request.
package kubeconfig
