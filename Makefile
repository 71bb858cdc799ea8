# Two commands on a fresh machine: `make run` and `make test`. Needs python3 (3.11+) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CHECKED := src tests examples benchmarks
# Integration tests wait more than they compute: two of them for each of two cores. Whoever has
# nothing left to do takes tests from the others.
PYTEST := $(BIN)/pytest -n 4 --dist worksteal

# Faults on real nodes: how many rounds, from which seed on, and how many side by side.
ROUNDS ?= 20
SEED ?= 1
AT_ONCE ?= 2
# Of each fuzzer.
FUZZ_S ?= 60

.PHONY: servers run test check docs tests unit simulation integration chaos bench fuzz soak lock sbom audit format clean

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(VENV)/.test: $(VENV)/.run
	$(INSTALL) -e '.[test]'
	touch $@

$(VENV)/.fuzz: $(VENV)/.test
	$(INSTALL) -e '.[fuzz]'
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(INSTALL) -e '.[bench]'
	touch $@

# An embedded target, a short load test against it, the summary and an HTML report.
run: $(VENV)/.run
	$(BIN)/hyperscale demo --html out/report.html

# Servers that tests talk to and that only Debian has; needs root. Tests skip what is missing.
SERVERS := chromium curl influxdb mariadb-server mosquitto nats-server nginx prometheus \
	rabbitmq-server victoria-metrics
APT := apt-get -o Acquire::Retries=0 -o Acquire::http::Timeout=10
servers:
	dpkg -s $(SERVERS) > /dev/null 2>&1 || { $(APT) -qq update; \
	DEBIAN_FRONTEND=noninteractive $(APT) -qq install -y --no-install-recommends $(SERVERS); }

# What CI runs.
test: $(VENV)/.test
	$(MAKE) -j2 check tests

check: $(VENV)/.test
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports

# The page of all commands; a test says when it is not current.
docs: $(VENV)/.test
	$(BIN)/python -m tests.unit.docs.cli_page

# In one go, so that nobody idles at the end of a part; what takes longest comes first.
tests: $(VENV)/.test
	$(PYTEST) tests/integration tests/simulation tests/property tests/unit

unit: $(VENV)/.test
	$(PYTEST) tests/unit tests/property

# A fixed budget of seeds; `make soak` runs thousands.
simulation: $(VENV)/.test
	$(PYTEST) tests/simulation

integration: $(VENV)/.test
	$(PYTEST) tests/integration

# Real nodes in network namespaces; what failed is kept in out/chaos.
chaos: $(VENV)/.test
	$(BIN)/python -m tests.chaos --rounds $(ROUNDS) --seed $(SEED) --at-once $(AT_ONCE)

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/exchange.py
	$(BIN)/python benchmarks/http1.py
	$(BIN)/python benchmarks/https.py
	$(BIN)/python benchmarks/cores.py
	$(BIN)/python benchmarks/wire.py
	$(BIN)/python benchmarks/wal.py
	$(BIN)/python benchmarks/membership.py
	$(BIN)/python benchmarks/flood.py
	$(BIN)/python benchmarks/cluster.py
	$(BIN)/python benchmarks/cron.py
	$(BIN)/python benchmarks/scheduler.py

# Whatever reads bytes of others; what crashed it is kept in out/fuzz.
fuzz: $(VENV)/.fuzz
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_S)

soak: $(VENV)/.bench
	TESTS_SOAK=1 $(BIN)/pytest tests/unit tests/property -n 2
	$(BIN)/hyperscale sim election --seeds 1..10000 --jobs 2
	$(BIN)/hyperscale sim membership --seeds 1..10000 --jobs 2
	$(BIN)/hyperscale sim wal --seeds 1..10000 --jobs 2
	$(BIN)/hyperscale sim records --seeds 1..5000 --jobs 2
	$(BIN)/hyperscale sim vsr --seeds 1..5000 --jobs 2
	$(BIN)/hyperscale sim cluster --seeds 1..5000 --jobs 2
	$(BIN)/hyperscale sim gates --seeds 1..5000 --jobs 2
	$(BIN)/hyperscale sim flood --seeds 1..1000 --jobs 2
	$(BIN)/hyperscale sim scheduler --seeds 1..2000 --jobs 2
	TESTS_CRASH_KILLS=500 $(BIN)/pytest tests/integration/test_crash.py
	TESTS_SOAK=1 $(BIN)/pytest tests/integration/test_cluster_faults.py
	$(MAKE) chaos ROUNDS=200
	$(MAKE) fuzz FUZZ_S=600
	TESTS_SOAK_S=600 $(BIN)/pytest tests/integration/scheduler/test_faults.py
	TESTS_CRON_TRIPLES=100000 $(BIN)/pytest tests/property/test_cron_peers.py -n 2
	$(BIN)/python benchmarks/memory.py --minutes 6

$(VENV)/.supply: $(VENV)/.run
	$(INSTALL) -e '.[supply]'
	touch $@

# What the image is made of, with hashes; needs a package index.
LOCKED := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate
lock: $(VENV)/.supply
	$(LOCKED) pyproject.toml -o deploy/cluster.lock
	$(LOCKED) pyproject.toml --extra scheduler -o deploy/scheduler.lock
	echo 'hatchling>=1.25' | $(LOCKED) - -o deploy/build.lock

# Bills of materials in out/, as CycloneDX.
sbom: $(VENV)/.supply
	mkdir -p out
	$(BIN)/cyclonedx-py requirements deploy/cluster.lock -o out/cluster.cdx.json
	$(BIN)/cyclonedx-py requirements deploy/scheduler.lock -o out/scheduler.cdx.json

# Known vulnerabilities of what is locked; needs the advisories of PyPI.
audit: $(VENV)/.supply
	$(BIN)/pip-audit --require-hashes --disable-pip -r deploy/cluster.lock
	$(BIN)/pip-audit --require-hashes --disable-pip -r deploy/scheduler.lock

format: $(VENV)/.test
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

clean:
	rm -rf $(VENV) out build dist
