package machine

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter"
)

func TestNamesFollowTheStrategy(t *testing.T) {
	long := strings.Repeat("a", 60) + "-12345"
	for name, tc := range map[string]struct {
		strategy, machine, want string
		invalid                 bool
	}{
		"no strategy takes the Machine's name":   {"", "prod-1", "prod-1", false},
		"a prefix":                               {"vm-{{ .machine.name }}", "prod-1", "vm-prod-1", false},
		"a suffix is trimmed":                    {`{{ .machine.name | trimSuffix "-x" }}`, "prod-x", "prod", false},
		"the first characters":                   {`{{ trunc 4 .machine.name }}`, "prod-1", "prod", false},
		"the last characters":                    {`{{ trunc -1 .machine.name }}`, "prod-1", "1", false},
		"a long name is cut":                     {"", long, strings.Repeat("a", 60) + "-12", false},
		"a field that is not there is refused":   {"{{ .cluster.name }}", "prod-1", "", true},
		"a broken template is refused":           {"{{ .machine", "prod-1", "", true},
		"a name that is no host name is refused": {"VM_{{ .machine.name }}", "prod-1", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := vmName(tc.strategy, tc.machine)
			var invalid *vcenter.InvalidError
			if got != tc.want || errors.As(err, &invalid) != tc.invalid {
				t.Errorf("name is %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestATemplateOfAnotherVersionIsToldOnlyWhenItSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		want, template, annotation string
		mismatch                   bool
	}{
		"the same version":                  {"v1.37.2", "ubuntu-2404-kube-v1.37.2", "", false},
		"another version in the name":       {"v1.37.2", "ubuntu-2404-kube-v1.36.3", "", true},
		"another form of the name":          {"v1.37.2", "photon5_k8s-1.36.3", "", true},
		"a build of the same version":       {"v1.37.2+vmware.1", "ubuntu-kube-v1.37.2-build.4", "", false},
		"a number that is no version of it": {"v1.37.2", "golden-image-v2.0.1", "", false},
		"no version":                        {"v1.37.2", "golden", "", false},
		"another version in the annotation": {"v1.37.2", "golden", "Cluster API vSphere image - Ubuntu 24.04 and Kubernetes v1.36.3", true},
		"the name counts before the rest":   {"v1.37.2", "ubuntu-kube-v1.37.2", "Kubernetes v1.36.3", false},
		"a Machine without a version":       {"", "ubuntu-2404-kube-v1.36.3", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := versionMismatch(tc.want, tc.template, tc.annotation); (got != "") != tc.mismatch {
				t.Errorf("mismatch is %q", got)
			}
		})
	}
}

func TestUserdataReachesTheGuestInItsFormat(t *testing.T) {
	small, large := []byte("#cloud-config\n"), bytes.Repeat([]byte("#cloud-config\n"), 3000)
	got, err := options(map[string]string{"isolation.tools.copy.disable": "TRUE"}, bootstrapData{value: small}, []byte("m"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"isolation.tools.copy.disable": "TRUE",
		"guestinfo.userdata":           base64.StdEncoding.EncodeToString(small), "guestinfo.userdata.encoding": "base64",
		"guestinfo.metadata": "bQ==", "guestinfo.metadata.encoding": "base64",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cloud-config (-want +got):\n%s", diff)
	}

	got, err = options(nil, bootstrapData{value: large, format: "cloud-config"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got["guestinfo.userdata.encoding"] != "gzip+base64" {
		t.Errorf("encoding of %d bytes is %q", len(large), got["guestinfo.userdata.encoding"])
	}
	raw, err := base64.StdEncoding.DecodeString(got["guestinfo.userdata"])
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked, err := io.ReadAll(r); err != nil || !bytes.Equal(unpacked, large) {
		t.Errorf("unpacked to %d bytes, %v; want what went in", len(unpacked), err)
	}

	got, err = options(nil, bootstrapData{value: []byte("{}"), format: "ignition"}, nil)
	if err != nil || got["guestinfo.ignition.config.data"] != "e30=" || got["guestinfo.userdata"] != "" {
		t.Errorf("ignition gives %v, %v", got, err)
	}
	if _, err := options(nil, bootstrapData{value: small, format: "sysprep"}, nil); err == nil {
		t.Error("an unknown format is taken")
	}
}

func TestBootstrapDataThatVSphereCannotHoldIsRefusedWithSizeAndLimit(t *testing.T) {
	// Random bytes do not compress: 48 KiB of them fill the option in base64.
	data := make([]byte, 60_000)
	rand.NewChaCha8([32]byte{}).Read(data)
	for format, key := range map[string]string{"cloud-config": "guestinfo.userdata", "ignition": "guestinfo.ignition.config.data"} {
		_, err := options(nil, bootstrapData{value: data, format: format}, nil)
		for _, word := range []string{"60000 bytes", key, "65535", "spec.files"} {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: error %v, want %q in it", format, err, word)
			}
		}
	}
}

func TestALinkedCloneKeepsTheDiskOfItsTemplate(t *testing.T) {
	spec := infrav1.VirtualMachineCloneSpec{DiskGiB: 40, NumCPUs: 2}
	if got := config(spec, true, nil).DiskGiB; got != 0 {
		t.Errorf("disk of a linked clone is to be %d GiB", got)
	}
	if got := config(spec, false, nil).DiskGiB; got != 40 {
		t.Errorf("disk of a full clone is to be %d GiB; want 40", got)
	}
}

func TestReservationsAreRoundedUp(t *testing.T) {
	spec := infrav1.VirtualMachineCloneSpec{Resources: infrav1.VirtualMachineResources{
		Requests: infrav1.VirtualMachineResourceSpec{CPU: resource.MustParse("1500500k"), Memory: resource.MustParse("1Gi")},
		Limits:   infrav1.VirtualMachineResourceSpec{Memory: resource.MustParse("1")},
		Shares:   infrav1.VirtualMachineResourceShares{CPU: 100},
	}}
	got := config(spec, false, nil)
	want := vcenter.Config{
		CPU:    vcenter.Allocation{Reservation: new(int64(1501)), Shares: 100},
		Memory: vcenter.Allocation{Reservation: new(int64(1024)), Limit: new(int64(1))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFailureDomainGoesBeforeTheMachine(t *testing.T) {
	spec := infrav1.VirtualMachineCloneSpec{
		Template: "ubuntu", Server: "", Datacenter: "dc-a", Datastore: "nfs", Folder: "all", ResourcePool: "pool",
		Network: infrav1.NetworkSpec{Devices: []infrav1.NetworkDeviceSpec{{NetworkName: "a"}, {NetworkName: "b", DHCP4: new(true)}}},
	}
	z := &zone{
		deployment: &infrav1.VSphereDeploymentZone{Spec: infrav1.VSphereDeploymentZoneSpec{
			Server: "vc", PlacementConstraint: infrav1.PlacementConstraint{Folder: "zone-1"},
		}},
		domain: &infrav1.VSphereFailureDomain{Spec: infrav1.VSphereFailureDomainSpec{Topology: infrav1.Topology{
			Datacenter: "dc-b", ComputeCluster: "cluster-1", Datastore: "vsan", Networks: []string{"a1", "b1"},
		}}},
	}
	want := infrav1.VirtualMachineCloneSpec{
		Template: "ubuntu", Server: "vc", Datacenter: "dc-b", Datastore: "vsan", Folder: "zone-1", ResourcePool: "cluster-1/Resources",
		Network: infrav1.NetworkSpec{Devices: []infrav1.NetworkDeviceSpec{{NetworkName: "a1"}, {NetworkName: "b1", DHCP4: new(true)}}},
	}
	if diff := cmp.Diff(want, placed(spec, z)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if spec.Network.Devices[0].NetworkName != "a" {
		t.Error("the machine's own specification was changed")
	}
}

func TestFieldsThatCannotBeHonouredAreNamed(t *testing.T) {
	spec := infrav1.VirtualMachineCloneSpec{
		TagIDs: []string{"urn:x"}, HardwareVersion: "vmx-19",
		Network: infrav1.NetworkSpec{Devices: []infrav1.NetworkDeviceSpec{{}, {AddressesFromPools: []infrav1.IPPoolReference{{Name: "p"}}}}},
	}
	want := []string{"hardwareVersion", "tagIDs", "network.devices[1].addressesFromPools"}
	if diff := cmp.Diff(want, unsupported(spec, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAddressesAreThoseOfTheMachineItself(t *testing.T) {
	vm := &vcenter.VM{Name: "prod-1", NICs: []vcenter.NIC{
		{IPs: []string{"fe80::1", "10.0.0.9", "10.0.0.100"}}, {IPs: []string{"10.0.0.9", "169.254.1.1", "fd00::9"}},
	}}
	want := []clusterv1.MachineAddress{
		{Type: clusterv1.MachineHostName, Address: "prod-1"},
		{Type: clusterv1.MachineInternalIP, Address: "10.0.0.9"}, {Type: clusterv1.MachineInternalIP, Address: "fd00::9"},
		{Type: clusterv1.MachineExternalIP, Address: "10.0.0.9"}, {Type: clusterv1.MachineExternalIP, Address: "fd00::9"},
	}
	if diff := cmp.Diff(want, machineAddresses(vm, "10.0.0.100")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAMachineWaitsForTheAddressesThatItIsToGet(t *testing.T) {
	four, six := []string{"10.0.0.9"}, []string{"fd00::9"}
	for name, tc := range map[string]struct {
		device infrav1.NetworkDeviceSpec
		ips    []string
		want   string
	}{
		"DHCP gave one":                  {infrav1.NetworkDeviceSpec{DHCP4: new(true)}, four, ""},
		"DHCP gave none":                 {infrav1.NetworkDeviceSpec{DHCP4: new(true)}, nil, "no IPv4 address"},
		"the wrong family":               {infrav1.NetworkDeviceSpec{DHCP6: new(true)}, four, "no IPv6 address"},
		"both families":                  {infrav1.NetworkDeviceSpec{DHCP4: new(true), DHCP6: new(true)}, append(four, six...), ""},
		"a static address is not there":  {infrav1.NetworkDeviceSpec{IPAddrs: []string{"10.0.0.9/24"}}, six, "no IPv4 address"},
		"link-local does not count":      {infrav1.NetworkDeviceSpec{DHCP6: new(true)}, []string{"fe80::1"}, "no IPv6 address"},
		"a device without configuration": {infrav1.NetworkDeviceSpec{}, nil, "no address"},
		"a device that is to have none":  {infrav1.NetworkDeviceSpec{SkipIPAllocation: new(true)}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(missingAddresses([]infrav1.NetworkDeviceSpec{tc.device}, &vcenter.VM{NICs: []vcenter.NIC{{IPs: tc.ips}}}), "")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("missing %q; want %q", got, tc.want)
			}
		})
	}
}

func TestAnotherVCenterNeedsItsOwnThumbprint(t *testing.T) {
	cluster := vcenter.Endpoint{Server: "vc-a", Thumbprint: "AA", Username: "u", Password: "p"}
	for name, tc := range map[string]struct {
		spec infrav1.VirtualMachineCloneSpec
		want vcenter.Endpoint
	}{
		"no server":       {infrav1.VirtualMachineCloneSpec{Thumbprint: "BB"}, cluster},
		"the same server": {infrav1.VirtualMachineCloneSpec{Server: "VC-A"}, cluster},
		"another server":  {infrav1.VirtualMachineCloneSpec{Server: "vc-b", Thumbprint: "BB"}, vcenter.Endpoint{Server: "vc-b", Thumbprint: "BB", Username: "u", Password: "p"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, endpointFor(cluster, tc.spec)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
