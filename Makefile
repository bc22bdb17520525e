# `make` alone lists the targets. Every target works from a fresh clone: each sets up what it needs first.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# The programs that set-up installs with apt-get where they are missing (compilers, CMake, emulators, ...) are the rows
# of PROGRAMS in this file; `uaccel doctor` checks the same rows.
PROGRAMS := python/uaccel/toolchain/programs.py

READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-full test-c test-c-clang lint format bench clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Create .venv with uaccel in it, and install missing programs

$(READY): pyproject.toml constraints.txt python/uaccel/version.py scripts/install_torch.py $(PROGRAMS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "setup: $(PYTHON) is not Python 3.10 or later; try: make setup PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "setup: venv is missing; on Debian: sudo apt-get install -y python3-venv" >&2; exit 1; }
	@echo "setup: installing Python packages into $(VENV)"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt hatchling
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[test,dev]'
	@$(BIN)/python scripts/install_torch.py
	@$(BIN)/python scripts/install_programs.py
	@touch $@

demo: setup ## Compile a network, run it, and prove it equal to TFLite byte for byte
	$(BIN)/python scripts/demo.py

test: setup lint test-c ## Lint and all tests but the slow ones
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-full: setup lint test-c test-c-clang ## Lint and all tests
	UACCEL_THOROUGH=1 $(BIN)/python -m pytest -n 2

test-c: setup ## Unit tests of the firmware in C, on this computer
	$(call run-c-tests,build/host)

test-c-clang: setup
	$(if $(shell command -v clang),$(call run-c-tests,build/clang,-DCMAKE_C_COMPILER=clang))

# $(1) build folder, $(2) options for CMake. The generator is chosen once, when the folder is new.
define run-c-tests
	cmake -S . -B $(1) $(2) $(if $(wildcard $(1)/CMakeCache.txt),,$(if $(shell command -v ninja),-G Ninja))
	cmake --build $(1)
	cd $(1) && ctest --output-on-failure
endef

lint: setup ## Style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: setup ## Put the Python sources into the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: setup ## Measure, and compare with the stored results
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/throughput.py
	$(BIN)/python benchmarks/npu.py
	$(BIN)/python benchmarks/cpu.py
	$(BIN)/python benchmarks/compile_time.py
	$(BIN)/python benchmarks/networks.py

clean: ## Remove what was built; .venv stays
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
