# Two commands on a bare machine (Python 3.11+, pip, make): `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
# Where an environment keeps its programs.
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(PROGRAMS)
EXE := $(if $(filter Windows_NT,$(OS)),.exe)
# The lowest versions that pyproject.toml declares live apart.
OLDEST := .venv-oldest
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Texts are UTF-8 on every system.
export PYTHONUTF8 := 1
# Modules are compiled when they are first imported, and most of what is installed never is: half of the time. What
# was compiled is kept, out of sight; without it every process of a test would compile it again.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/compiled
INSTALL := python -m pip install --quiet --no-compile

# In the order of their folders: reordered by their number, the slowest files, which have few, would come last.
TESTS := python -m pytest -n auto --dist loadscope --no-loadscope-reorder
QUICK_TESTS := $(TESTS) -m "not slow and not docs and not long and not arrays"

# Tests run side by side, one per core: threads inside each would only get in each other's way.
test check-long check-docs check-arrays check-slow check-oldest: export OPENBLAS_NUM_THREADS := 1

# Seeded fits to the byte, the documents' commands, and the public names: seconds.
SMOKE_TESTS := tests/golden tests/journeys tests/test_architecture.py tests/test_public_surface.py
ARRAY_TESTS := tests/data/test_placed.py tests/data/test_streamed.py tests/estimators/test_array_api.py \
  tests/fitting/test_placed_passes.py tests/fitting/certified/test_placed_residual.py

.PHONY: demo test smoke check-long check-docs check-arrays check-slow check-oldest check-gpu docs wheel lock coverage mutants paper bench figures screenshots browser format clean

demo: $(VENV)/.installed-figures
	$(BIN)/expost --version --verbose
	$(BIN)/expost demo --out demo --force

# Types are checked beside the tests, which leave a core alone now and then.
test: $(VENV)/.installed-dev browser
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(BIN)/$(QUICK_TESTS) $(ARGUMENTS) && wait $$types

# What a push is worth: lint, types, and the tests that notice most in the least time.
smoke: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q $(SMOKE_TESTS) -m "not slow and not docs and not long and not arrays"

# Tests that take seconds each: more cells, samples and processes than a newcomer waits for.
check-long: $(VENV)/.installed-dev
	$(BIN)/$(TESTS) -m "long and not slow and not docs and not arrays"

# The site, and the page's numbers against the library's for every loss, report and weight.
check-docs: $(VENV)/.installed-dev $(VENV)/.installed-docs browser
	$(BIN)/$(TESTS) -m "docs and not slow" tests/docs tests/page

# Arrays of torch, on this machine's processor; those of array-api-strict are in `make test`.
check-arrays: $(VENV)/.installed-dev $(VENV)/.installed-torch
	$(BIN)/$(TESTS) -m "arrays and not slow" $(ARRAY_TESTS)

check-slow: $(VENV)/.installed-dev $(VENV)/.installed-slow $(VENV)/.installed-docs $(VENV)/.installed-torch $(VENV)/.installed-mutants
	$(BIN)/python -m pytest -m slow -n auto
	$(BIN)/python -m bench.mutants

# Tables on a GPU, through torch and, where it is installed, CuPy.
check-gpu: $(VENV)/.installed-dev $(VENV)/.installed-torch
	EXPOST_GPU=1 $(BIN)/python -m pytest $(ARRAY_TESTS)

# The tests of `make test` with the lowest version that is declared of every dependency.
check-oldest: $(OLDEST)/.installed browser
	$(OLDEST)/$(PROGRAMS)/$(QUICK_TESTS)

# The experiments of Redberg and Wang (2021), in full. `make paper ARGUMENTS=--quick` sees every verdict, and
# writes to a folder of its own.
paper: $(VENV)/.installed-paper
	$(BIN)/python -m papers.redberg_wang_2021 $(ARGUMENTS)

# All are run; those that failed, or missed a goal of theirs, are named at the end.
bench: $(VENV)/.installed-bench
	@missed=; for run in startup "fit --widest" files scale calibration "reports --synthetic" peers "outcomes --draws 8" \
	    "rows --draws 8" people multiclass multiclass_fit inference; do \
	  echo "$(BIN)/python -m bench.$$run"; $(BIN)/python -m bench.$$run || missed="$$missed bench.$$run;"; \
	done; test -z "$$missed" || { echo "Failed, or missed a goal:$$missed see above."; exit 1; }

# The site, without network, in build/site. A warning is an error; so is a dead link, and a formula that does not
# convert.
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html -c docs -d build/doctrees . build/site
	@echo "Open in a browser: build/site/docs/index.html"

