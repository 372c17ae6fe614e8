# Everything here sets up what it needs: a virtual environment in .venv, with the four packages.
# Needs git, make and Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
LAYERS := driver_layer compiler_layer npuw_layer genai_layer
QUESTION ?= What is an NPU?
JOBS ?= auto
MODEL ?= models/demo
MODELS ?= $(VENV)/benchmark-models
PEERS_PYTHON ?= $(RUN)/python
BENCH ?=
PROFILE ?=
SWEEP ?= $(if $(filter models/demo,$(MODEL)),--brief)
# Compiled once, whatever a machine's environment says: a process that compiles all modules anew starts
# a second later, and tests and benchmarks start hundreds.
unexport PYTHONDONTWRITEBYTECODE
# Tests run beside one another, one for each core: threads of their own would wait for each other.
# Each process begins with a stretch of neighbouring tests, which share fixtures and compiled models.
PYTEST := OPENBLAS_NUM_THREADS=1 NPU_ENGINE_THREADS=1 \
  $(RUN)/python -m pytest -n $(JOBS) --dist worksteal -q

.DEFAULT_GOAL := help
.PHONY: help setup demo chat serve test test-all check format test-lowest test-oracle test-ci bench profile profile-kernels bench-npuw bench-sweep bench-compile fuzz clean

help:  ## show this text
	@echo "An LLM-on-NPU stack, from chat to simulated silicon. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## /  \1|/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r name text; do printf '%-14s %s\n' "$$name" "$$text"; done

demo: $(VENV)/runtime.stamp  ## the demo model answers a question on the simulated NPU
	@$(RUN)/npu-chat models/demo --prompt "$(QUESTION)" --stats \
	  -c MAX_PROMPT_LEN=256 -c CACHE_DIR=$(VENV)/npu-cache

chat: $(VENV)/runtime.stamp  ## talk to the demo model
	@$(RUN)/npu-chat models/demo -c MAX_PROMPT_LEN=512 -c CACHE_DIR=$(VENV)/npu-cache

serve: $(VENV)/serve.stamp  ## serve the demo model to OpenAI's clients
	@$(RUN)/npu-serve models/demo -c MAX_PROMPT_LEN=512 -c CACHE_DIR=$(VENV)/npu-cache

test: $(VENV)/dev.stamp  ## run the tests: of a matrix its first case, and nothing long
	$(PYTEST) --quick -m "not oracle"

test-all: $(VENV)/dev.stamp  ## run every test but those that ask OpenVINO
	$(PYTEST) -m "not oracle"

check: $(VENV)/dev.stamp  ## format, lint, types, direction of imports, words, citations and links
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/pyright
	$(RUN)/lint-imports
	$(RUN)/python tools/check_words.py
	$(RUN)/python -m pytest -q -n 0 tests/stack/test_citations.py tests/stack/test_documents.py

format: $(VENV)/dev.stamp  ## format the sources, and mend what ruff can mend
	$(RUN)/ruff check --fix .
	$(RUN)/ruff format .

test-lowest: $(VENV)/dev.stamp  ## the demo answers with the lowest versions that the packages admit
	@$(RUN)/python -m pip install -q --disable-pip-version-check uv
	@rm -rf $(VENV)/lowest && $(RUN)/uv venv -q --python $(RUN)/python $(VENV)/lowest
	@$(RUN)/uv pip install -q --python $(VENV)/lowest/bin/python --resolution lowest-direct $(LAYERS:%=./%)
	@PYTHONWARNINGS=error $(VENV)/lowest/bin/npu-chat models/demo --prompt "$(QUESTION)" -c MAX_PROMPT_LEN=256

test-oracle: $(VENV)/dev.stamp  ## compare with the real OpenVINO, live
	$(PYTEST) -m oracle

test-ci: $(VENV)/dev.stamp  ## test-all and test-oracle in one run
	$(PYTEST)

bench: $(VENV)/dev.stamp  ## speed compared to peers: MODELS=folder PEERS_PYTHON=python BENCH=options
	$(RUN)/python benchmarks/bench.py --models $(MODELS) --peers-python $(PEERS_PYTHON) $(BENCH)
	$(RUN)/python benchmarks/bench_speculation.py --models $(MODELS)
	$(RUN)/python benchmarks/bench_real_plugin.py

profile: $(VENV)/dev.stamp  ## where the time of a token goes, by layer: MODEL=folder PROFILE=options
	$(RUN)/python benchmarks/layer_profile.py $(MODEL) $(PROFILE)

profile-kernels: $(VENV)/dev.stamp  ## where the device's time goes, by kernel: MODEL=folder PROFILE=options
	$(RUN)/python benchmarks/kernel_profile.py $(MODEL) $(PROFILE)

bench-npuw: $(VENV)/dev.stamp  ## switchover, starts, variants, ways to run, batching, offload: MODEL=folder
	$(RUN)/python benchmarks/npuw_results.py $(MODEL)

bench-sweep: $(VENV)/dev.stamp  ## lengths, turns, requests, rows, samplers, options: MODEL=folders SWEEP=options
	$(RUN)/python benchmarks/bench_sweep.py $(MODEL) --peers-python $(PEERS_PYTHON) $(SWEEP)

bench-compile: $(VENV)/dev.stamp  ## time the compiler on llama-1b int4, and the real NPUW
	$(RUN)/python benchmarks/bench_compile.py

fuzz: $(VENV)/dev.stamp  ## damage blobs and models, interleave conversations, five minutes each; kill servers
	$(RUN)/python tests/driver/loader/fuzz_loader.py --minutes 5
	$(RUN)/python tests/npuw/storage/native_blob/fuzz_native.py --minutes 5
	$(RUN)/python tests/compiler/frontends/fuzz_frontends.py --minutes 5
	$(RUN)/python tests/npuw/llm/interleaved/fuzz_interleaved.py --minutes 5
	$(RUN)/python tests/stack/serve/fuzz_kills.py --times 50

setup: $(VENV)/dev.stamp  ## set up what developing needs

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .ruff_cache .hypothesis

# Debian's python3 comes without ensurepip; then pip makes itself at home by way of its own wheel.
$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; say which: make PYTHON=python3.12"; exit 2; }
	@echo "making $(VENV) ..."
	@$(PYTHON) tools/make_venv.py $(VENV)

$(VENV)/runtime.stamp: $(LAYERS:%=%/pyproject.toml) | $(VENV)/bin/pip
	@echo "installing the four packages ..."
	@$(RUN)/python -m pip install -q --disable-pip-version-check $(LAYERS:%=-e ./%)
	@touch $@

$(VENV)/serve.stamp: $(VENV)/runtime.stamp
	@echo "installing what the server needs ..."
	@$(RUN)/python -m pip install -q --disable-pip-version-check -e "./genai_layer[serve]"
	@touch $@

# Not compiled: tests and checks import few of these modules, and the first import compiles each.
$(VENV)/dev.stamp: $(VENV)/runtime.stamp pyproject.toml
	@echo "installing what testing and checking need ..."
	@$(RUN)/python -m pip install -q --disable-pip-version-check "pip>=25.1"
	@$(RUN)/python -m pip install -q --no-compile --disable-pip-version-check --group dev
	@touch $@
