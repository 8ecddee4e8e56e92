#!/usr/bin/env bash
# Generates deepcopy code, CRDs and RBAC from the types and markers in the code.
# The same input gives the same output: hack/verify.sh relies on it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool() { go tool -modfile=tools/go.mod "$@"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "Deepcopy code of our own kinds" >&2
tool controller-gen object paths=./api/...

echo "CRDs" >&2
capi=sigs.k8s.io/cluster-api/api
tool controller-gen crd paths=./api/... output:crd:dir="$work/generated"
# Without descriptions: they are upstream's text, and make a CRD too big for client-side apply.
tool controller-gen crd:maxDescLen=0 output:crd:dir="$work/generated" \
  paths="$capi/core/v1beta2" paths="$capi/addons/v1beta2" paths="$capi/ipam/v1beta2" \
  paths="$capi/bootstrap/kubeadm/v1beta2" paths="$capi/controlplane/kubeadm/v1beta2"
cp -R hack/crds "$work/kustomize"
cat "$work"/generated/*.yaml >"$work/kustomize/crds.yaml"
mkdir "$work/crds"
tool kustomize build "$work/kustomize" -o "$work/crds"
mkdir -p manifests/crds
rm -f manifests/crds/*.yaml
for file in "$work"/crds/*.yaml; do
  mv "$file" "manifests/crds/${file##*_customresourcedefinition_}"
done
(cd manifests/crds && go tool -modfile=../../tools/go.mod kustomize create --autodetect)

echo "RBAC" >&2
tool controller-gen rbac:roleName=millwright-operator paths=./operator/... output:rbac:dir=manifests/rbac
# What the groups addons and upgrade need, for a management cluster whose machines upstream's controllers reconcile.
tool controller-gen rbac:roleName=millwright-operator \
  paths=./operator/addons/... paths=./operator/upgrade/... paths=./operator/app/... \
  paths=./operator/vsphere/image/... paths=./operator/vsphere/identity/... output:rbac:dir=manifests/beside-upstream
