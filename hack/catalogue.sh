#!/usr/bin/env bash
# Checks each published file of the catalogue against its digest, from the mirror in
# MILLWRIGHT_MIRROR or from the network, then renders and applies all entries.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=()
for name in $(bin/kubectl-addons list --kubernetes-version v1.37.0 -o jsonpath='{.items[*].metadata.name}'); do
  if bin/kubectl-addons mirror "$folder" "$name" >/dev/null 2>"$folder/.error"; then
    echo "$name: every file has its digest"
  elif [ "$(bin/kubectl-addons show "$name" -o jsonpath='{.spec.versions[?(@.tested==true)].version}')" = "" ]; then
    echo "$name: untested: $(cat "$folder/.error")"
  else
    echo "$name: $(cat "$folder/.error")" >&2
    failed+=("$name")
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "these are not what the catalogue names: ${failed[*]}" >&2
  exit 1
fi
go test -count=1 -run 'Catalogue|Golden|Cilium|Kubernetes' ./internal/bundle ./test/integration/addons
