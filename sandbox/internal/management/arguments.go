package management

import "strings"

func (c Cluster) etcdArgs() []string {
	return []string{
		"--name=sandbox",
		"--data-dir=" + c.Etcd,
		"--listen-client-urls=https://" + c.at(etcdPort),
		"--advertise-client-urls=https://" + c.at(etcdPort),
		"--listen-peer-urls=https://" + c.at(etcdPeerPort),
		"--initial-advertise-peer-urls=https://" + c.at(etcdPeerPort),
		"--initial-cluster=sandbox=https://" + c.at(etcdPeerPort),
		"--cert-file=" + c.pki("etcd.crt"),
		"--key-file=" + c.pki("etcd.key"),
		"--trusted-ca-file=" + c.pki("ca.crt"),
		"--client-cert-auth",
		"--peer-cert-file=" + c.pki("etcd.crt"),
		"--peer-key-file=" + c.pki("etcd.key"),
		"--peer-trusted-ca-file=" + c.pki("ca.crt"),
		"--peer-client-cert-auth",
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func (c Cluster) apiServerArgs() []string {
	args := []string{
		"--bind-address=" + c.Host,
		"--secure-port=" + apiServerPort,
		"--advertise-address=" + advertised,
		"--endpoint-reconciler-type=none",
		"--etcd-servers=https://" + c.at(etcdPort),
		"--etcd-cafile=" + c.pki("ca.crt"),
		"--etcd-certfile=" + c.pki("apiserver-etcd.crt"),
		"--etcd-keyfile=" + c.pki("apiserver-etcd.key"),
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki("sa.pub"),
		"--service-account-signing-key-file=" + c.pki("sa.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--allow-privileged=true",
		"--profiling=false",
	}
	if c.Audit != "" {
		args = append(args, "--audit-policy-file="+c.pki(auditPolicyFile), "--audit-log-path="+c.Audit,
			// One file, however long, for whoever reads along.
			"--audit-log-maxsize=100000")
	}
	return args
}

// controllers are those without which a cluster that only holds objects would
// behave unlike a real one; those for nodes, pods and volumes have nothing to do.
var controllers = []string{
	"certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller",
	"certificatesigningrequest-signing-controller",
	"clusterrole-aggregation-controller",
	"garbage-collector-controller",
	"namespace-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"validatingadmissionpolicy-status-controller",
}

func (c Cluster) controllerManagerArgs() []string {
	return []string{
		"--bind-address=" + c.Host,
		"--secure-port=" + controllerManagerPort,
		"--kubeconfig=" + c.pki("controller-manager.conf"),
		"--authentication-kubeconfig=" + c.pki("controller-manager.conf"),
		"--authorization-kubeconfig=" + c.pki("controller-manager.conf"),
		"--controllers=" + strings.Join(controllers, ","),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.pki("sa.key"),
		"--root-ca-file=" + c.pki("ca.crt"),
		"--cluster-signing-cert-file=" + c.pki("ca.crt"),
		"--cluster-signing-key-file=" + c.pki("ca.key"),
		// One replica: an election would only delay the start.
		"--leader-elect=false",
		// Deleting a cluster lets the garbage collector delete hundreds of objects.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--profiling=false",
	}
}
