# `make run` measures from a fresh clone; `make test` runs the tests. Both set everything up first.
SHELL := /bin/bash
# Compile the lab's own modules once, even if that was switched off: it would cost half a second at every start.
unexport PYTHONDONTWRITEBYTECODE
UV_VERSION := 0.13.8
UV := .tools/bin/uv
UV_STAMP := .tools/uv-$(UV_VERSION)
PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help run build dist docs test test-all lint compile lint-lab lint-engine lint-catalogue compile-engine-tests test-engine test-sanitizers test-lab fuzz bench budgets clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

run: build ## Measure hyper against axum on this machine and write a report
	.venv/bin/redline run suites/quickstart.yaml

build: $(UV_STAMP) ## Set up .venv with the lab and the engine
	@python=$$(scripts/check-tools --python) && sync="$(UV) sync --frozen $(EXTRAS) --python $$python" && \
		{ $$sync --quiet || { $$sync; exit 1; }; }

$(UV_STAMP):
	@python=$$(scripts/check-tools --python) && rm -rf .tools && $$python -m venv .tools
	@.tools/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

dist: $(UV_STAMP) ## Build the wheels of the lab and the engine into dist/: the same bytes from the same commit
	@python=$$(scripts/check-tools --python) && \
		UV_PROJECT_ENVIRONMENT=.tools/dist $(UV) sync --frozen --quiet --only-group dist --python $$python
	scripts/dist

# The checkout is the source folder: README is the start page, and links are the same as on GitHub. Warnings are errors.
docs: build ## Build the documentation as a site in .cache/docs, without a network
	.venv/bin/sphinx-build --quiet --jobs auto --fail-on-warning --keep-going --conf-dir docs/site \
		--doctree-dir .cache/doctrees . .cache/docs
	@echo 'The site begins with .cache/docs/index.html'

test: compile test-engine test-lab ## What every change has to pass; fuzzing is apart, since it compiles long

test-all: HYPOTHESIS = --hypothesis-profile=long
test-all: TESTS = long or not long
test-all: FUZZ_SECONDS = 60
test-all: EPOLL_TESTS =
# Exported, or the makes that `compile` starts would set .venv up again without Ray.
test-all: export EXTRAS = --extra ray
test-all: compile test-engine test-sanitizers test-lab fuzz ## All tests: also long ones, JVM servers, documented commands, provoked findings

PARALLEL = @$(MAKE) --no-print-directory --jobs=2 --output-sync=target
lint: build ## Formatting, lint, types and import rules
	$(PARALLEL) lint-engine lint-lab lint-catalogue

# All that only needs cores, at once: what runs later measures time.
compile: build
	$(PARALLEL) compile-engine-tests lint-lab lint-catalogue

lint-lab: build
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

lint-engine: build
	cd engine && cargo fmt --all --check && cargo clippy --locked --all-targets --all-features --quiet -- -D warnings
	cd engine/fuzz && cargo fmt --check && cargo tree --locked --quiet >/dev/null

# Clippy in place of rustc here too, with the command that builds these servers: what they depend on is compiled once.
CATALOGUE ?= --bin hyper --bin axum
lint test-all: export CATALOGUE = --all-targets --all-features
lint-catalogue: build
	cd catalogue/rust && cargo fmt --all --check && $(CLIPPY) cargo build --release --locked --quiet $(CATALOGUE)

# Clippy in place of rustc, for the engine's own crates: a `cargo clippy` beside the tests would compile all dependencies
# once more, and use them for nothing else. The engine that is installed never comes from here.
CLIPPY = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
compile-engine-tests: build
	cd engine && cargo fmt --all --check && $(CLIPPY) cargo test --locked --quiet --no-run
	cd engine/fuzz && cargo fmt --check && cargo tree --locked --quiet >/dev/null

# With epoll, `make test` runs what drives sockets most; test-all runs everything. Most tests wait for a load to end, so
# more of them run at a time than there are cores.
EPOLL_TESTS = answers pipelines pools streams
CARGO_TEST = ../scripts/patiently cargo test --locked --quiet --no-fail-fast
test-engine: export RUST_TEST_THREADS = 4
test-engine: build ## The engine's own tests
	cd engine && $(CLIPPY) $(CARGO_TEST) --
	cd engine && $(CLIPPY) REDLINE_TEST_BACKEND=epoll $(CARGO_TEST) --package redline-engine --test engine -- $(EPOLL_TESTS)

test-sanitizers: build ## The engine's tests under AddressSanitizer: its own code and that of nghttp2
	scripts/sanitize

# Of property tests few examples, and of tests those that are not marked `long`: test-all runs everything.
HYPOTHESIS = --hypothesis-profile=redline
TESTS = not long
PYTEST_E2E = .venv/bin/pytest tests/e2e
# The tests with a mark, by the files that name it: to import all the others takes as long as many a test.
PYTEST_MARKED = .venv/bin/pytest $$(grep -l 'pytest.mark.$(1)' tests/e2e/test_*.py) -m '$(1) and ($(TESTS))'

# The truth tests measure the machine's noise and judge by that; they run again only where the hypervisor took CPU time.
# All other end-to-end tests may also fail where the tests beside them take the cores. Most of their time they wait, for loads
# and starts of servers, so more of them run at a time than there are cores.
test-lab: build ## The lab's tests, with real servers on loopback
	.venv/bin/pytest tests/unit -n 2 --dist worksteal -m '$(TESTS)' $(HYPOTHESIS) --junitxml=.cache/tests-unit.xml
	scripts/patiently $(call PYTEST_MARKED,truth)
	scripts/patiently $(PYTEST_E2E) -m 'not alone and not truth and ($(TESTS))' -n 5 --dist worksteal \
		--junitxml=.cache/tests-e2e.xml
	scripts/patiently $(call PYTEST_MARKED,alone)

FUZZ_SECONDS = 5
fuzz: ## Fuzz the readers of network bytes for a few seconds; `scripts/fuzz 3600` by hand
	scripts/fuzz $(FUZZ_SECONDS)

bench: build ## Redline against its peers: half an hour; needs a machine that does nothing else
	$(PY) -m bench.cost
	PATH="$${REDLINE_PEERS:+$$REDLINE_PEERS:}$$PATH" .venv/bin/redline selftest --peers

budgets: build ## What the parts cost, each beside its bound: some minutes
	$(PY) -m bench.budgets

clean: ## Remove everything that was built; runs stay
	rm -rf .venv .tools .cache dist engine/target engine/fuzz/target
	rm -rf catalogue/*/out catalogue/scala/.bsp catalogue/scala/project/project
	find catalogue -type d -name target -prune -exec rm -rf {} +
