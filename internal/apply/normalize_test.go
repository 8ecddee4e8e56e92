package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatTripsServerSideApplyIsNormalized(t *testing.T) {
	cases := map[string]struct{ published, want string }{
		"what the server writes": {
			published: `
apiVersion: v1
kind: Service
metadata:
  name: a
  resourceVersion: "0"
  uid: x
  generation: 3
  selfLink: /x
  creationTimestamp: null
  managedFields: []
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    kept: "yes"
spec: {}
status: {loadBalancer: {}}`,
			want: `
apiVersion: v1
kind: Service
metadata:
  name: a
  annotations: {kept: "yes"}
spec: {}`,
		},
		"the status of a CRD": {
			published: `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: a, creationTimestamp: null}
spec: {group: example.com}
status: {storedVersions: []}`,
			want: `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: a}
spec: {group: example.com}`,
		},
		"a port without a protocol, and one that is there twice": {
			published: `
apiVersion: v1
kind: Service
metadata: {name: a}
spec:
  ports:
  - {port: 53, protocol: UDP}
  - {port: 80}
  - {port: 80, protocol: TCP}`,
			want: `
apiVersion: v1
kind: Service
metadata: {name: a}
spec:
  ports:
  - {port: 53, protocol: UDP}
  - {port: 80, protocol: TCP}`,
		},
		"ports and environment of a pod template": {
			published: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  template:
    metadata: {creationTimestamp: null, labels: {app: a}}
    spec:
      initContainers:
      - name: first
        ports: [{containerPort: 1}]
      containers:
      - name: main
        ports: [{containerPort: 2, name: x}, {containerPort: 2, name: x}]
        env:
        - {name: A, value: "1"}
        - {name: B, value: "2"}
        - {name: A, value: "3"}`,
			want: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  template:
    metadata: {labels: {app: a}}
    spec:
      initContainers:
      - name: first
        ports: [{containerPort: 1, protocol: TCP}]
      containers:
      - name: main
        ports: [{containerPort: 2, name: x, protocol: TCP}]
        env:
        - {name: B, value: "2"}
        - {name: A, value: "3"}`,
		},
		"the template of a CronJob": {
			published: `
apiVersion: batch/v1
kind: CronJob
metadata: {name: a}
spec: {jobTemplate: {metadata: {creationTimestamp: null}, spec: {template: {spec: {containers: [{name: c, ports: [{containerPort: 1}]}]}}}}}`,
			want: `
apiVersion: batch/v1
kind: CronJob
metadata: {name: a}
spec: {jobTemplate: {metadata: {}, spec: {template: {spec: {containers: [{name: c, ports: [{containerPort: 1, protocol: TCP}]}]}}}}}`,
		},
		"the plain text of a Secret": {
			published: `
apiVersion: v1
kind: Secret
metadata: {name: a}
data: {a: AAAA, b: BBBB}
stringData: {b: text, c: more}`,
			want: `
apiVersion: v1
kind: Secret
metadata: {name: a}
data: {a: AAAA, b: dGV4dA==, c: bW9yZQ==}`,
		},
		"a field of a custom resource that only looks like a port": {
			published: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
spec: {ports: [{port: 1}, {port: 1}]}`,
			want: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
spec: {ports: [{port: 1}, {port: 1}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.published)
			Normalize(object)
			if diff := cmp.Diff(parse(t, tc.want).Object, object.Object); diff != "" {
				t.Errorf("normalized (-want +got):\n%s", diff)
			}
		})
	}
}
