#!/usr/bin/env bash
# Installs both plugins from the archives in dist/ with a real krew, without a network, and runs them as kubectl does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

krew_version=v0.4.3
dist=${DIST:-dist}
cache=${MILLWRIGHT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/millwright}
krew=$cache/krew-$krew_version/krew

[ -f "$dist/krew/machines.yaml" ] || { echo "$dist holds no release: run make release first." >&2; exit 1; }

if [ ! -x "$krew" ]; then
  echo "building krew $krew_version" >&2
  GOBIN=$(dirname "$krew") GOFLAGS= go install "sigs.k8s.io/krew/cmd/krew@$krew_version"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KREW_ROOT=$work/krew HOME=$work PATH=$work/krew/bin:$PATH
# Whatever krew would fetch, it must not: an address that nobody serves.
export HTTPS_PROXY=http://127.0.0.1:9 HTTP_PROXY=http://127.0.0.1:9 KREW_NO_UPGRADE_CHECK=1

# An index of one's own, as a team would have it: a git repository with a folder plugins.
mkdir -p "$work/index/plugins"
cp "$dist"/krew/*.yaml "$work/index/plugins/"
git -C "$work/index" init --quiet
git -C "$work/index" add --all
git -C "$work/index" -c user.name=test -c user.email=test@localhost commit --quiet --message index
export KREW_DEFAULT_INDEX_URI=file://$work/index
"$krew" update
"$krew" info machines

platform=$(go env GOOS)_$(go env GOARCH)
for plugin in machines addons; do
  archive=$(find "$dist" -maxdepth 1 -name "kubectl-${plugin}_*_${platform}.*")
  [ -n "$archive" ] || { echo "$dist has no kubectl-$plugin for $platform." >&2; exit 1; }
  "$krew" install --manifest="$dist/krew/$plugin.yaml" --archive="$archive"

  # What is not what the manifest says must be refused.
  cp "$archive" "$work/harmed"
  printf x >>"$work/harmed"
  "$krew" uninstall "$plugin"
  if "$krew" install --manifest="$dist/krew/$plugin.yaml" --archive="$work/harmed" 2>"$work/refusal"; then
    echo "krew installed an archive whose digest is wrong." >&2
    exit 1
  fi
  grep -q 'checksum' "$work/refusal"

  "$krew" install --manifest="$dist/krew/$plugin.yaml" --archive="$archive"
  installed=$(readlink -f "$KREW_ROOT/bin/kubectl-$plugin")
  case $installed in "$KREW_ROOT"/store/*) ;; *) echo "kubectl-$plugin is not krew's: $installed" >&2; exit 1 ;; esac
  [ -f "$(dirname "$installed")/LICENSE" ] || { echo "no LICENSE was installed with $plugin." >&2; exit 1; }

  kubectl-"$plugin" version --client
  kubectl-"$plugin" --help >/dev/null

  # A name of the user's own, where the index has another plugin of this one: the help calls it so.
  ln -s "$installed" "$work/kubectl-fleet_$plugin"
  "$work/kubectl-fleet_$plugin" --help | grep -q "kubectl fleet $plugin\|kubectl fleet-$plugin"

  size=$(stat -Lc %s "$installed" 2>/dev/null || stat -Lf %z "$installed")
  echo "kubectl-$plugin: $((size >> 20)) MiB (under 60)"
  [ "$size" -lt $((60 << 20)) ]
done

# kubectl finds them, where there is one.
kubectl=$(command -v kubectl || find "$cache" -maxdepth 2 -name kubectl -type f -perm -u+x 2>/dev/null | head -1)
if [ -n "$kubectl" ]; then
  "$kubectl" machines version --client
  "$kubectl" addons version --client
else
  echo "no kubectl on PATH: the plugins were called by their own names only"
fi
"$krew" list
