package contract_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte("apiVersion: foo.test/v1\nkind: Foo\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestFieldsOfBothContractsAreRead(t *testing.T) {
	type fields struct {
		Provisioned, Initialized, Created bool
		Secret, ProviderID, FailureDomain string
		Addresses                         clusterv1.MachineAddresses
		Domains                           []clusterv1.FailureDomain
		Endpoint                          clusterv1.APIEndpoint
		Failure                           string
	}
	for name, tc := range map[string]struct {
		text string
		want fields
	}{
		"nothing yet": {text: "spec: {}"},
		"v1beta2": {
			text: `
spec:
  providerID: foo://1
  controlPlaneEndpoint: {host: 10.0.0.1, port: 6443}
status:
  initialization: {provisioned: true, controlPlaneInitialized: true, dataSecretCreated: true}
  dataSecretName: s
  failureDomain: a
  addresses: [{type: InternalIP, address: 10.0.0.2}]
  failureDomains: [{name: b}, {name: a, controlPlane: true, attributes: {x: z}}]
`,
			want: fields{
				Provisioned: true, Initialized: true, Created: true, Secret: "s", ProviderID: "foo://1", FailureDomain: "a",
				Addresses: clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: "10.0.0.2"}},
				Domains:   []clusterv1.FailureDomain{{Name: "a", ControlPlane: new(true), Attributes: map[string]string{"x": "z"}}, {Name: "b"}},
				Endpoint:  clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443},
			},
		},
		"v1beta1": {
			text: `
spec: {failureDomain: z}
status:
  ready: true
  initialized: true
  failureMessage: broken
  failureDomains: {b: {}, a: {controlPlane: false}}
`,
			want: fields{
				Provisioned: true, Initialized: true, Created: true, FailureDomain: "z", Failure: "broken",
				Domains: []clusterv1.FailureDomain{{Name: "a", ControlPlane: new(false)}, {Name: "b"}},
			},
		},
		"a field of the new contract wins":   {text: "status: {ready: true, initialization: {provisioned: false}}", want: fields{Initialized: false, Created: true}},
		"an endpoint without a port is none": {text: "spec: {controlPlaneEndpoint: {host: h}}"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.text)
			secret, created := contract.DataSecret(obj)
			got := fields{
				contract.Provisioned(obj), contract.ControlPlaneInitialized(obj), created, secret, contract.ProviderID(obj),
				contract.FailureDomain(obj), contract.Addresses(obj), contract.FailureDomains(obj), contract.ControlPlaneEndpoint(obj),
				contract.Failure(obj),
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("fields (-want +got):\n%s", d)
			}
		})
	}
}

func TestConditionsOfAnUnstructuredObjectCanBeSetAndRead(t *testing.T) {
	obj := object(t, "metadata: {generation: 3}\nstatus: {conditions: [{type: Broken}]}")
	conditions.Set(contract.Conditions(obj), conditions.False("Ready", "NotReady", "why"))
	got := conditions.Get(contract.Conditions(obj), "Ready")
	if got == nil || got.Status != metav1.ConditionFalse || got.Message != "why" || got.ObservedGeneration != 3 {
		t.Errorf("condition: %+v", got)
	}
}

func TestFromTemplateNamesLabelsAndOwnsTheClone(t *testing.T) {
	template := object(t, `
metadata: {name: t, namespace: ns}
spec:
  template:
    metadata:
      labels: {from: template, both: template}
    spec: {size: 3}
`)
	template.SetKind("FooMachineTemplate")
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Owner", Name: "o", UID: "1"}
	got, err := contract.FromTemplate(contract.CloneInput{
		Template: template, Namespace: "ns", Name: "clone", ClusterName: "c", Owner: owner, Labels: map[string]string{"both": "input"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, `
metadata:
  name: clone
  namespace: ns
  labels: {from: template, both: input, cluster.x-k8s.io/cluster-name: c}
  annotations: {cluster.x-k8s.io/cloned-from-name: t, cluster.x-k8s.io/cloned-from-groupkind: FooMachineTemplate.foo.test}
  ownerReferences: [{apiVersion: v1, kind: Owner, name: o, uid: "1"}]
spec: {size: 3}
`)
	want.SetKind("FooMachine")
	if d := cmp.Diff(want.Object, got.Object); d != "" {
		t.Errorf("clone (-want +got):\n%s", d)
	}

	template.SetKind("FooMachine")
	if _, err := contract.FromTemplate(contract.CloneInput{Template: template}); err == nil {
		t.Error("an object that is no template was cloned")
	}
}
