# Two commands on a fresh machine: `make run` and `make test`. Needs python3 (3.11+) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CHECKED := src tests examples benchmarks

.PHONY: run test check unit integration bench soak format clean

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@

run: $(VENV)/.run ## an embedded target, a short load test against it, the summary and an HTML report
	$(BIN)/hyperscale demo --html out/report.html

test: check unit integration

check: $(VENV)/.test
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.test
	$(BIN)/pytest tests/unit tests/property -n 2

integration: $(VENV)/.test
	$(BIN)/pytest tests/integration -n 2

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/http1.py

soak: $(VENV)/.bench
	$(BIN)/python benchmarks/memory.py --minutes 6
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest tests/property -n 2

format: $(VENV)/.test
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

clean:
	rm -rf $(VENV) out build dist
