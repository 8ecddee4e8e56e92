#!/bin/sh
# Writes versions/VERSION.mod and .sum: the requirements with which the guest and
# the control plane of another Kubernetes version build in this module, as in
#
#   go build -modfile=versions/v1.36.3.mod ./guest/cmd/guest
#
# They are those of Kubernetes' own go.mod at that version, with its staging
# modules taken from their releases.
set -eu
[ $# -gt 0 ] || { echo "usage: $0 VERSION..." >&2; exit 2; }
cd "$(dirname "$0")/.."

for version; do
	staging="v0.${version#v1.}"
	upstream=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	out="versions/$version.mod"
	{
		echo "// Written by versions/update.sh from the requirements of Kubernetes $version."
		sed -n '/^module /,$p' "$upstream"
	} >"$out"
	rm -f "versions/$version.sum"
	go mod edit -module=github.com/millwright-dev/millwright/sandbox -go=1.26.0 -toolchain=none \
		-require="k8s.io/kubernetes@$version" "$out"
	# The package for port-forward left k8s.io/kubelet in v1.36. It stands on its
	# own, so that older versions can use it too.
	go mod edit -require=k8s.io/cri-streaming@v0.37.2 -require=k8s.io/streaming@v0.37.2 "$out"
	for module in $(sed -n 's|^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging/.*|\1|p' "$upstream"); do
		# Samples are neither needed nor released each time.
		case $module in k8s.io/sample-*) go mod edit -droprequire="$module" -dropreplace="$module" "$out"; continue ;; esac
		go mod edit -require="$module@$staging" -replace="$module=$module@$staging" "$out"
	done
	go list -mod=mod -modfile="$out" -deps ./guest/cmd/guest \
		k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager \
		k8s.io/kubernetes/cmd/kube-scheduler >/dev/null
done
