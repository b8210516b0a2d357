# The targets that README.md and CONTRIBUTING.md speak of; `make help` lists them.

GO ?= go
PYTHON ?= python3
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
NODE_DIR := clients/node
BENCH_DIR := $(NODE_DIR)/bench
PYTHON_DIR := clients/python
PEERS := rpc/testdata/peers
VENV := $(PYTHON_DIR)/.venv
VENV_PYTHON := $(CURDIR)/$(VENV)/bin/python
export TASKFORCE_BINARY := $(CURDIR)/bin/taskforce

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
CYCLONEDX := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
FUZZTIME ?= 60s

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | expand -t 16

.PHONY: build
build: ## build the static binary, bin/taskforce
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o bin/taskforce ./cmd/taskforce

DIST := dist
BINARIES := $(foreach platform,$(subst /,-,$(PLATFORMS)),$(DIST)/bin/$(platform)/taskforce$(if $(findstring windows,$(platform)),.exe))
# The time of the commit, for archives whose bytes depend on their input alone.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1580601600)

.PHONY: dist-binaries
dist-binaries: $(addprefix binary-,$(subst /,-,$(PLATFORMS)))

binary-%:
	GOOS=$(firstword $(subst -, ,$*)) GOARCH=$(lastword $(subst -, ,$*)) CGO_ENABLED=0 \
	$(GO) build -trimpath -buildvcs=false -ldflags "$(LDFLAGS)" \
	-o $(filter $(DIST)/bin/$*/%,$(BINARIES)) ./cmd/taskforce

.PHONY: dist-npm
dist-npm: dist-binaries node ## build the npm packages of all platforms
	node $(NODE_DIR)/pack.mjs $(DIST)/npm $(DIST)/bin

.PHONY: dist-sbom
dist-sbom: dist-binaries ## list the modules inside each binary, as CycloneDX documents
	mkdir -p $(DIST)/sbom
	@# The time is left out: the same binary has the same list.
	for binary in $(BINARIES); do \
		name=$$(basename $$(dirname $$binary)).cdx.json; \
		$(GO) run $(CYCLONEDX) bin -json -noserial -std -version "$(VERSION)" $$binary 2>$(DIST)/sbom/log | \
			sed '/^    "timestamp": /d' >$(DIST)/sbom/$$name || exit 1; \
		test -s $(DIST)/sbom/$$name || { cat $(DIST)/sbom/log; exit 1; }; \
	done; rm $(DIST)/sbom/log

.PHONY: dist
dist: dist-npm dist-python dist-sbom ## build every package of a release, lists of what they hold, and checksums
	cd $(DIST) && find bin npm python sbom -type f -not -path 'npm/packages/*' 2>/dev/null | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
	@cat $(DIST)/SHA256SUMS

.PHONY: reproduce
reproduce: dist ## build every package again from a copy of the sources elsewhere, and compare the bytes
	copy=$$(mktemp -d) && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t $$copy && \
	(umask 077 && $(MAKE) -C $$copy VERSION=$(VERSION) dist) && \
	diff $(DIST)/SHA256SUMS $$copy/$(DIST)/SHA256SUMS && rm -r $$copy

PACKAGES := $(NODE_DIR)/packages
.PHONY: kills-node
kills-node: build node ## kill the sidecar of the Node client at 1,000 random moments under load (KILLS=1000 SEED=1)
	cd $(NODE_DIR) && KILLS=$(or $(KILLS),1000) $(if $(SEED),SEED=$(SEED)) node --test test/kills.test.mjs

.PHONY: packages
packages: $(PACKAGES)/node_modules/.package-lock.json ## install the packages of `make dist` with npm, pnpm and yarn and run the example host
	cd $(PACKAGES) && node --test

OPENRPC := $(NODE_DIR)/openrpc
.PHONY: openrpc
openrpc: build $(OPENRPC)/node_modules/.package-lock.json ## make a client from `taskforce schema` by @open-rpc/generator, compile it and call the sidecar
	cd $(OPENRPC) && node --test

$(OPENRPC)/node_modules/.package-lock.json: $(OPENRPC)/package-lock.json
	cd $(OPENRPC) && npm ci --ignore-scripts --no-audit --no-fund

$(PACKAGES)/node_modules/.package-lock.json: $(PACKAGES)/package-lock.json
	cd $(PACKAGES) && npm ci --ignore-scripts --no-audit --no-fund

.PHONY: dist-python
dist-python: dist-binaries $(VENV)/ready ## build the Python wheels of all platforms, and the source package
	rm -rf $(DIST)/python
	$(VENV_PYTHON) $(PYTHON_DIR)/pack.py $(DIST)/python \
		$(foreach binary,$(BINARIES),$(notdir $(patsubst %/,%,$(dir $(binary))))=$(binary))
	@cd $(DIST)/python && wc -c *

.PHONY: demo
demo: build node ## run both example hosts: real programs that spawn the sidecar
	node $(NODE_DIR)/examples/host.mjs
	PYTHONPATH=$(PYTHON_DIR)/src $(PYTHON) $(PYTHON_DIR)/examples/host.py

.PHONY: bench
bench: build node $(BENCH_DIR)/node_modules/.package-lock.json ## print the table of BENCHMARKS.md; ONLY=1,2 ROUNDS=3 DIR=folder narrow it
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o bin/rawbench ./cmd/rawbench
	@node $(BENCH_DIR)/run.mjs $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(DIR),--dir $(DIR))

