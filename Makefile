# The everyday commands. `make` alone explains them.

BUILD := build
PYTHON := .venv/bin/python
JOBS := $(shell cmake/jobs.sh)
BIN :=
LEVEL := quick
TORCH :=
T :=

.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-gpu debug asan-ubsan tsan bench bench-plots bundle wheel docs models lint format clean

help: ## Say what each command does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing (Debian packages, .venv) and say what
	@cmake/setup.sh

build: setup ## Build tools, libraries and tests
	@cmake/configure.sh default $(BUILD)
	@cmake --build $(BUILD) -j $(JOBS)

# comms-run and the library behind the Python package: a third of `make build`,
# which keeps what is compiled here.
demo: ## Run the main job on 8 ranks, then a kernel that deadlocks
	@cmake/setup.sh demo
	@cmake/configure.sh demo $(BUILD)
	@cmake --build $(BUILD) -j $(JOBS) --target comms-run commsir_ffi
	@$(PYTHON) test/demo/demo.py --bin $(BUILD)/bin

# T=NAME: a file or folder of tests, or names of ctest (cmake/test.sh).
test: build ## Run every test, or those of T=NAME
	@$(if $(T),cmake/test.sh $(BUILD) "$(T)",cd $(BUILD) && ctest --output-on-failure --no-tests=error -j 2)

# Builds of their own, build-debug and so on; T=NAME: other tests than the
# preset's. LLVM and MLIR are the distribution's in all of them.
debug: setup ## Build with assertions, and run the unit tests
asan-ubsan: setup ## The same with AddressSanitizer and UndefinedBehaviorSanitizer
tsan: setup ## The same with ThreadSanitizer, for ranks that are threads
debug asan-ubsan tsan:
	@cmake --preset $@ >/dev/null
	@cmake --build --preset $@ -j $(JOBS)
	@ctest --preset $@ $(if $(T),-R "$(T)")

# BIN=FOLDER: programs that were built elsewhere, on a host that builds nothing.
# LEVEL=full: the numbers of the project's targets; hours.
test-gpu: $(if $(BIN),,build) ## Run everything shipped on this machine's GPUs, against the CPU world
	@$(PYTHON) test/gpu/run.py --bin $(or $(BIN),$(BUILD)/bin) --level $(LEVEL)
	@$(PYTHON) test/gpu/litmus.py --bin $(or $(BIN),$(BUILD)/bin)
	@$(PYTHON) test/gpu/processes.py --bin $(or $(BIN),$(BUILD)/bin) --level $(LEVEL)
	@$(PYTHON) test/gpu/twins.py --bin $(or $(BIN),$(BUILD)/bin) --level $(LEVEL)
	@test/gpu/torch.sh $(PYTHON) $(if $(BIN),,$(BUILD)/lib)
	@$(PYTHON) test/gpu/processes.py --bin $(or $(BIN),$(BUILD)/bin) --sanitizer || { status=$$?; test $$status -ne 2 || \
	  echo "make test-gpu: all else has passed; what compute-sanitizer looks for was NOT tested" >&2; exit $$status; }

bench: build ## Measure compile time and speed, against the limits of docs/Benchmarks.md
	@$(PYTHON) test/benchmark/bench.py --bin $(BUILD)/bin

bench-plots: ## Draw the plots and fill the tables of docs/Results.md from docs/results/*.json
	@python3 test/scripts/bench-plots.py

bundle: build ## Pack programs that run without LLVM: build/commsir-bundle.tar.xz
	@cmake --build $(BUILD) --target bundle -j $(JOBS)
	@test/integration/bundle.sh $(BUILD)/commsir-bundle.tar.xz $(wildcard $(BUILD)/lib/fake-cuda)

# TORCH='2.11 2.12 2.13': releases of torch that the wheel has the backend
# prebuilt for (cmake/torch-releases.txt); the default is that of the build.
wheel: build ## Make the Python wheel (build/wheel), and check it in fresh environments
	@cmake $(BUILD) -DCOMMSIR_TORCH_MINORS="$(TORCH)" >$(BUILD)/wheel.log || { cat $(BUILD)/wheel.log; exit 1; }
	@cmake --build $(BUILD) --target wheel -j $(JOBS)
	@$(PYTHON) test/python/package/check_wheel.py --wheel $(BUILD)/wheel

docs: setup ## Write the pages that .td files hold, and render the site: build/site/index.html
	@test -f $(BUILD)/CMakeCache.txt || cmake/configure.sh default $(BUILD)
	@$(PYTHON) test/scripts/generate-docs.py --build $(BUILD)
	@cmake/site/render.sh $(BUILD)

# 25 minutes on two cores.
models: build ## Compile models of transformers; write their table into docs/TorchModels.md
	@cmake/setup.sh models
	@COMMSIR_LIBRARY=$(BUILD)/lib $(PYTHON) test/python/torch/models/table.py --write docs/TorchModels.md

lint: build ## clang-format, clang-tidy, ruff, mypy, codespell
	@cmake/lint.sh $(BUILD)

format: setup ## Format C++ and Python in place
	@git ls-files '*.h' '*.cpp' | xargs clang-format-22 -i
	@.venv/bin/ruff format -q .

clean: ## Remove the build
	@rm -rf $(BUILD)