# Wheel and source archive, checked, and the wheel of a machine without a compiler; the demo from each in a clean
# environment.
wheel: $(VENV)/.installed-release
	rm -rf dist build/clean build/plain
	$(BIN)/python -m build --outdir dist .
	CC=false $(BIN)/python -m build --wheel --outdir build/plain .
	$(BIN)/python -m twine check --strict dist/* build/plain/*
	for folder in dist build/plain; do \
	  $(PYTHON) -m venv --clear build/clean && build/clean/$(PROGRAMS)/$(INSTALL) $$folder/*.whl \
	  && (cd build/clean && $(PROGRAMS)/expost --version --verbose && $(PROGRAMS)/expost demo --out demo --force) \
	  || exit 1; done

# The versions of everything that development needs, as they were when a release was made.
lock: $(VENV)/.installed-release
	UV_SYSTEM_CERTS=1 $(BIN)/uv pip compile --quiet --universal --no-header --no-emit-index-url \
	  --extra dev --extra dev-slow --extra dev-torch --extra docs --extra paper --extra figures pyproject.toml --output-file requirements.lock

# Branch coverage of src/ by the tests that are not slow; the report names every line that was not run.
coverage: $(VENV)/.installed-dev browser
	$(BIN)/$(TESTS) -m "not slow and not docs and not arrays" --cov --cov-report= -q
	$(BIN)/python -m coverage html --directory build/coverage
	$(BIN)/python -m coverage report --skip-covered --fail-under 95

# Small changes of privacy/ and reports/ that some test must notice; `make mutants ARGUMENTS=--all` tries every one.
mutants: $(VENV)/.installed-dev $(VENV)/.installed-mutants
	$(BIN)/python -m bench.mutants $(ARGUMENTS)

screenshots: $(VENV)/.installed-dev browser
	$(BIN)/python -m bench.screenshots

# The page is tested in Debian's Chromium where it can be had; the tests say aloud where it cannot.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && { apt-get update -qq; apt-get install -y -qq chromium; } >/dev/null 2>&1; } \
	  || echo "chromium is missing: the page will not be tested in a browser"

figures: $(VENV)/.installed-figures
	$(BIN)/python -m bench.figures
	$(BIN)/python -m bench.goe --out docs/figures/goe.png

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(OLDEST) build demo dist .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis

define new_enough
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || { echo "expost needs Python 3.11 or newer; name one with 'make PYTHON=python3.12 ...'."; exit 1; }
endef

$(BIN)/python$(EXE):
	$(new_enough)
	$(PYTHON) -m venv $(VENV)

# What the build hook compiles: an editable installation is made anew where it changes.
KERNELS := hatch_build.py $(wildcard src/expost/_kernels/*.[ch])

$(VENV)/.installed: pyproject.toml $(KERNELS) | $(BIN)/python$(EXE)
	$(BIN)/$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(KERNELS) | $(BIN)/python$(EXE)
	$(BIN)/$(INSTALL) --editable ".[dev]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-figures: pyproject.toml $(KERNELS) | $(BIN)/python$(EXE)
	$(BIN)/$(INSTALL) --editable ".[figures]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python$(EXE)
	$(BIN)/$(INSTALL) --editable ".[docs]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-torch: pyproject.toml | $(BIN)/python$(EXE)
	$(BIN)/$(INSTALL) --editable ".[dev-torch]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-slow: pyproject.toml | $(BIN)/python$(EXE)
	$(BIN)/$(INSTALL) --editable ".[dev-slow]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-mutants: pyproject.toml | $(BIN)/python$(EXE)
	$(BIN)/$(INSTALL) --editable ".[mutants]"
	@touch $@

$(VENV)/.installed-release: pyproject.toml | $(BIN)/python$(EXE)
	$(BIN)/$(INSTALL) build twine uv
	@touch $@

$(VENV)/.installed-paper: pyproject.toml | $(BIN)/python$(EXE)
	$(BIN)/$(INSTALL) --editable ".[paper]"
	@touch $@ $(VENV)/.installed

# A peer or a table that does not install is left out here and named by the benchmark itself.
$(VENV)/.installed-bench: pyproject.toml $(KERNELS) | $(BIN)/python$(EXE)
	$(BIN)/$(INSTALL) --editable ".[dev]"
	-$(BIN)/$(INSTALL) glum
	-$(BIN)/$(INSTALL) diffprivlib
	-$(BIN)/$(INSTALL) statsmodels
	@touch $@ $(VENV)/.installed

# Made anew whenever a bound changes: what is installed already would count as good enough. Only wheels are
# taken, so where a Python is newer than a bound, the lowest version that was built for it is. Certificates are
# the system's, as pip's are.
$(OLDEST)/.installed: pyproject.toml
	$(new_enough)
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/$(PROGRAMS)/$(INSTALL) uv
	UV_SYSTEM_CERTS=1 $(OLDEST)/$(PROGRAMS)/uv pip install --quiet --python $(OLDEST)/$(PROGRAMS)/python --resolution lowest-direct \
	  --only-binary :all: --no-binary expost --editable ".[dev,figures,paper]"
	@touch $@
