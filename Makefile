# `make` alone lists the targets. Every target works from a fresh clone: each sets up what it needs first.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED ?= yes
# Every package in the version that all machines test with, and of the bytes that its digest says. `make setup LOCKED=no`: what
# pyproject.toml allows instead, for a Python or a platform that lacks one of those files.
PACKAGES = $(if $(filter no,$(LOCKED)),$(PIP) $(2),$(PIP) --require-hashes --no-deps --requirement scripts/locked/$(1).txt)

# The programs that set-up installs where they are missing (compilers, emulators) are the rows of PROGRAMS in
# python/uaccel/build/programs.py; `uaccel doctor` checks the same rows. They are looked for each time; Python packages are
# installed again when what states them changes.
PROGRAMS := $(BIN)/python scripts/install_programs.py
# Continuous integration sets UACCEL_CI: there, what is left out for want of a tool is an error.
OR_FAIL  := $(if $(UACCEL_CI),; exit 1)
READY    := $(VENV)/.ready
TESTED   := $(VENV)/.ready-test

.DEFAULT_GOAL := help
.PHONY: help setup setup-test setup-torch setup-full demo test test-full test-c test-c-clang lint format bench site clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Create .venv with uaccel in it; install a C compiler, an Arm compiler and QEMU where they are missing
	@$(PROGRAMS) setup

$(READY): pyproject.toml scripts/locked/setup.txt python/uaccel/version.py scripts/hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "setup: $(PYTHON) is not Python 3.10 or later; try: make setup PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "setup: venv is missing; on Debian: sudo apt-get install -y python3-venv" >&2; exit 1; }
	@echo "setup: installing Python packages into $(VENV)"
	@$(call PACKAGES,setup,--editable '.[test]' hatchling editables) || \
		{ echo "setup: no such packages for this computer; newer or older ones: make setup LOCKED=no" >&2; exit 1; }
	@$(PIP) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q python || true # commands start twice as fast
	@touch $@

setup-test: setup $(TESTED) ## What the tests need besides: oracles, linters, a RISC-V compiler
	@$(PROGRAMS) test

# Without a network the tests run with what is there; those that lack something say so.
$(TESTED): $(READY) scripts/locked/test.txt
	@echo "setup: installing what tests need besides (TFLite, ONNX Runtime, linters)"
	@if $(call PACKAGES,test,'uaccel[test,oracles,dev]') --retries 1 --timeout 20; then touch $@; \
	else echo "setup: not installed; tests that need them are skipped, 'make test' tries again"$(OR_FAIL); fi

setup-torch: setup ## PyTorch for CPUs: models from PyTorch, and their tests
	@$(BIN)/python scripts/install_torch.py

setup-full: setup-test ## What the longest tests need: a second compiler, a browser
	@$(PROGRAMS) test-full

demo: setup ## Compile a network, run it, and prove it equal to its exact meaning byte for byte
	$(BIN)/uaccel demo

# What takes turns (tests/support/run/tiers.py) is another share at each commit. Tests whose bytecode is kept are collected in
# half the time.
test: setup-test lint test-c ## Lint and all tests but the slow ones
	PYTHONDONTWRITEBYTECODE= UACCEL_ROTATION=$${UACCEL_ROTATION:-$$(git rev-list --count HEAD 2>/dev/null || echo 0)} \
		$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not long"

test-full: setup-full lint test-c test-c-clang ## Lint and all tests
	UACCEL_THOROUGH=1 $(BIN)/python -m pytest -n 2 --dist worksteal

test-c: setup-test ## Unit tests of the firmware in C, on this computer
	$(call run-c-tests,build/host)

test-c-clang: setup-full
	$(if $(shell command -v clang),$(call run-c-tests,build/clang,-DCMAKE_C_COMPILER=clang),\
		@echo "test-c-clang: skipped: clang is not installed"$(OR_FAIL))

# $(1) build folder, $(2) options for CMake. The generator is chosen once, when the folder is new.
define run-c-tests
	@export PATH="$$PATH:$(abspath $(BIN))"; mkdir -p build; \
	cmake -S . -B $(1) $(2) $(if $(wildcard $(1)/CMakeCache.txt),,-G Ninja) >$(1).log 2>&1 || { cat $(1).log; exit 1; }; \
	cmake --build $(1) && cd $(1) && ctest --output-on-failure --no-tests=error
endef

lint: setup-test ## Style, types and words
	@if test -x $(BIN)/mypy; then set -ex; $(BIN)/ruff check; $(BIN)/ruff format --check; $(BIN)/mypy; $(BIN)/python scripts/check_words.py; $(BIN)/python scripts/check_pages.py; \
	else echo "lint: skipped: ruff and mypy are not installed"$(OR_FAIL); fi

format: setup-test ## Put the Python sources into the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: setup-test ## Measure, and compare with the stored results
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/throughput.py
	$(BIN)/python benchmarks/npu.py
	$(BIN)/python benchmarks/cpu.py
	$(BIN)/python benchmarks/compile_time.py
	$(BIN)/python benchmarks/networks.py
	$(BIN)/python benchmarks/floats.py
	$(BIN)/python benchmarks/frontier.py

site: setup-test ## Build the documentation's site into build/site; warnings fail
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

clean: ## Remove what was built; .venv stays
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
