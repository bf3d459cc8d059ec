# make demo   set up and diagnose a small simulated run      make test    set up and run all tests
# make check  format, lint, types and tests                  make clean   remove what these made
# make score  simulate a few hundred runs, diagnose them, print how often that is right (RUNS=, SEED=, JOBS=, ONLY=family)

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CODE   := diagnoser traces heuristics reports tests

RUNS   := 300
SEED   := 5000
JOBS   := 2
ONLY   :=

.PHONY: demo test lint check score format clean

demo: $(VENV)/installed
	$(BIN)/moe-diag demo

test: $(VENV)/installed-test
	$(BIN)/python -m pytest

lint: $(VENV)/installed-test
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)

check: lint test

score: $(VENV)/installed-test
	$(BIN)/python -m tests.score --runs $(RUNS) --seed $(SEED) --jobs $(JOBS) $(if $(ONLY),--only "$(ONLY)")

format: $(VENV)/installed-test
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "moe-diag needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { echo "venv is missing: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }

$(VENV)/installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/installed-test: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
