#!/usr/bin/env bash
# The demo: every command is printed before it runs, so that it can be typed again by hand.
set -euo pipefail
cd "$(dirname "$0")/.."

bold='' dim='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
  bold=$'\033[1m' dim=$'\033[2m' plain=$'\033[0m'
fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
run() {
  printf '%s$%s %s\n' "$dim" "$plain" "$*"
  eval "$@"
}

cluster=${DEMO_CLUSTER:-demo}
export PATH="$PWD/bin:$PATH"

finish() {
  status=$?
  if [ "${DEMO_DOWN:-}" = 1 ]; then
    say "Stop the sandbox (DEMO_DOWN=1)"
    run make --no-print-directory sandbox-down || status=$?
  elif [ $status -ne 0 ]; then
    printf '\nThe demo failed. The sandbox is still up: `bin/sandbox status` and `bin/sandbox logs operator` tell more.\n' >&2
  fi
  exit $status
}
trap finish EXIT

say "A management cluster, a vCenter simulator and the operator, on this machine"
run bin/sandbox up
export KUBECONFIG="$PWD/.sandbox/kubeconfig"
set -a
# shellcheck disable=SC1091
. .sandbox/vsphere.env
set +a

say "The fleet: empty in a new sandbox"
run kubectl machines

say "A cluster of one control plane and two workers"
run "CLUSTER_NAME=$cluster KUBERNETES_VERSION=v1.37.2 bin/sandbox fill sandbox/templates/cluster.yaml | kubectl apply -f -"

say "Its machines, until all are ready"
run kubectl machines tree "$cluster" --watch --until ready --timeout 10m
run kubectl machines tree "$cluster"

say "Two more workers"
run kubectl machines scale "$cluster-md-0" --replicas 4 --wait --timeout 5m
run kubectl machines get "$cluster"

say "Add-ons: what the catalogue has, and which version fits this cluster"
run kubectl addons list --cluster "$cluster"
run kubectl addons install calico coredns kube-proxy metrics-server --cluster "$cluster"
run kubectl addons status --cluster "$cluster"

say "The cluster itself"
run "kubectl --kubeconfig <(kubectl machines kubeconfig $cluster) get nodes"

if [ "${DEMO_DOWN:-}" != 1 ]; then
  say "What to try next"
  next() { printf '  %-58s%s\n' "$1" "${2:+# $2}" | sed 's/ *$//'; }
  next "export KUBECONFIG=$PWD/.sandbox/kubeconfig PATH=$PWD/bin:\$PATH"
  if [ -n "${MILLWRIGHT_MIRROR:-}" ]; then
    next "export MILLWRIGHT_MIRROR=$MILLWRIGHT_MIRROR"
  fi
  next "kubectl machines scale $cluster-md-0 --replicas 10 --wait"
  next "kubectl machines get $cluster -o wide"
  next "kubectl addons uninstall metrics-server --cluster $cluster" "says what goes, and asks"
  next "kubectl delete cluster $cluster" "every VM, Secret and object of it goes, in order"
  next "bin/sandbox status" "what runs, and where it listens"
  next "bin/sandbox logs operator" "or the name of a machine: its serial console"
  next "make sandbox-down"
fi
