package integration

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestEverythingInManifestsInstalls(t *testing.T) {
	if err := server.Install(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = "millwright-system", "millwright-operator"
	get(t, deployment)
}
