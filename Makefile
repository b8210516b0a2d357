# The targets that README.md and CONTRIBUTING.md speak of.

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

.PHONY: build
build: ## the static binary, bin/taskforce
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o bin/taskforce ./cmd/taskforce

.PHONY: generate
generate: ## everything that derives from package schema
	$(GO) run ./clients/gen
