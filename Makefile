# The words people expect; the work is in .ci/run, which runs the same steps for everybody.
.DEFAULT_GOAL := help
.PHONY: help test lint race bench bench-quick fuzz examples ci

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## every test of the root module
	go test ./...

lint: ## formatters, go vet and golangci-lint on every module
	bash .ci/run fmt vet lint

race: ## every test under the race detector, shuffled
	bash .ci/run race

bench: ## all measurements beside the other libraries, half an hour; writes bench/RESULTS.md
	bash .ci/run bench

bench-quick: ## the same at a glance, within a minute; writes nothing
	bash bench/peers/run quick

fuzz: ## every fuzz target for a short while
	bash .ci/run fuzz

examples: ## run the quick start
	bash .ci/run examples

ci: ## everything that has to be green
	bash .ci/run
