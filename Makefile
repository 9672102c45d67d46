# Needs Python 3.11 or newer with pip and venv, and GNU make; all packages go into .venv.

.DEFAULT_GOAL := help
.PHONY: help demo record test test-fast coverage fuzz mutants check format docs wheel lock clean
.DELETE_ON_ERROR:
# Each of the many processes of the tests would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
ARGS ?=
# Test processes, each with whole files; JOBS=0 runs all tests in one process, for debuggers.
JOBS ?= logical

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
PARALLEL := -n $(JOBS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Stamps carry a checksum of their inputs, so a changed lock installs again and an equal one
# does nothing, whatever the files' dates. The folder counts because an installed script names it.
PYTHON_KEY := $(shell { pwd; $(PYTHON) -c 'import sys; print(sys.base_prefix, sys.version)'; } 2>/dev/null | cksum | cut -d' ' -f1)
LOCK_KEY := $(PYTHON_KEY)-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
MADE := $(VENV)/.made-$(PYTHON_KEY)
CORE := $(VENV)/.core-$(LOCK_KEY)
DEV := $(VENV)/.dev-$(LOCK_KEY)
DOCS := $(VENV)/.docs-$(LOCK_KEY)

help:
	@echo 'make demo     answer the shipped questions, replay pipelines with a language model, print the scores'
	@echo 'make record   write the prompts of make demo without a reply, take replies in  (ARGS="--folder DIR")'
	@echo 'make test     run the test suite            (make test ARGS="-k words" for a part)'
	@echo 'make test-fast run the tests without engines, servers, browsers and programs'
	@echo 'make coverage run the test suite, and report the lines and branches that it runs'
	@echo 'make fuzz     run the property tests with many fresh cases'
	@echo 'make mutants  change operators and constants of scoring, guard and linking, and list changes no test notices'
	@echo 'make check    run linter, formatter check and type checker'
	@echo 'make format   let the linter and formatter rewrite files'
	@echo 'make docs     build the site of this version into build/site; broken links fail'
	@echo 'make wheel    build wheel and sdist into dist, and try both in environments of their own'
	@echo 'make lock     resolve all dependencies anew into constraints.txt'
	@echo 'make clean    remove .venv and everything built here'
	@echo 'Another interpreter: make PYTHON=/path/to/python3.12 demo'

# The run folder is named after a checksum of code and data: on a second run
# without changes, nothing is computed and the same tables are printed.
demo: $(CORE)
	@key=$$(find byokg configs -type f ! -name '*.pyc' | LC_ALL=C sort | xargs cat constraints.txt | cksum | cut -d' ' -f1) \
	  && $(BIN)/byokg demo --out .demo/$$key

# Prompts of the replayed comparison become files, and replies beside them are taken in.
record: $(CORE)
	@$(BIN)/python scripts/record_replies.py $(ARGS)

test: $(DEV)
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

# No engine, server, browser or program: to run while editing.
test-fast: $(DEV)
	@$(BIN)/python -m pytest $(PARALLEL) --fast $(ARGS)

# The whole suite, with the share of lines and branches that it runs; fails below the floor in pyproject.toml.
coverage: $(DEV)
	@$(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term $(ARGS)

# Property tests alone, 25 times as many cases as in `make test`, with fresh random cases.
fuzz: $(DEV)
	@$(BIN)/python -m pytest $(PARALLEL) -m 'hypothesis or seeds' --hypothesis-profile=fuzz $(ARGS)

# Each change in a copy of the repository, with the tests of its part; ARGS="--changes 40" makes more.
mutants: $(DEV)
	@$(BIN)/python scripts/mutants.py $(ARGS)

check: $(DEV)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy byokg scripts tests examples $(wildcard benchmarks/*.py)

format: $(DEV)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(DOCS)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir build/site/$(VERSION) $(ARGS)
	@echo 'open build/site/$(VERSION)/index.html'

wheel: $(DEV)
	@rm -rf dist
	@$(BIN)/python -m hatchling build --directory dist
	@for file in dist/*.whl dist/*.tar.gz; do scripts/try_package.sh $(PYTHON) $$file || exit 1; done

# Torch first and by version alone: pip then keeps a CPU build, if offered. Its local version
# label (+cpu) is cut off, so that the lock also fits machines which only have the general build.
lock:
	@rm -rf build/lock
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip install --quiet torch==2.13.0
	@build/lock/bin/python -m pip install --quiet '.[all,minilm,train,dev,docs]' torch==2.13.0
	@build/lock/bin/python -m pip check
	@build/lock/bin/python -m pip freeze --all --exclude byokg --exclude pip > build/lock/frozen.txt
	@sed 's/+.*//' build/lock/frozen.txt > build/lock/constraints.txt
	@mv build/lock/constraints.txt constraints.txt
	@rm -rf build/lock
	@echo 'constraints.txt is new; run: make check test'

clean:
	@rm -rf $(VENV) .coverage .demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(MADE):
	@$(PYTHON) -c '' 2>/dev/null \
	  || { echo "make: cannot run '$(PYTHON)'; install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "make: $$($(PYTHON) -V 2>&1) is too old, byokg needs 3.11 or newer; name another: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "make: $(PYTHON) lacks the venv module; on Debian or Ubuntu run: sudo apt install python3-venv" >&2; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# Modules are compiled at their first import, since the demo imports a third of them.
$(CORE): | $(MADE)
	@echo 'installing byokg into $(VENV) (once; about 190 MB to download)'
	@$(PIP) install --quiet --no-compile -c constraints.txt -e '.[cypher]'
	@touch $@

$(DEV): | $(MADE)
	@echo 'installing byokg and its test tools into $(VENV) (once)'
	@$(PIP) install --quiet -c constraints.txt -e '.[dev,train]'
	@touch $@ $(CORE)

$(DOCS): $(CORE)
	@echo 'installing tools for the site into $(VENV) (once)'
	@$(PIP) install --quiet -c constraints.txt -e '.[docs]'
	@touch $@
