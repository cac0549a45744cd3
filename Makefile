# `make run` measures from a fresh clone; `make test` runs the tests. Both set everything up first.
SHELL := /bin/bash
# Compile the lab's own modules once, even if that was switched off: it would cost half a second at every start.
unexport PYTHONDONTWRITEBYTECODE
UV_VERSION := 0.13.8
UV := .tools/bin/uv
UV_STAMP := .tools/uv-$(UV_VERSION)
PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help run build test lint lint-lab lint-engine test-engine test-lab test-slow fuzz bench clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

run: build ## Measure hyper against axum on this machine and write a report
	.venv/bin/redline run suites/quickstart.yaml

build: $(UV_STAMP) ## Set up .venv with the lab and the engine
	@python=$$(scripts/check-tools --python) && sync="$(UV) sync --frozen --python $$python" && \
		{ $$sync --quiet || { $$sync; exit 1; }; }

$(UV_STAMP):
	@python=$$(scripts/check-tools --python) && rm -rf .tools && $$python -m venv .tools
	@.tools/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

test: lint test-engine test-lab fuzz ## The tests: lint, engine, lab, a short fuzzing

lint: build ## Formatting, lint, types and import rules
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint-lab lint-engine

lint-lab: build
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

lint-engine: build
	cd engine && cargo fmt --all --check && cargo clippy --locked --all-targets --quiet -- -D warnings
	cd engine/fuzz && cargo fmt --check
	cd catalogue/rust && cargo fmt --all --check && cargo clippy --locked --all-targets --quiet -- -D warnings

test-engine: build ## The engine's tests
	cd engine && ../scripts/patiently cargo test --locked --quiet
	cd engine && REDLINE_TEST_BACKEND=epoll ../scripts/patiently cargo test --locked --quiet --package redline-engine

fuzz: ## Fuzz the readers of network bytes: 10 s a target; `scripts/fuzz 3600` by hand
	scripts/fuzz 10

test-lab: build ## The lab's tests, with real servers on loopback
	scripts/patiently .venv/bin/pytest tests/unit -n 2
	scripts/patiently .venv/bin/pytest tests/e2e -m 'together and not slow' -n 2 --dist loadfile
	scripts/patiently .venv/bin/pytest tests/e2e -m 'not together and not slow'

test-slow: build ## What `test` leaves out: the servers that sbt builds, and the study of them
	scripts/patiently .venv/bin/pytest tests/e2e -m slow

bench: build ## Redline against its peers: half an hour; needs a machine that does nothing else
	$(PY) -m bench.cost
	PATH="$${REDLINE_PEERS:+$$REDLINE_PEERS:}$$PATH" .venv/bin/redline selftest --peers

clean: ## Remove everything that was built; runs stay
	rm -rf .venv .tools .cache engine/target engine/fuzz/target
	rm -rf catalogue/scala/out catalogue/scala/.bsp catalogue/scala/project/project
	find catalogue -type d -name target -prune -exec rm -rf {} +
