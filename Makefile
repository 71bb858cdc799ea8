# Two commands on a fresh machine: `make run` and `make test`. Needs python3 (3.11+) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CHECKED := src tests examples benchmarks

.PHONY: run test check unit simulation integration bench soak format clean

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

$(VENV)/.bench: $(VENV)/.bench
	$(BIN)/python benchmarks/http1.py
	$(BIN)/python benchmarks/wire.py
	$(BIN)/python benchmarks/wal.py
	$(BIN)/python benchmarks/idempotency.py
	$(BIN)/python benchmarks/membership.py
	$(BIN)/python benchmarks/flood.py

soak: $(VENV)/.bench
	$(BIN)/hyperscale sim election --seeds 1..10000 --jobs 2
	$(BIN)/hyperscale sim membership --seeds 1..10000 --jobs 2
	$(BIN)/hyperscale sim wal --seeds 1..10000 --jobs 2
	$(BIN)/hyperscale sim flood --seeds 1..1000 --jobs 2
	HYPERSCALE_CRASH_KILLS=500 $(BIN)/pytest tests/integration/test_crash.py
	$(BIN)/python benchmarks/memory.py --minutes 6

format: $(VENV)/.test
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

clean:
	rm -rf $(VENV) out build dist
