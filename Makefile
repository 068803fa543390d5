# `make demo` and `make test` are all a newcomer needs: each makes .venv and installs what it needs.
# Another Python gets an environment of its own: make test PYTHON=python3.12 VENV=.venv-3.12
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
READY := $(VENV)/.ready
# What is built on the library, each a distribution of its own that its tests run.
BESIDE := --editable ./papers --editable ./examples/extension
# One BLAS thread per test process: two processes on two cores otherwise fight over them. And bytecode is kept, whatever
# the environment says: tests start some fifty Pythons, and each would compile the package anew.
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

# With axe-core the service's pages are looked at for barriers.
AXE := npm ci --silent --no-audit --no-fund --prefix tests/service/browser 2> /dev/null \
	|| { echo "axe-core cannot be installed (npm): the service's pages are not looked at for barriers." >&2; \
	test "$$CI" != true; }

.PHONY: demo docs kernels sanitize sanitize-card test test-all test-lowest test-numpy test-reference wheels lint format bench clean

# The demo needs a small part of what tests do.
$(DEMO): pyproject.toml CMakeLists.txt $(wildcard src/dpmanifold/linalg/native/src/*)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check $(INSTALL) --editable ".[demo]"
	touch $(DEMO)

$(READY): pyproject.toml papers/pyproject.toml examples/extension/pyproject.toml CMakeLists.txt \
		tests/service/browser/package-lock.json \
		$(wildcard src/dpmanifold/linalg/native/src/*)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(INSTALL) --editable ".[dev,docs]" $(BESIDE)
	@$(AXE)
	touch $(DEMO) $(READY)

demo: $(DEMO)
	$(BIN)/dpm demo

docs: $(READY)
	npm ci --silent --prefix tools/pages
	$(BIN)/mkdocs build --strict
	$(BIN)/python tools/pages/offline.py site

test: $(READY)
	$(THREADS) $(BIN)/python -m pytest -q -n 2 --dist worksteal

test-all: $(READY)
	$(THREADS) $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not reference"

# The same tests as on a machine without a C++ compiler: in a copy, since kernels lie beside the sources.
NUMPY := build/numpy
test-numpy:
	rm -rf $(NUMPY) && mkdir -p $(NUMPY)
	git ls-files -z | xargs -0 cp --parents --target-directory=$(NUMPY)
	$(MAKE) -C $(NUMPY) test PYTHON=$(PYTHON) INSTALL="--config-settings=cmake.define.DPM_KERNELS=OFF"

# The lower bounds that pyproject.toml declares, and nothing newer; on the oldest Python, unless PYTHON says otherwise.
LOWEST := .venv-lowest
test-lowest: PYTHON = python3.11
test-lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python tools/lower_bounds.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint $(LOWEST)/constraints.txt --build-constraint $(LOWEST)/constraints.txt --editable ".[dev]" $(BESIDE)
	@$(AXE)
	$(THREADS) $(LOWEST)/bin/python -m pytest -q -n 2 --dist worksteal

# The compiled kernels alone, next to the package: for who works on them (CXX chooses the compiler).
kernels:
	cmake -S . -B build/kernels
	cmake --build build/kernels --parallel

# What a release consists of, in dist/ (docs/how-to/wheels.md).
wheels:
	PYTHON=$(PYTHON) sh tools/wheels.sh --here

# Address and undefined-behaviour sanitizers, then valgrind, over every kernel at every level the machine has.
sanitize:
	sh tests/native/sanitize.sh

# The CUDA kernels under compute-sanitizer, on a machine with a card.
sanitize-card: $(READY)
	compute-sanitizer --tool memcheck --error-exitcode 9 $(BIN)/python tests/native/exercise_card.py
	compute-sanitizer --tool racecheck --error-exitcode 9 $(BIN)/python tests/native/exercise_card.py

test-reference:
	$(PYTHON) -m venv .venv-reference
	.venv-reference/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-reference/bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement tests/reference/requirements.txt --editable .
	$(THREADS) .venv-reference/bin/python -m pytest -q -m reference tests/reference

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	@for script in benchmarks/*.py; do echo "== $$script"; $(THREADS) $(BIN)/python $$script || exit 1; done

clean:
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
