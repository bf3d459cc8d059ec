# make demo   set up and diagnose a small simulated run      make test    set up and run the tests of the product
# make check  format, lint, types and every test there is    make clean   remove what these made
# make quick  the tests that take no seconds: an answer within a minute on two cores
# make fuzz   mutated inputs for every reader, then property tests with new examples, for some minutes (MINUTES=, JOBS=)
# make test-megatron  the tests that ask megatron-core, in an environment of their own with it and PyTorch (1 GB); where
#             there is a Python 3.12, the releases that need it as well, in one more (5.2 GB)
# make coverage  the tests of the product once more, and which lines and branches none of them reaches (20 minutes)
# make release-check  try the wheel in empty environments: by each Python there is, with the oldest dependencies (5 minutes)
# make score  the tests of the simulators and of the scores; then simulate a few hundred runs, diagnose them, and print how often
#             that is right (RUNS=, SEED=, JOBS=, ONLY=family); the same of runs of several ranks (RANKS_SEEDS=first:end)
# make score-compare  simulate pairs with known causes, compare them, print how often that is right (PAIRS_SEED=, JOBS=, ONLY=);
#             then the loop: recorded by capture's line, analyzed, changed, recorded again, compared (LOOP_SEED=)
# make closure  apply the cures and plans of thousands of random configurations and judge them again (CLOSURE_RUNS=, JOBS=)
# make bench  measure work and memory beside other programs, side by side, as tables (some GB in ~/.cache/moe-diag-bench;
#             BENCH_LARGE=1 for 5 M and 20 M kernels; ROUNDS=); then 256 traces on a cluster that loses a worker
# make mutate  small wrong lines drawn on a seed, each judged by the tests that could see it: a figure a folder, and what no test
#             sees as a patch (FOLDERS=, COUNT= of each, MUTANTS_SEED=; an hour, and 20 minutes once to learn what each test runs)
# make currency WHEELS="A.whl B.whl"  what of a new Megatron-Core and Megatron-Bridge our tables do not know, by reading them;
#             once it is in the tables, READ=--read keeps that their refusals and presets were read
# make site   write the documentation as a site into site/, offline once its tools are installed: open site/index.html
# make faults  kill real runs at random moments and before every step on the disk, leave them no room, start eight at once on
#             one cache (KILLS= of each of seven jobs; exports with nsys and reports in MOE_DIAG_TRACES)

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
MEGATRON := .venv-megatron
CORES  := .venv-megatron-3.12
CODE   := moe_diag diagnoser traces heuristics reports tests bench conftest.py
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
SCORES := bench/simulate bench/third bench/score bench/compare_score
# What make check alone runs; CONTRIBUTING.md says of which kinds they are.
LONG   := $(shell cat tests/data/long_files.txt)
PRODUCT := tests $(LONG:%=--ignore=%)

# Compiled tests are kept: to compile them anew takes each process several seconds.
export PYTHONDONTWRITEBYTECODE :=

RUNS   := 300
SEED   := 5000
PAIRS_SEED := 20000000
LOOP_SEED := 60000000
RANKS_SEEDS := 5000:5012
JOBS   := 2
MINUTES := 10
ROUNDS := 5
KILLS  := 150
CLOSURE_RUNS := 10000
FOLDERS :=
COUNT := 60
MUTANTS_SEED := 1
ONLY   :=
WHEELS :=
READ   :=

.PHONY: demo test quick fuzz test-megatron release-check coverage mutate lint check score score-compare closure currency bench faults site format clean

demo: $(VENV)/installed
	$(BIN)/moe-diag demo

test: $(VENV)/installed-test
	$(PYTEST) $(PRODUCT)

quick: $(VENV)/installed-test
	$(PYTEST) $(PRODUCT) --quick -m "not hypothesis"

