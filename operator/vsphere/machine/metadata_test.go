package machine

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
)

var updateGolden = flag.Bool("update", false, "write the golden files")

func TestMetadataIsWhatCloudInitReads(t *testing.T) {
	for name, network := range map[string]infrav1.NetworkSpec{
		"dhcp4": {Devices: []infrav1.NetworkDeviceSpec{{NetworkName: "VM Network", DHCP4: new(true), DHCP6: new(false)}}},
		"static": {
			Devices: []infrav1.NetworkDeviceSpec{{
				NetworkName: "VM Network", IPAddrs: []string{"192.168.1.10/24", "fd00::10/64"}, Gateway4: "192.168.1.1", Gateway6: "fd00::1",
				MTU: new(int64(9000)), Nameservers: []string{"192.168.1.2"}, SearchDomains: []string{"example.com"},
				Routes: []infrav1.NetworkRouteSpec{{To: "10.0.0.0/8", Via: "192.168.1.254", Metric: new(int32(3))}},
			}},
			Routes: []infrav1.NetworkRouteSpec{{To: "172.16.0.0/12", Via: "192.168.1.253", Metric: new(int32(0))}},
		},
		"two-devices": {Devices: []infrav1.NetworkDeviceSpec{
			{NetworkName: "VM Network", DHCP6: new(true), DHCP6Overrides: &infrav1.DHCPOverrides{UseDNS: new(false), RouteMetric: new(int32(50))}},
			{NetworkName: "storage", DeviceName: "san0", SkipIPAllocation: new(true), DHCP4Overrides: &infrav1.DHCPOverrides{UseDNS: new(true)}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := renderMetadata("prod-1", network, []string{"00:50:56:00:00:01", "00:50:56:00:00:02"})
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "metadata", name+".yaml")
			if *updateGolden {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
