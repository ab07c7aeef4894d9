# The targets below are what is typed here day by day. CI runs .ci/run, which does all of it.
.DEFAULT_GOAL := help
.PHONY: help build package test race fmt lint api fuzz soak proof mutants bench bench-engines bench-server bench-ids bench-availability bench-page bench-shards versions engines engines-down examples tidy ci clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build everything, and the command into bin/
	go build work
	go build -o bin/leasehold ./cmd/leasehold

PACKAGE ?= archive
package: ## make one archive for this machine in dist/; PACKAGE=deb, rpm for another form; LITE=1 for the light build, in half the time
	scripts/package v0.0.0-local --here $(if $(LITE),--programs leasehold-lite) --only $(PACKAGE) --into dist

test: ## run every test of every module
	scripts/test

race: ## run the tests of the core under the race detector
	go test -race ./... ./store/file/...

fmt: ## format every file
	gofmt -w .

lint: ## lint every module (installs the pinned golangci-lint outside the checkout)
	scripts/lint

api: ## write what the public packages export into api/; scripts/api check compares
	scripts/api

fuzz: ## fuzz every target for a minute
	scripts/fuzz 1m

soak: ## 50 processes, 5 minutes of kills, stops and breaks on one store; SOAK="-duration 1h" for more
	go run ./internal/proof/soak $(SOAK)

versions: ## run earlier versions beside this one on a file, etcd and PostgreSQL; VERSIONS="--for 10m" for more
	scripts/versions $(VERSIONS)

proof: ## 100,000 simulated seeds, 11 million states, every seeded bug; writes docs/proof.md
	scripts/proof

mutants: ## mutate the packages that safety depends on, and list what no test notices, in docs/proof.md
	scripts/mutants

bench: ## measure, and write the figures into docs/benchmarks.md
	scripts/bench

bench-engines: ## measure the engines beside their own recipes; writes docs/benchmarks-engines.md
	scripts/bench-engines

bench-server: ## measure the lock server beside RDLM, etcd and Redis; writes docs/benchmarks-server.md
	scripts/bench-server

bench-ids: ## measure ids beside other libraries; writes docs/benchmarks-ids.md
	scripts/bench-ids

bench-availability: ## measure for how long nobody leads, beside other elections; writes docs/benchmarks-availability.md
	scripts/bench-availability

bench-page: ## measure the lock server's page with 10,000 names in Chromium, against its bounds
	scripts/bench-page

bench-shards: ## measure how shards are balanced, beside others; writes docs/benchmarks-shard.md
	scripts/bench-shards

engines: ## install the servers that engines are tested against, bring them up, and print how to reach them
	scripts/engines install
	scripts/engines up

engines-down: ## stop them
	scripts/engines down

examples: ## run every example
	go run ./examples/embedded
	go run ./examples/admiral-dr
	go run ./examples/fencing-http
	go run ./examples/fencing-grpc
	go run ./examples/fencing-sql
	go run ./examples/multicluster

tidy: ## tidy every module
	scripts/tidy

ci: ## all that CI runs
	.ci/run

clean: ## remove what was built here
	rm -rf bin
