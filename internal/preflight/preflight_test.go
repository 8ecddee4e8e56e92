package preflight

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
)

func TestDeprecatedAPIsAndTheSizeOfEtcdAreReadFromTheMetrics(t *testing.T) {
	var w upgrade.Workload
	err := readMetrics([]byte(`# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.37",resource="flowschemas",subresource="",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 0
# TYPE apiserver_storage_size_bytes gauge
apiserver_storage_size_bytes{storage_cluster_id="etcd-0"} 2.621440e+06
apiserver_storage_size_bytes{storage_cluster_id="etcd-1"} 3.145728e+06
# TYPE apiserver_request_total counter
apiserver_request_total{code="200"} 12
`), &w)
	if err != nil {
		t.Fatal(err)
	}
	want := upgrade.Workload{EtcdBytes: 3 << 20, Deprecated: []upgrade.DeprecatedAPI{
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3", Resource: "flowschemas", RemovedIn: "1.37"}}}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if err := readMetrics([]byte("no metrics at all {"), &w); err == nil {
		t.Error("what is no metrics is read without an error")
	}
}
