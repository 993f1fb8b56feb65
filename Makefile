# Python 3.11 or later and make are all that has to be there beforehand.
# `make` alone lists the targets.

VENV := .venv
BIN := $(VENV)/bin
HOST ?= 127.0.0.1
PORT ?= 8000
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)
# Passed on to pytest: make test ARGS='tests/protocol -x'
ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test parts check lint types imports sizes obligations-check obligations format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Each stamp is older than pyproject.toml when its step has to run again.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "twolane needs Python 3.11 or later: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# --group needs pip 25.1, and a new environment has the pip of its Python.
$(VENV)/.stamp-pip: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.stamp-serve: pyproject.toml | $(VENV)/.stamp-pip
	$(BIN)/python -m pip install --quiet --editable '.[serve]'
	@touch $@

$(VENV)/.stamp-dev: pyproject.toml | $(VENV)/.stamp-pip
	$(BIN)/python -m pip install --quiet --group dev --editable '.[serve,otel]'
	@touch $(VENV)/.stamp-serve $@

install: $(VENV)/.stamp-dev ## Install everything for development into .venv

demo: $(VENV)/.stamp-serve ## Serve examples/hello.py on 127.0.0.1:8000, in the foreground
	@exec scripts/demo.sh $(HOST) $(PORT)

test: install parts ## Install what the tests need and run all of them
	$(BIN)/python -m pytest $(ARGS)

parts:
	@scripts/system_parts.sh

check: lint types imports sizes obligations-check ## Lint, types, import contracts, file sizes, obligations

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy src $(wildcard examples/*.py scripts/*.py)

imports: install
	$(BIN)/lint-imports

sizes: install
	$(BIN)/python scripts/check_sizes.py

obligations-check: install
	$(BIN)/python scripts/obligations.py --check

obligations: install ## Write docs/obligations.md anew from the tests
	$(BIN)/python scripts/obligations.py --write

format: install ## Format the code and apply safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove .venv, .parts and every cache
	rm -rf $(VENV) .parts build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests examples scripts -name __pycache__ -type d -prune -exec rm -rf {} +
