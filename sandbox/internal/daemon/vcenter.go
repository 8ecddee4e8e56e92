package daemon

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"

	"github.com/millwright-dev/millwright/sandbox/internal/address"
	"github.com/millwright-dev/millwright/sandbox/internal/build"
	"github.com/millwright-dev/millwright/sandbox/internal/fill"
	"github.com/millwright-dev/millwright/sandbox/internal/state"
	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

// startVCenter starts vCenter and writes vsphere.env.
func (d *daemon) startVCenter(ctx context.Context) (*vcenter.Server, error) {
	server, err := vcenter.Start(ctx, d.block.Host(), d.Dir.VCenter(), TemplateVersions)
	if err != nil {
		return nil, err
	}
	endpoint, err := address.TakeEndpoint(ctx, d.Dir.Endpoints(), d.block)
	if err != nil {
		return server, err
	}
	d.store.Update(func(s *state.State) { s.VCenter = server.Address })
	return server, state.WriteFile(d.Dir.VSphereEnv(), []byte(fill.Environment(variables(server, endpoint))))
}

// variables are those of CAPV's cluster templates, as far as they describe the
// environment and not the cluster.
func variables(server *vcenter.Server, endpoint string) map[string]string {
	return map[string]string{
		"VSPHERE_SERVER":             server.Address,
		"VSPHERE_USERNAME":           server.Username,
		"VSPHERE_PASSWORD":           server.Password,
		"VSPHERE_TLS_THUMBPRINT":     server.Thumbprint,
		"VSPHERE_DATACENTER":         vcenter.Datacenter,
		"VSPHERE_DATASTORE":          vcenter.Datastore,
		"VSPHERE_NETWORK":            vcenter.Network,
		"VSPHERE_FOLDER":             vcenter.Folder,
		"VSPHERE_RESOURCE_POOL":      vcenter.ResourcePool,
		"VSPHERE_TEMPLATE":           vcenter.Template(build.DefaultVersion),
		"VSPHERE_STORAGE_POLICY":     vcenter.StoragePolicy,
		"VSPHERE_SSH_AUTHORIZED_KEY": authorizedKey(),
		"CONTROL_PLANE_ENDPOINT_IP":  endpoint,
		"KUBERNETES_VERSION":         build.DefaultVersion,
		// The cloud provider's image for this minor; nothing pulls it here.
		"CPI_IMAGE_K8S_VERSION": "v1.37.0",
	}
}

// authorizedKey returns a public SSH key whose private half nobody has: no
// guest of the sandbox can be logged in to.
func authorizedKey() string {
	const kind = "ssh-ed25519"
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		// Reading random bytes does not fail (crypto/rand).
		panic(err)
	}
	// RFC 8709: the name and the key, each with its length before it.
	var wire []byte
	for _, part := range [][]byte{[]byte(kind), public} {
		wire = append(binary.BigEndian.AppendUint32(wire, uint32(len(part))), part...)
	}
	return kind + " " + base64.StdEncoding.EncodeToString(wire) + " sandbox"
}