# Mutated inputs for two thirds of the minutes, a target after the other; then random examples of the property tests.
# What fails of the first is kept in .fuzz/, of the second drawn first by the next run, from .hypothesis.
fuzz: $(VENV)/installed-test
	@end=$$(($$(date +%s) + 60 * $(MINUTES))); \
	$(BIN)/python -m bench.fuzz --jobs $(JOBS) --seconds $$((40 * $(MINUTES) / 7)) || exit 1; \
	while $(PYTEST) --quiet -m hypothesis --hypothesis-profile fuzz || exit 1; \
	  [ $$(date +%s) -lt $$end ]; do :; done

test-megatron: $(MEGATRON)/installed
	bash .ci/install-cores $(CORES)
	MOE_DIAG_MEGATRON=required MOE_DIAG_CORES=$$(ls -d $(CORES) 2>/dev/null) \
	  $(MEGATRON)/bin/python -m pytest --numprocesses auto --dist loadfile -m megatron

release-check: $(VENV)/installed-test
	bash .ci/try-wheel --all

coverage: $(VENV)/installed-test
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest --numprocesses auto --dist loadfile $(PRODUCT)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

mutate: $(VENV)/installed-test
	$(BIN)/python -m bench.mutate --count $(COUNT) --seed $(MUTANTS_SEED) --jobs $(JOBS) $(if $(FOLDERS),--folders $(FOLDERS))

lint: $(VENV)/installed-test
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)

check: lint
	$(PYTEST)

score: $(VENV)/installed-test
	$(PYTEST) $(SCORES)
	$(BIN)/python -m bench.score --runs $(RUNS) --seed $(SEED) --jobs $(JOBS) $(if $(ONLY),--only "$(ONLY)")
	$(if $(ONLY),,$(BIN)/python -m bench.score.ranks --seeds $(RANKS_SEEDS) --jobs $(JOBS))
	$(if $(ONLY),,$(BIN)/python -m bench.score.ranks --farther --seeds $(RANKS_SEEDS) --jobs $(JOBS))
	$(if $(ONLY),,$(BIN)/python -m bench.score.third --jobs $(JOBS))

closure: $(VENV)/installed-test
	$(BIN)/python -m bench.closure --runs $(CLOSURE_RUNS) --jobs $(JOBS)

score-compare: $(VENV)/installed-test
	$(BIN)/python -m bench.compare_score --seed $(PAIRS_SEED) --jobs $(JOBS) $(if $(ONLY),--only "$(ONLY)")
	$(if $(ONLY),,$(BIN)/python -m bench.compare_score.loop --seed $(LOOP_SEED) --jobs $(JOBS))

bench: $(VENV)/installed-test
	$(BIN)/python -m bench.speed --rounds $(ROUNDS)
	$(BIN)/python -m bench.speed.cluster

currency: $(VENV)/installed-test
	$(BIN)/python -m bench.currency $(READ) $(WHEELS)

site: $(VENV)/installed-docs
	$(BIN)/python -m tests.site site

faults: $(VENV)/installed-test
	$(BIN)/python -m bench.faults kills --count $(KILLS)
	$(BIN)/python -m bench.faults steps
	$(BIN)/python -m bench.faults room
	$(BIN)/python -m bench.faults together

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

$(VENV)/installed-docs: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

$(MEGATRON)/installed: pyproject.toml
	$(PYTHON) -m venv $(MEGATRON)
	$(MEGATRON)/bin/python -m pip install --quiet --editable '.[test-megatron]' || \
	  { echo "PyTorch 2.13.0 or megatron-core 0.16.1 cannot be installed (above is why), so nothing was tested."; \
	    echo "A PyTorch for the CPU may be put there first: $(MEGATRON)/bin/pip install torch==2.13.0 --index-url URL"; \
	    exit 1; }
	@touch $@

clean:
	rm -rf $(VENV) $(MEGATRON) $(CORES) .mypy_cache .pytest_cache .ruff_cache .hypothesis site
