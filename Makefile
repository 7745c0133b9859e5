# Everything a developer types. Needs Go, git, GNU make 4 and bash.

# The release of Go that this tree is made for; an older `go` fetches it by
# itself. A GOTOOLCHAIN of exactly "local", as container images of Go set it,
# would forbid that, and the older `go` would refuse to build; so in the
# environment it counts as not set. `make GOTOOLCHAIN=local` still insists.
ifeq ($(origin GOTOOLCHAIN) $(GOTOOLCHAIN),environment local)
undefine GOTOOLCHAIN
endif
export GOTOOLCHAIN ?= go1.27.3

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PREFIX   ?= /usr/local
FUZZTIME ?= 1m

PROGRAMS := $(sort $(notdir $(patsubst %/,%,$(dir $(wildcard cmd/*/*.go)))))
MODULES  := . internal/tools

# Where tests find age, cosign, oras and versitygw, see internal/testkit/tools.go.
export PACKHOF_TOOLS := $(CURDIR)/build/tools

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## the programs, into build/bin
	mkdir -p build/bin
	CGO_ENABLED=0 go build -trimpath -ldflags '-X main.version=$(VERSION)' -o build/bin/ $(PROGRAMS:%=./cmd/%)

# packhof-scan is run by the others and has no page of its own.
DOCUMENTED = $(filter packhof packhof-gate,$(PROGRAMS))
SHARE      = $(DESTDIR)$(PREFIX)/share

.PHONY: install
install: build ## programs, man pages and shell completions, below PREFIX (and DESTDIR)
	install -d '$(DESTDIR)$(PREFIX)/bin'
	for program in $(PROGRAMS); do
	    install -m 0755 "build/bin/$$program" '$(DESTDIR)$(PREFIX)/bin/'
	done
	for program in $(DOCUMENTED); do
	    run="build/bin/$$program"
	    if "$$run" man --help </dev/null >/dev/null 2>&1; then
	        install -d '$(SHARE)/man/man1'
	        "$$run" man --to '$(SHARE)/man/man1'
	    fi
	    if "$$run" completion --help </dev/null >/dev/null 2>&1; then
	        install -d '$(SHARE)/bash-completion/completions' '$(SHARE)/zsh/site-functions' '$(SHARE)/fish/vendor_completions.d'
	        "$$run" completion bash >"$(SHARE)/bash-completion/completions/$$program"
	        "$$run" completion zsh >"$(SHARE)/zsh/site-functions/_$$program"
	        "$$run" completion fish >"$(SHARE)/fish/vendor_completions.d/$$program.fish"
	    fi
	done

# Packages that link these, themselves or in their tests, are tested without
# the race detector, which makes them need more memory and time than most
# machines have.
HEAVY := github[.]com/anchore/(syft|grype)|github[.]com/sigstore/cosign

# A line of `go list -test` is a package, or its test program "….test"; those
# with a bracket in second place are copies compiled for such a program.
.PHONY: test
test: system-programs build/tools/age build/tools/cosign build/tools/oras build/tools/versitygw build/tools/conformance ## install what the tests need, then run all of them
	heavy=$$(go list -test -f '{{.ImportPath}} {{join .Deps " "}}' ./... |
	    awk '$$2 !~ /^\[/ && $$0 ~ " ($(HEAVY))/" { sub(/[.]test$$/, "", $$1); print $$1 }' | sort -u)
	light=$$(go list ./... | grep -vxF "$${heavy:-none}" || true)
	export PACKHOF_REQUIRE_TOOLS=1
	failed=0
	go test -race -timeout 30m $$light || failed=1
	go test -timeout 10m -run '^TestKilled' ./gate || failed=1 # all of them: the race detector sees nothing of what is killed
	go test -timeout 10m -run '^TestEveryFlipped' ./bundle || failed=1 # every byte: the race detector makes it too slow
	go test -timeout 10m -run '^TestMany' ./cmd/packhof-gate || failed=1 # measures memory, which the race detector multiplies
	if [ -n "$$heavy" ]; then go test -timeout 30m $$heavy || failed=1; fi
	exit $$failed

.PHONY: test-fast
test-fast: ## run the short tests; those whose programs are missing are skipped
	go test -short ./...

# Time, exit and the standard streams belong to the programs: everything else
# is told the time and given its streams, so that it can be tested.
PROGRAM_ROOMS := ./cmd ./internal/cli ./internal/demo ./internal/bench

# The gate must do everything in a plant that has no network at all.
GATE_PACKAGES := ./gate/... ./policy/... ./sbom/inspect ./web ./cmd/packhof-gate

.PHONY: test-offline
test-offline: system-programs build/tools/age build/tools/cosign build/tools/oras build/tools/versitygw build/tools/conformance ## the tests of the gate in a network namespace without a route
	PACKHOF_REQUIRE_TOOLS=1 GOPROXY=off unshare -rn sh -c 'ip link set lo up && exec go test $(GATE_PACKAGES)'

.PHONY: lint
lint: build/tools/staticcheck ## formatting, vet, staticcheck and the house rules
	@failed=0
	complain() { if [ -n "$$2" ]; then printf '%s:\n%s\n' "$$1" "$$2" >&2; failed=1; fi; }
	sources=$$(find . -name '*.go' -not -path './build/*' -not -path '*/testdata/*')
	rooms=$$(grep -v $(PROGRAM_ROOMS:%=-e '^%/') -e '_test[.]go$$' <<<"$$sources" || true)
	complain 'not formatted (gofmt -w)' "$$(xargs "$$(go env GOROOT)/bin/gofmt" -l <<<"$$sources")"
	complain 'unfinished work' "$$(xargs grep -nHE '\b(TODO|FIXME)\b' <<<"$$sources" || true)"
	complain 'init functions' "$$(xargs grep -nHE '^func init\(' <<<"$$sources" || true)"
	complain 'only for cmd and internal/cli' "$$(xargs -r grep -nHE '\b(time[.]Now|os[.](Exit|Stdout|Stderr))\b' <<<"$$rooms" | grep -vE '^[^:]*:[0-9]+:\s*//' || true)"
	for module in $(MODULES); do
	    echo "vet and staticcheck: $$module"
	    (cd "$$module" && go vet ./... && '$(PACKHOF_TOOLS)/staticcheck' ./...) || failed=1
	done
	exit $$failed

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME, a minute unless told otherwise
	grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort | while IFS=: read -r file _ target; do
	    go test -run '^$$' -fuzz "^$${target#func }$$" -fuzztime $(FUZZTIME) "$${file%/*}"
	done

.PHONY: bench
bench: build system-programs ## measure against public tools, into docs/performance.md
	go run ./internal/bench -write docs/performance.md

.PHONY: demo
demo: system-programs ## real artifacts from a registry over a disk into a plant, on this machine (V=1 shows all)
	@echo 'building the programs (minutes the first time, seconds later)'
	$(MAKE) --no-print-directory -s build build/tools/cosign
	go run ./internal/demo $(if $(V),-v)

.PHONY: clean
clean: ## remove build/
	rm -rf build

# What the tests need of the distribution, as program:package,package.
SYSTEM_PROGRAMS := skopeo:skopeo curl:curl chromium:chromium openssl:openssl taskset:util-linux unshare:util-linux ip:iproute2 tar:tar sha256sum:coreutils gcc:gcc,libc6-dev

.PHONY: system-programs
system-programs:
	@missing=
	for need in $(SYSTEM_PROGRAMS); do
	    command -v "$${need%%:*}" >/dev/null || missing+=" $${need#*:}"
	done
	if [ -z "$$missing" ]; then exit 0; fi
	missing=$${missing//,/ }
	sudo=
	if [ "$$(id -u)" != 0 ]; then sudo=sudo; fi
	if ! command -v apt-get >/dev/null || { [ -n "$$sudo" ] && ! command -v sudo >/dev/null; }; then
	    echo "The tests need programs of these Debian packages; install them and try again:$$missing" >&2
	    exit 1
	fi
	echo "Installing for the tests:$$missing"
	$$sudo apt-get update -q
	DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -q -y --no-install-recommends $$missing

build/tools/%: internal/tools/go.mod internal/tools/go.sum
	@mkdir -p build/tools
	(cd internal/tools && go build -trimpath -o '$(PACKHOF_TOOLS)/' "$$(go list tool | grep '/$*$$')")
	@touch $@ # a binary that did not change keeps its old date

.ONESHELL:
