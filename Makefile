# `make help` lists what there is. Everything runs in .venv, which is made and kept up to date on the way.
VENV := .venv
PY := $(VENV)/bin/python
PYTEST := $(PY) -m pytest
# More processes than this cost more to start than they save.
WORKERS ?= 4
# Tests on Spark and Kafka wait more than they work: two at a time, each process with one Spark for all its tests.
SPARK_WORKERS ?= 2
NO_JVM := "not spark and not slow and not kafka and not server"
# What is built on streams, and tests that try many crashes or sizes, have targets of their own, so that test-fast stays short.
LIBRARIES := tests/cep tests/gelly tests/table tests/runtime/table
# Extra arguments: make test-fast ARGS="-k timers -x"
ARGS ?=
# Tests that failed run once more, in new processes: an error in the code fails twice, a stalled machine seldom does. Both
# runs are printed; a test that passes only the second time is a defect of its own.
tested = $(PYTEST) $(1) $(ARGS) || { test $$? = 1 && echo "Once more, the tests that failed:" && \
	$(PYTEST) $(1) $(ARGS) --last-failed --last-failed-no-failures none; }

# Compiled modules are kept, whatever the surroundings say: Spark starts many Python processes, and compiling what each of
# them imports costs more than a second of its time.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup java fast-start demo test test-fast test-exhaustive test-libraries test-windows test-spark test-slow chaos two-drivers test-versions test-all lint format names pictures constraints bench docs dashboard clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.dev: pyproject.toml constraints.txt scripts/setup_env.sh
	@PYTHON="$(PYTHON)" scripts/setup_env.sh dev
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	@PYTHON="$(PYTHON)" scripts/setup_env.sh dev,docs
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	@PYTHON="$(PYTHON)" scripts/setup_env.sh dev,bench
	@touch $@

setup: $(VENV)/.dev ## make .venv with everything for development (uv, or venv and pip)

java: setup ## make sure there is a Java 17 or newer for Spark; installs one if not
	@$(PY) scripts/ensure_java.py

fast-start: java ## keep Spark's classes in an archive (once, a minute): Spark starts some seconds sooner
	@$(PY) -m penstock.cli.fast_start

demo: java ## run the sensor-average job on an embedded Spark, with live output and a page in the browser
	@PENSTOCK_UI=true $(PY) examples/sensor_average.py $(ARGS)

test: test-fast test-exhaustive test-libraries test-windows test-spark ## what CI runs: first without, then with Spark

test-fast: setup ## tests, and examples in docstrings, that need no JVM; without those of the next two
	@$(call tested,$(addprefix --ignore=,$(LIBRARIES)) -m "not exhaustive and "$(NO_JVM) -q -n logical --maxprocesses $(WORKERS))

test-exhaustive: setup ## random crashes, every cut of a stream, state of many sizes, inferred types; no JVM
	@$(call tested,-m "exhaustive and "$(NO_JVM) -q -n logical --maxprocesses $(WORKERS))

test-libraries: setup ## tests of patterns, tables and graphs that need no JVM
	@$(call tested,$(LIBRARIES) -m $(NO_JVM) -q -n logical --maxprocesses $(WORKERS))

test-windows: setup ## random streams through window operators and CEP patterns, beside slow models; no JVM
	@$(call tested,tests/runtime/windows tests/cep -m "slow and not spark" -q -n logical --maxprocesses $(WORKERS))

test-spark: fast-start ## tests on a local Spark, and with servers that take long to start (Kafka, ...)
	@$(call tested,-m "(spark or kafka or server) and not slow" -q -rs -n $(SPARK_WORKERS) --dist loadfile -o timeout=300)

test-slow: java ## tests that take long (kills, soaks, large state)
	@$(PYTEST) -m slow -q $(ARGS)

# Runs that are in the log and passed are not made again: `make chaos` goes on where it was interrupted.
CHAOS_SEED = $(or $(SEED),1)
CHAOS_LOG = $(or $(LOG),$(or $(TMPDIR),/tmp)/penstock-chaos-$(CHAOS_SEED).jsonl)
chaos: java ## crashes: 500 runs in this process, 500 with kill -9 on Spark (RUNS=50 SEED=7 LOG=file to go on from)
	@PENSTOCK_CHAOS_RUNS=$(or $(RUNS),500) $(PYTEST) tests/runtime/savepoint/test_chaos.py -q -n logical \
		--maxprocesses $(WORKERS) $(ARGS)
	@PENSTOCK_CHAOS_RUNS=$(or $(RUNS),500) PENSTOCK_CHAOS_SEED=$(CHAOS_SEED) PENSTOCK_CHAOS_LOG=$(CHAOS_LOG) \
		$(PYTEST) tests/spark/test_chaos.py tests/spark/test_cluster.py -k chaos -q -n $(SPARK_WORKERS) --dist loadfile \
		-o timeout=0 $(ARGS); \
		status=$$?; $(PY) tests/spark/chaos_log.py $(CHAOS_LOG); echo "log: $(CHAOS_LOG)"; exit $$status

two-drivers: java ## two and three live drivers of one job, ten times with each of four sinks (RUNS=2 SEED=7 ARGS="-k postgres")
	@PENSTOCK_TWO_DRIVERS_RUNS=$(or $(RUNS),10) $(if $(SEED),PENSTOCK_TWO_DRIVERS_SEED=$(SEED)) \
		$(PYTEST) tests/spark/test_two_drivers.py -q -m "slow or not slow" -o timeout=0 $(ARGS)

test-versions: java ## the continuous mode on Spark 3.5 to 4.3, each in its own environment (downloads 2 GB once)
	@$(PY) scripts/spark_versions.py $(ARGS)

test-all: test test-slow ## every test there is

lint: setup ## style, format, types, direction of imports
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports --no-logo

format: setup ## format, and fix what ruff can fix
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

names: setup ## write docs/pyflink-names.md: which of PyFlink's names work
	@$(PY) scripts/pyflink_names.py

pictures: setup ## draw the patterns in the guide
	@$(PY) scripts/pattern_pictures.py

constraints: ## refresh constraints.txt (needs uv; UPGRADE=1 takes the newest versions)
	@scripts/update_constraints.sh $(if $(UPGRADE),--upgrade)

bench: java $(VENV)/.bench ## compare with PyFlink, plain Spark, Bytewax, Pathway, Quix: tables and plots
	@$(PY) benchmarks/run.py $(ARGS)

docs: $(VENV)/.docs ## build the guide as a site, in site/
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet
	@echo "site/index.html"

dashboard: setup ## rebuild the dashboard from dashboard/ (needs Node 20 or newer)
	@cd dashboard && npm ci --no-audit --no-fund --silent && npm run --silent build
	@$(PY) scripts/dashboard_fingerprint.py --write

clean: ## remove the environment and everything generated
	rm -rf $(VENV) build dist site *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
