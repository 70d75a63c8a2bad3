# The checks and the two commands of the README. Each target says what it does; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
BIN := .venv/bin
export PATH := $(abspath $(BIN)):$(PATH)
# STRICT=1: what this host cannot run is a failure instead of a line in the report.
export STRICT
# A cluster of the user's own is used only when its kubeconfig is given on the command line: make test-integration
# KUBECONFIG=path. One that merely happens to be in the environment is left alone.
ifeq ($(origin KUBECONFIG),command line)
export LAB_KUBECONFIG := $(KUBECONFIG)
endif
unexport KUBECONFIG
unexport MAKEFLAGS

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up ---------------------------------------------------------------------------------------------------------
.PHONY: setup
setup: .venv/ready ## a .venv with the tools and this collection in it

.venv/ready: requirements.txt tests/requirements.txt tests/setup.sh tests/lab/pyproject.toml
	@tests/setup.sh
	@touch $@

# --- the product's main job -----------------------------------------------------------------------------------------
.PHONY: demo
demo: setup ## two cells, two computes and a server on each, in the lab (SOURCE=manifests or cluster)
	@$(BIN)/edpm-lab demo --source $(or $(SOURCE),manifests)

# --- checks ---------------------------------------------------------------------------------------------------------
.PHONY: lint lint-python lint-imports lint-ansible lint-sanity lint-docs lint-galaxy
lint: lint-python lint-imports lint-ansible lint-docs lint-sanity lint-galaxy ## every static check

lint-python: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	tests/lint/typed

lint-imports: setup
	$(BIN)/lint-imports --no-cache

lint-ansible: setup
	$(BIN)/ansible-lint

lint-docs: setup
	$(BIN)/antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs=all .
	$(BIN)/antsibull-changelog lint
	$(BIN)/python tests/lint/role_readmes.py --check

lint-sanity: setup
	$(BIN)/python tests/lint/sanity

lint-galaxy: setup
	tests/lint/galaxy

.PHONY: test-unit test-integration test-molecule test-e2e test-hosts
test-unit: setup ## rules without a cluster or a node
	$(BIN)/pytest tests/unit

test-integration: setup ## a real API server
	$(BIN)/python -m tests.run_pytest tests/integration

test-molecule: setup ## the roles' scenarios
	tests/molecule

test-e2e: setup ## nodes, service images and a cluster that runs pods
	$(BIN)/python -m tests.run_pytest tests/e2e

test-hosts: setup ## emulated machines with AppArmor, SELinux and volumes, libvirt's modular daemons, firewalld: no part of `make test`
	$(BIN)/pytest --durations=15 tests/hosts

.PHONY: test
test: setup ## every check (STRICT=1: a check that cannot run here is a failure)
	@$(BIN)/python -m tests.run_checks

.PHONY: bench
bench: setup ## how fast, as ratios inside one run; writes build/bench.json
	$(BIN)/python -m tests.benchmark.bench

# --- the lab --------------------------------------------------------------------------------------------------------
.PHONY: lab clean distclean
lab: setup ## leave a lab running (NODES=2) and say how to use it
	@$(BIN)/edpm-lab up $(or $(NODES),2) --cluster

clean: ## remove every trace: containers, networks, volumes, processes, build results
	@if [ -x $(BIN)/edpm-lab ]; then $(BIN)/edpm-lab clean; fi
	rm -rf build .ansible .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: ## clean, and remove the cache of built things and .venv too
	@if [ -x $(BIN)/edpm-lab ]; then $(BIN)/edpm-lab clean --cache; fi
	@$(MAKE) clean
	rm -rf .venv

# --- documentation --------------------------------------------------------------------------------------------------
.PHONY: docs
docs: setup ## the site, in build/docs/html
	docs/build
