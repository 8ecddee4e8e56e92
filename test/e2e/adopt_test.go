package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// testWhatKubeadmInstalledIsAdoptedWithoutARestart takes CoreDNS and kube-proxy over from kubeadm: what
// a change of their pods' templates would make is the same before and after.
func testWhatKubeadmInstalledIsAdoptedWithoutARestart(t *testing.T, cluster, kubeconfig string) {
	workload := func(args ...string) string {
		t.Helper()
		return bed.Run(t, "kubectl", append([]string{"--kubeconfig", kubeconfig, "-n", "kube-system"}, args...)...)
	}
	const own = "rewrite name a.example b.example"
	corefile := workload("get", "configmap", "coredns", "-o", "jsonpath={.data.Corefile}")
	edited := strings.Replace(corefile, "loadbalance", "loadbalance\n    # ours\n    "+own, 1)
	if edited == corefile {
		t.Fatalf("kubeadm's Corefile is not as it was known:\n%s", corefile)
	}
	workload("patch", "configmap", "coredns", "--type=merge", "-p", `{"data":{"Corefile":`+quoted(t, edited)+`}}`)

	snapshot := func() string {
		t.Helper()
		return workload("get", "replicasets,controllerrevisions,deployments,daemonsets", "-l", "k8s-app in (kube-dns,kube-proxy)",
			"-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.spec.template}{"\n"}{end}`) +
			workload("get", "configmaps", "coredns", "kube-proxy", "-o", "jsonpath={.items[*].data}")
	}
	before := snapshot()
	got := bed.Try(t, nil, "", "kubectl", "addons", "install", "coredns", "kube-proxy", "--cluster", cluster)
	if got.Code != 0 {
		t.Fatalf("install: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	for _, want := range []string{"adopted from kubeadm", "does not look after coredns any more", "does not look after kube-proxy any more"} {
		if !strings.Contains(got.Stderr, want) {
			t.Errorf("the install does not say %q:\n%s", want, got.Stderr)
		}
	}
	if strings.Contains(got.Stderr, "restart") {
		t.Errorf("the install says that pods restart:\n%s", got.Stderr)
	}
	// What would follow from another template has followed once its controller has seen it.
	sandboxtest.Eventually(t, 2*time.Minute, func() string {
		for _, name := range []string{"deployment/coredns", "daemonset/kube-proxy"} {
			if got := workload("get", name, "-o", "jsonpath={.metadata.generation}/{.status.observedGeneration}"); !sameHalves(got) {
				return name + " is not seen yet: " + got
			}
		}
		return ""
	})
	if after := snapshot(); after != before {
		t.Errorf("the adoption moved something\nbefore:\n%s\nafter:\n%s", before, after)
	}
	if !strings.Contains(workload("get", "configmap", "coredns", "-o", "jsonpath={.data.Corefile}"), own) {
		t.Error("the Corefile's own edit did not survive")
	}
	annotations := bed.Run(t, "kubectl", "get", "kubeadmcontrolplane", cluster, "-o", "jsonpath={.metadata.annotations}")
	for _, want := range []string{"skip-coredns", "skip-kube-proxy"} {
		if !strings.Contains(annotations, want) {
			t.Errorf("the control plane has no annotation %s: %s", want, annotations)
		}
	}
	again := bed.Run(t, "kubectl", "addons", "install", "coredns", "kube-proxy", "--cluster", cluster)
	for line := range strings.Lines(again) {
		if !strings.Contains(line, "unchanged") {
			t.Errorf("the second install says %q, want everything unchanged", line)
		}
	}
}

// sameHalves tells whether both sides of a slash are the same.
func sameHalves(text string) bool {
	before, after, ok := strings.Cut(text, "/")
	return ok && before == after
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	content, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
