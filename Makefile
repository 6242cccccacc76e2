# The words people expect; the work is in .ci/run, which runs the same steps for everybody.
.DEFAULT_GOAL := help
.PHONY: help test lint race bench fuzz examples ci

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## every test of the root module
	go test ./...

lint: ## formatters, go vet and golangci-lint on every module
	bash .ci/run fmt vet lint

race: ## every test under the race detector, shuffled
	bash .ci/run race

bench: ## benchmarks; against the other libraries if bench/peers is there
	bash .ci/run bench

fuzz: ## every fuzz target for a short while
	bash .ci/run fuzz

examples: ## run the quick start
	bash .ci/run examples

ci: ## everything that has to be green
	bash .ci/run
