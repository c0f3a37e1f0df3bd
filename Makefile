# `make` lists what can be made. Everything happens in $(VENV), which the targets make themselves.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-rsl-rl lint format types check bench results readme clean

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP_INSTALL) -e '.[dev]'
	@touch $@

demo: $(VENV)/.core ## Train task-only and ConsMimic on Franka-Reach, evaluate both, write a report (minutes)
	$(BIN)/consmimic reproduce Franka-Reach --seeds 1 --alphas 0.9 --style-weights --output report/demo

test: $(VENV)/.dev ## Fast tests, complete for logic
	$(BIN)/python -m pytest -m 'not slow'

test-slow: $(VENV)/.dev ## Tests that train for real, and the other supported rsl_rl versions
	$(BIN)/python -m pytest -m slow

test-rsl-rl: $(VENV)/.dev ## The learner's tests on every supported rsl_rl
	$(BIN)/python -m pytest -m slow tests/test_rsl_rl_versions.py

lint: $(VENV)/.dev ## Ruff: mistakes and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev ## Ruff: mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev ## Pyright
	$(BIN)/pyright --pythonpath $(BIN)/python

check: lint types test ## All that a change must pass

bench: $(VENV)/.core ## Speed of environment and training on this machine
	$(BIN)/consmimic bench

results: $(VENV)/.core ## The paper's comparison on Franka-Reach: 5 seeds of 6 methods (goes on where it stopped)
	$(BIN)/consmimic reproduce Franka-Reach --seeds 5

readme: $(VENV)/.core ## Write the tables of published results into the README
	$(BIN)/python scripts/update_readme.py

clean: ## Remove the environment and caches; runs and results stay
	rm -rf $(VENV) .pytest_cache .ruff_cache build dist src/*.egg-info
