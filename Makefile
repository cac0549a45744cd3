# `make run` does the main job from a fresh clone; `make test` passes all tests. Both set everything up first.
SHELL := /bin/bash
UV_VERSION := 0.13.8
UV := .tools/bin/uv
PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help run build test lint test-engine test-lab bench schemas clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

run: build ## Measure hyper against axum on this machine and write a report
	.venv/bin/redline run suites/quickstart.yaml

build: $(UV) ## Set up .venv with the lab and the engine
	@$(UV) sync --frozen --quiet || { $(UV) sync --frozen; exit 1; }

$(UV):
	@scripts/check-tools
	@python3 -m venv .tools
	@.tools/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

test: lint test-engine test-lab ## All tests: lint, engine, lab

lint: build ## Formatting, lint, types and the walls between the rooms
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	cd engine && cargo fmt --all --check && cargo clippy --locked --all-targets --quiet -- -D warnings
	cd catalogue/rust && cargo fmt --all --check && cargo clippy --locked --all-targets --quiet -- -D warnings

test-engine: build ## The engine's own tests
	cd engine && cargo test --locked --quiet

test-lab: build ## The lab's tests, with real servers on loopback
	.venv/bin/pytest

bench: build ## Redline measured against its peers
	$(PY) bench/engine_vs_wrk.py
	$(PY) bench/oracle_table.py

clean: ## Remove everything that was built; runs stay
	rm -rf .venv .tools .cache engine/target catalogue/*/target
