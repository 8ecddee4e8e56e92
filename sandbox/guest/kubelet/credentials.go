package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/certificate/bootstrap"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

// restartDelay is how soon systemd starts a kubelet again that gave up
// (RestartSec of its unit).
const restartDelay = 10 * time.Second

// credentials returns the connection of kubelet.conf. Without one it asks for a
// certificate by the bootstrap kubeconfig, with the real kubelet's code, for as
// long as it takes.
func credentials(ctx context.Context, root rootfs.Root, node string, log func(string, ...any)) (*rest.Config, error) {
	for {
		err := errors.New("no " + kubeconfigPath + " and no " + bootstrapPath)
		if root.Exists(kubeconfigPath) || root.Exists(bootstrapPath) {
			err = bootstrap.LoadClientCert(klog.NewContext(ctx, klog.FromContext(ctx)), root.Path(kubeconfigPath), root.Path(bootstrapPath), root.Path(certDir), types.NodeName(node))
		}
		if err == nil {
			config, err := clientcmd.BuildConfigFromFlags("", root.Path(kubeconfigPath))
			if err != nil {
				return nil, fmt.Errorf("load %s: %s", kubeconfigPath, root.Guest(err.Error()))
			}
			config.QPS, config.Burst = 50, 100
			config.ContentType = runtime.ContentTypeProtobuf
			config.UserAgent = "kubelet/hollow"
			return config, nil
		}
		log("Failed to get a client certificate: %v", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(restartDelay):
		}
	}
}

// servingCertificate returns the self-signed certificate that a kubelet serves
// with when nobody gave it a better one, and makes it at first.
func servingCertificate(root rootfs.Root, node, address string) (tls.Certificate, error) {
	const certPath, keyPath = certDir + "/kubelet.crt", certDir + "/kubelet.key"
	pair, err := tls.LoadX509KeyPair(root.Path(certPath), root.Path(keyPath))
	if err == nil {
		return pair, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return tls.Certificate{}, fmt.Errorf("load %s: %w", certPath, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make serving key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make serving certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: node},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{node}, IPAddresses: []net.IP{net.ParseIP(address)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make serving certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make serving key: %w", err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if err := errors.Join(root.WriteFile(certPath, certPEM, 0o644), root.WriteFile(keyPath, keyPEM, 0o600)); err != nil {
		return tls.Certificate{}, fmt.Errorf("keep serving certificate: %w", err)
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// clientCAs returns the certificates by which callers of the kubelet's API are known.
func clientCAs(root rootfs.Root, path string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(root.Path(path))
	if err != nil {
		return nil, fmt.Errorf("unable to load client CA file %s: %s", path, root.Guest(err.Error()))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("unable to load client CA file %s: no certificate in it", path)
	}
	return pool, nil
}
