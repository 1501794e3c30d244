# The same targets serve a newcomer, a contributor and CI (.ci/run). `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q -c constraints.txt
PLUGINS := $(foreach plugin,$(wildcard plugins/*/pyproject.toml),-e $(dir $(plugin)))
OUT ?= runs/demo
SEED ?= 0

.PHONY: help demo test fast lint docs registry system install benchmarks clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.demo  ## train the tiny model on NumberLine by VL-DAC and plot its learning curve (under 6 minutes on 2 cores)
	$(BIN)/python -m baselines.vldac --env vlgym/NumberLine-v0 --seed $(SEED) --out $(OUT)

test: install system  ## install everything, check the registry, and run the whole test suite
	$(BIN)/vlgym registry check
	$(BIN)/python -m pytest -n 2 --dist loadgroup tests plugins

fast: install  ## the core's tests only (under 60 s)
	$(BIN)/python -m pytest -n 2 tests --ignore tests/baselines

lint: install  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy vlgym baselines plugins/*/src/vlgym_*

docs: install  ## regenerate the pages that are made from the code
	$(BIN)/python docs/generate.py

registry: install system  ## measure every first-party environment and rewrite registry.yaml
	$(BIN)/vlgym registry write

benchmarks: install system  ## rerun the benchmarks and rewrite docs/benchmarks/
	for script in tests/benchmarks/*.py; do $(BIN)/python $$script --write || exit 1; done

system: install  ## install the Debian packages that the plugins need, or name them
	@packages="$$($(BIN)/vlgym doctor --apt)"; \
	if [ -z "$$packages" ]; then echo "system packages: complete"; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update -q && apt-get install -q -y --no-install-recommends $$packages; \
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo apt-get update -q && sudo apt-get install -q -y --no-install-recommends $$packages; \
	else echo "missing system packages, ask an administrator: apt-get install $$packages" >&2; exit 1; fi
	$(BIN)/python -m vlgym_football.build  # about 8 CPU minutes once; later calls reuse the wheel in the user's cache

install: $(VENV)/.test  ## make .venv with all plugins, the learner and the test tools

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "vlgym needs Python 3.11 or newer; name one with: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --disable-pip-version-check install -q 'pip>=25.1'  # dependency groups

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt plugins/cards/pyproject.toml
	$(PIP) torch
	$(PIP) -e '.[train]' -e plugins/cards
	@touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml constraints.txt $(wildcard plugins/*/pyproject.toml)
	$(PIP) torch
	$(PIP) -e '.[train]' $(PLUGINS) --group test --group lint
	@touch $@ $(VENV)/.demo

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) build .pytest_cache .ruff_cache .mypy_cache .hypothesis
