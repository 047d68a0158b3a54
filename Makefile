# Everything runs from .venv, which the first target that needs it creates. Stamp files inside it record what is
# installed; they are older than pyproject.toml when the dependencies may have changed.
PYTHON ?= python3
PYTEST_ARGS ?= -n auto

VENV := .venv
RUN := $(VENV)/bin/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check
CORE := $(VENV)/.stamp-core
EXTRAS := demo test check bench

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-all check format bench fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.stamp-demo ## install, then compile, check and time a model and four programs
	$(RUN) -m dovetail.demo

test: $(VENV)/.stamp-test ## run every test but the slow ones
	$(RUN) -m pytest $(PYTEST_ARGS)

test-all: $(VENV)/.stamp-test ## run every test
	$(RUN) -m pytest $(PYTEST_ARGS) -m "slow or not slow"

check: $(VENV)/.stamp-test $(VENV)/.stamp-check ## formatting, lint, types, import layers
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

format: $(VENV)/.stamp-check ## format, and apply the safe lint fixes
	$(RUN) -m ruff check --fix-only .
	$(RUN) -m ruff format .

bench: $(VENV)/.stamp-bench ## install the peers and run all benchmarks
	$(RUN) -m benchmarks.run_all

fuzz: $(VENV)/.stamp-test ## compile 10,000 random models and compare each with the reference
	$(RUN) -m tests.random_models --count 10000

clean: ## remove caches and build outputs, keep .venv
	rm -rf build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +

$(CORE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: '$(PYTHON)' is missing or older than Python 3.11; try: make PYTHON=python3.12" >&2; exit 2; }
	test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@

$(EXTRAS:%=$(VENV)/.stamp-%): $(VENV)/.stamp-%: $(CORE)
	$(INSTALL) --editable '.[$*]'
	touch $@
