# Every target is a plain command that can be run by hand; `make` alone lists them.
GO ?= go
GENERATORS := -modfile=tools/generators/go.mod

# The flags that the matrix builds its programs with, so that nothing is compiled twice.
export CGO_ENABLED ?= 0
export GOFLAGS ?= -trimpath

# The row that is run on a real Kind cluster with every change: from the release that was broken.
ROW ?= 1.0.4

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: matrix
matrix: ## Run the upgrade matrix on the embedded cluster
	$(GO) run ./tools/matrix

.PHONY: chainsaw
chainsaw: ## Run the scenarios against the checkout on an embedded cluster
	$(GO) run ./tools/matrix scenarios

.PHONY: test
test: ## Run the tests
	$(GO) test -timeout 30m ./...

.PHONY: test-kill
test-kill: ## Kill the matrix in every step of a cell and see it go on (half an hour)
	$(GO) test -timeout 90m -v ./tools/matrix/e2e -every

.PHONY: test-controlplane
test-controlplane: ## Run the tests of the embedded cluster's program
	# Vetting it would mean all of Kubernetes: four minutes in an empty cache.
	$(GO) test -C tools/controlplane -vet=off ./...

.PHONY: node-image
node-image: ## Build the node image for Kind clusters (as root; KUBERNETES=X.Y.Z)
	$(GO) run ./tools/nodeimage $(addprefix --kubernetes=,$(KUBERNETES))

.PHONY: test-kind
test-kind: ## Run the lane on a real Kind cluster, with a container engine of its own if none answers
	$(GO) run ./tools/engine $(MAKE) kind-lane
	$(GO) test -tags kind -count=1 ./tools/engine

.PHONY: kind-lane
kind-lane: ## Run a row (ROW) on Kind and the tests that need real clusters, on the engine that answers
	$(GO) run ./tools/matrix run --provider kind --row $(ROW)
	$(GO) run ./tools/matrix run --row $(ROW)
	$(GO) test -tags kind -count=1 -timeout 60m ./matrix/cluster/kind
	$(GO) test -tags kind -count=1 -run SameVerdicts ./matrix -row $(ROW)

.PHONY: generate
generate: ## Generate deepcopy, CRD, roles and API reference from the code
	$(GO) generate ./...

.PHONY: lint
lint: ## Check format, vet and staticcheck
	@files=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$files" || { echo "not formatted: $$files"; exit 1; }
	$(GO) vet ./...
	$(GO) tool $(GENERATORS) staticcheck ./...

.PHONY: verify
verify: lint ## Check that generated files are in sync and claims have evidence
	$(GO) generate ./...
	git diff --exit-code -- api charts operator docs/operator/api-reference.md docs/operator/chart-values.md || { echo "generated files are out of date: run make generate and commit"; exit 1; }
	$(GO) run ./tools/matrix verify

.PHONY: build
build: ## Build the operator for this machine into bin/
	$(GO) build -o bin/manager ./operator

.PHONY: images
images: ## Build the images for all platforms into bin/
	$(GO) run ./tools/release images

.PHONY: release
release: ## Make a release: VERSION=X.Y.Z, and DRY_RUN=1 or PUSH=REGISTRY
	$(GO) run ./tools/release "$$VERSION" $(if $(DRY_RUN),--dry-run) $(addprefix --push=,$(PUSH))

.PHONY: lint-workflows
lint-workflows: ## Check the workflows of .github
	$(GO) tool $(GENERATORS) actionlint
	$(GO) test ./tools/workflows

.PHONY: kind-plan
kind-plan: ## Print the plan of the Kind matrix as an output of a workflow's step
	@plan=$$($(GO) run ./tools/matrix plan --provider kind $(addprefix --kubernetes=,$(KUBERNETES)) -o json) && printf "plan<<END-OF-PLAN\n%s\nEND-OF-PLAN\n" "$$plan"
