# Millwright. `make help` lists what there is.

SHELL := /usr/bin/env bash -euo pipefail
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/millwright-dev/millwright/internal/cli.version=$(VERSION)
GOTOOL  := go tool -modfile=tools/go.mod
# Two packages at a time: each integration package starts a kube-apiserver of its own.
TESTFLAGS ?= -p 2 -timeout 25m

# The mirror of upstream manifests that the tests and the demo use, where it stands beside this repository.
MIRROR ?= $(abspath ../shared/upstream)
ifneq ($(wildcard $(MIRROR)),)
export MILLWRIGHT_MIRROR ?= $(MIRROR)
endif

##@ Start here

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Bring up a sandbox, create a cluster, scale it, give it add-ons. DEMO_DOWN=1 ends the sandbox afterwards.
	@hack/demo.sh

.PHONY: test
test: build sandbox-build ## All tests: unit, integration against a real kube-apiserver, end to end in a sandbox.
	go -C sandbox test $(TESTFLAGS) ./...
	go -C tools test ./...
	$(GOTOOL) gotestsum --format pkgname-and-test-fails -- $(TESTFLAGS) ./...

##@ Sandbox

.PHONY: sandbox
sandbox: build ## Start a management cluster, a vCenter simulator and the operator in the background.
	@bin/sandbox up

.PHONY: sandbox-down
sandbox-down: ## Stop the sandbox and free its ports.
	@if [ -x bin/sandbox ]; then bin/sandbox down; else echo "No sandbox was built here." >&2; fi

.PHONY: sandbox-build
sandbox-build: bin-sandbox ## Build the Kubernetes binaries of the sandbox into the cache, once.
	@bin/sandbox build

##@ Build

.PHONY: build
build: bin-sandbox ## Build the operator, both plugins and the sandbox into bin/.
	go build -ldflags '$(LDFLAGS)' -o bin/operator ./operator
	go build -ldflags '$(LDFLAGS)' -o bin/kubectl-machines ./cmd/kubectl-machines
	go build -ldflags '$(LDFLAGS)' -o bin/kubectl-addons ./cmd/kubectl-addons
	@ln -sf kubectl-machines bin/kubectl_complete-machines
	@ln -sf kubectl-addons bin/kubectl_complete-addons

.PHONY: bin-sandbox
bin-sandbox:
	go -C sandbox build -o ../bin/sandbox ./cmd/sandbox

.PHONY: clean
clean: sandbox-down ## Stop the sandbox and remove bin/ and .sandbox/. The cache of Kubernetes binaries stays.
	rm -rf bin .sandbox

##@ Release

RELEASE ?= $(shell git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || echo v0.0.0)

.PHONY: release
release: ## Archives, digests, SBOMs, krew manifests, install manifests and the operator's image, into dist/.
	go -C tools run ./release -root .. -out ../dist -version $(RELEASE) $(if $(PLATFORMS),-platforms $(PLATFORMS))

.PHONY: krew-test
krew-test: ## Install both plugins from dist/ with a real krew, offline, and run them.
	hack/krew-test.sh

##@ Develop

.PHONY: generate
generate: ## Generate deepcopy functions, CRDs and RBAC.
	hack/generate.sh

.PHONY: lint
lint: ## go vet, gofmt and staticcheck on every module.
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	go -C sandbox vet ./...
	go -C tools vet ./...
	$(GOTOOL) staticcheck ./...
	cd sandbox && go tool -modfile=../tools/go.mod staticcheck ./...
	cd tools && go tool staticcheck ./...

.PHONY: verify
verify: ## Fail when generated code or go.mod is not up to date.
	hack/verify.sh

.PHONY: catalogue
catalogue: build sandbox-build ## Check the add-ons: digests of published files (MIRROR or network), rendering, installs on 1.36 and 1.37.
	@bin/sandbox build v1.36.3
	hack/catalogue.sh

.PHONY: e2e
e2e: build sandbox-build ## Only the end-to-end tests.
	go test -v -timeout 25m -count 1 ./test/e2e/...

.PHONY: endurance
endurance: build sandbox-build ## Scenarios that take minutes: kills, dead nodes, control planes that grow and shrink.
	ENDURANCE=1 go test -timeout 40m -count 1 ./test/kubeadm
	ENDURANCE=1 go test -v -p 1 -timeout 40m -count 1 ./test/endurance/...

.PHONY: bench
bench: build sandbox-build ## Measure what 100 machines cost; BENCH_LARGE=1 adds 1000. Fails where a goal is missed.
	BENCH=1 go test -v -timeout 90m -count 1 -run TestAFleetCostsTheSameForEachMachine ./test/bench