.PHONY: bench-postgres
bench-postgres: ## print the figures for PostgreSQL, on a server of its own (ROUNDS=3)
	$(GO) test ./store/postgres -run '^$$' -bench Cycles -benchtime 4s -count $(or $(ROUNDS),1)

.PHONY: test
test: build test-go test-node test-python ## run every test against the real binary

.PHONY: test-go
test-go:
	$(GO) test -race -timeout 20m ./...

.PHONY: test-node
test-node: build node
	cd $(NODE_DIR) && npm test

.PHONY: test-python
test-python: build $(VENV)/ready
	cd $(PYTHON_DIR) && $(VENV_PYTHON) -m pytest -q

.PHONY: bench-python
bench-python: build ## compare both Python clients with loops written by hand
	PYTHONPATH=$(PYTHON_DIR)/src $(PYTHON) $(PYTHON_DIR)/bench/overhead.py

.PHONY: reference-python
reference-python: $(VENV)/ready ## write the reference of the Python package to dist/reference-python
	PYTHONPATH=$(PYTHON_DIR)/src $(VENV_PYTHON) -m pdoc taskforce_sidecar -o $(DIST)/reference-python

.PHONY: kills-python
kills-python: build $(VENV)/ready ## kill the sidecars of both Python clients at random moments under load (KILLS=1000)
	cd $(PYTHON_DIR) && TASKFORCE_KILLS=$(or $(KILLS),1000) $(VENV_PYTHON) -m pytest -s tests/test_kills.py --durations=2

.PHONY: node
node: $(NODE_DIR)/node_modules/.package-lock.json
	cd $(NODE_DIR) && npm run --silent build

$(NODE_DIR)/node_modules/.package-lock.json: $(NODE_DIR)/package-lock.json
	cd $(NODE_DIR) && npm ci --no-audit --no-fund

$(BENCH_DIR)/node_modules/.package-lock.json: $(BENCH_DIR)/package-lock.json
	cd $(BENCH_DIR) && npm ci --no-audit --no-fund

$(VENV)/ready: $(PYTHON_DIR)/requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check -r $(PYTHON_DIR)/requirements-dev.txt
	touch $@

CHECKS ?= 2000
.PHONY: model
model: ## drive governor and reference model by random calls for longer (CHECKS=2000)
	$(GO) test ./governor -run 'TestModel$$' -count=1 -timeout 0 -rapid.checks=$(CHECKS)

.PHONY: linear
linear: ## record and check more histories of several sidecars (ROUNDS=200)
	$(GO) test ./cmd/taskforce -run 'TestLinear$$' -count=1 -timeout 0 -v -linear.rounds=$(or $(ROUNDS),200)

.PHONY: swarm
swarm: build ## let many short-lived sidecars loose on one store and judge it (N=20000 PROCS=16 SEED=1 STORE=postgres://…)
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/swarm ./cmd/swarm
	bin/swarm -n $(or $(N),20000) -procs $(or $(PROCS),16) $(if $(SEED),-seed $(SEED)) $(if $(STORE),-store '$(STORE)') -binary bin/taskforce

.PHONY: fuzz
fuzz: ## fuzz the wire, each target for FUZZTIME
	for target in $$($(GO) test -list '^Fuzz' ./rpc ./schema | grep '^Fuzz'); do \
		package=./rpc; grep -q "func $$target(" schema/*_test.go && package=./schema; \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
	done

.PHONY: peers
peers: build $(PEERS)/node_modules/.package-lock.json $(PEERS)/.venv/ready ## let clients that are not ours talk to the sidecar
	cd $(PEERS) && for peer in vscode-jsonrpc json-rpc-2.0 jayson open-rpc; do node $$peer.mjs || exit 1; done
	cd $(PEERS) && .venv/bin/python python_lsp_jsonrpc.py

$(PEERS)/node_modules/.package-lock.json: $(PEERS)/package-lock.json
	cd $(PEERS) && npm ci --no-audit --no-fund

$(PEERS)/.venv/ready: $(PEERS)/requirements.txt
	$(PYTHON) -m venv $(PEERS)/.venv
	$(PEERS)/.venv/bin/python -m pip install --quiet --disable-pip-version-check -r $(PEERS)/requirements.txt
	touch $@

.PHONY: generate
generate: ## write again what derives from package schema
	$(GO) run ./clients/gen

.PHONY: lint
lint: lint-go lint-node lint-python ## run every formatter and linter

.PHONY: lint-go
lint-go:
	@unformatted=$$(gofmt -l cmd clients governor rpc schema store); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed: $$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(GOLANGCI) run

.PHONY: lint-node
lint-node: node
	cd $(NODE_DIR) && npm run --silent lint && npm run --silent types

.PHONY: lint-python
lint-python: $(VENV)/ready
	cd $(PYTHON_DIR) && $(VENV_PYTHON) -m ruff format --check . && $(VENV_PYTHON) -m ruff check . && $(VENV_PYTHON) -m mypy && $(VENV_PYTHON) -m mypy --platform win32 --cache-dir .mypy_cache/win32 src && $(VENV_PYTHON) -m pyright src

.PHONY: cross
cross: ## compile and vet for every platform
	@for platform in $(PLATFORMS); do \
		echo "$$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0 $(GO) build -trimpath -o /dev/null ./cmd/taskforce && \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) vet ./... || exit 1; \
	done
