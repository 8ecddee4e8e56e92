#!/usr/bin/env bash
# Fails when generated files or a go.mod are not what the tree asks for, or a kustomization does not build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# generated lists the generated files with a hash of each.
generated() {
  find manifests/crds manifests/rbac/role.yaml manifests/beside-upstream/role.yaml api -type f \( -name '*.yaml' -o -name 'zz_generated.*' \) | sort |
    while read -r file; do echo "$(git hash-object --no-filters "$file") $file"; done
}

before=$(generated)
hack/generate.sh
if ! diff <(printf '%s\n' "$before") <(generated); then
  echo "Generated files were stale. They are fresh now: commit them." >&2
  exit 1
fi

for folder in crds rbac policies operator default beside-upstream; do
  go tool -modfile=tools/go.mod kustomize build "manifests/$folder" >/dev/null
done

for module in . sandbox tools; do
  go -C "$module" mod tidy -diff || { echo "$module/go.mod is not tidy: run go -C $module mod tidy." >&2; exit 1; }
done
