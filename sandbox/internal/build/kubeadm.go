package build

import (
	"context"
	"path/filepath"
)

// Kubeadm returns the kubeadm of a version, and builds it where the cache does not hold it. No guest runs it: it is for
// whoever wants to know what a real machine's kubeadm says of a configuration.
func (b Builder) Kubeadm(ctx context.Context, version string) (string, error) {
	output := filepath.Join(b.Cache.Dir(version), "kubeadm")
	if isFile(output) {
		return output, nil
	}
	flags, err := b.Source.moduleFlags(version)
	if err != nil {
		return "", err
	}
	return output, b.alone(ctx, b.program("kubeadm", version, flags, output))
}
