# Every command of the project. Each does its own set-up; stamp files under .venv make the next call quick.
# Variables: PYTHON (interpreter of the virtual environment), PYTEST_ARGS, PYTEST_WORKERS (processes),
# FUZZ_SECONDS (per target).

PYTHON       ?= python3
PYTEST_ARGS  ?=
PYTEST_WORKERS ?= logical
FUZZ_SECONDS ?= 60

VENV := .venv
BIN  := $(VENV)/bin
CORE := Cargo.toml Cargo.lock pyproject.toml $(shell find crates -type f)

export PYTHON
# Clippy compiles the binding against the same interpreter as maturin.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# mkdocs-material prints an announcement of its successor with every build.
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # one virtual environment, one installer at a time
.PHONY: help run build wheel test test-all test-portable test-sqlalchemy20 test-package lint bench proof crawl spark kills damage shop oracle histories equal experiments docs plots pictures fuzz lock clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.run ## show the monitor's page on generated traffic: bloomtide watch --demo
	@scripts/prebuilt.sh || $(MAKE) --no-print-directory build
	$(BIN)/bloomtide watch --demo

build: $(VENV)/.build ## the virtual environment with a quickly compiled build of the package

wheel: $(VENV)/.run rust ## the wheel of this Python and platform into dist/, optimized as for a release
	$(BIN)/maturin build --release --locked --out dist

# Each test of Python belongs to one of the two: what is not QUICK is in test-all. Tests start many
# processes, which would compile every module again if Python were told to keep no bytecode.
QUICK  := not slow and not spark and not browser
PYTEST  = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --durations=20
READY  := rust $(VENV)/.build $(VENV)/.dev $(VENV)/.bench

test: $(READY) ## what proves a change: the Rust core, then Python (minutes; PYTEST_ARGS="-k counting" for a part)
	cargo test --locked --workspace --exclude bloomtide-py
	$(PYTEST) --dist worksteal -m "$(QUICK)" $(PYTEST_ARGS)

test-all: $(READY) $(VENV)/.spark $(VENV)/.wheel test-sqlalchemy20 ## what `make test` leaves out: slow tests, Spark, the browser, each extra alone, SQLAlchemy 2.0
	BLOOMTIDE_WHEEL=$$(echo $(VENV)/wheel/*.whl) $(PYTEST) --dist loadfile -m "not ($(QUICK))" $(PYTEST_ARGS)

test-portable: $(VENV)/.build $(VENV)/.dev ## the tests that also run on macOS and Windows: tests/portable.txt
	$(PYTEST) @tests/portable.txt $(PYTEST_ARGS)

# SQLAlchemy has two releases within the bounds of pyproject.toml; the environment has the newer one.
test-sqlalchemy20: $(VENV)/.build $(VENV)/.dev $(VENV)/.sqlalchemy20 ## the tests that need SQLAlchemy, with the newest 2.0
	PYTHONPATH=$(VENV)/sqlalchemy20 $(BIN)/python -c "import sqlalchemy; assert sqlalchemy.__version__.startswith('2.0.')"
	PYTHONPATH=$(VENV)/sqlalchemy20 $(PYTEST) tests/guard tests/history_store $(PYTEST_ARGS)

test-package: rust $(VENV)/.wheel $(VENV)/.dev ## each extra alone in an empty environment (minutes, needs a package index)
	BLOOMTIDE_WHEEL=$$(echo $(VENV)/wheel/*.whl) $(PYTEST) tests/package $(PYTEST_ARGS)

# The wheel that the tests of the package install; what is published is compiled for speed (`make wheel`).
$(VENV)/.wheel: $(VENV)/.build $(shell find python -type f -name '*.py*' -not -path '*/__pycache__/*') README.md
	rm -rf $(VENV)/wheel && $(BIN)/maturin build --profile quick --locked --out $(VENV)/wheel --interpreter $(BIN)/python
	@touch $@

$(VENV)/.sqlalchemy20: requirements/sqlalchemy20.txt $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --require-hashes --no-deps --target $(VENV)/sqlalchemy20 -r $<
	@touch $@

lint: rust $(VENV)/.build $(VENV)/.dev $(VENV)/.docs ## formatting, lints, types, stubs and documentation
	cargo fmt --all --check
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo fmt --check --manifest-path benchmarks/limit/Cargo.toml
	cargo clippy --locked --workspace --all-targets -- --deny warnings
	cargo clippy --locked --manifest-path fuzz/Cargo.toml -- --deny warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest bloomtide._core
	$(BIN)/mkdocs build --strict --quiet
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/feature.yml
	$(BIN)/zizmor --offline --quiet .github

bench: rust $(VENV)/.release $(VENV)/.dev $(VENV)/.bench ## measure against the peers (long); writes benchmarks/results
	$(BIN)/python -m benchmarks

proof: $(VENV)/.release ## false-positive rates at 10^9 and 10^8 keys (very long, needs gigabytes)
	$(BIN)/python -m benchmarks.proof

experiments: $(VENV)/.release $(VENV)/.dev $(VENV)/.docs ## the papers' experiments at their size (minutes); writes CSV files and plots
	$(BIN)/python experiments/partitioned-sbf-dcf all --size paper
	$(BIN)/python experiments/time-decaying-bloom-filters all --size paper
	$(BIN)/python experiments/multi-layer-bloom-filter-url all --size paper
	$(BIN)/python experiments/multi-bloom-filters-history all --size paper
	$(BIN)/python experiments/beach-web-caching all --size paper

crawl: $(VENV)/.release $(VENV)/.dev ## a hundred thousand local pages by Scrapy, with its filter and ours, one crawl killed (minutes)
	$(BIN)/python -m benchmarks.crawl

spark: $(VENV)/.release $(VENV)/.dev $(VENV)/.spark ## builds and joins beside those of Spark itself (long; SPARK_ARGS="--rows 10000000" for less)
	$(BIN)/python -m benchmarks.spark $(SPARK_ARGS)

kills: $(VENV)/.build $(VENV)/.dev $(VENV)/.spark ## a history's writer and a loaded server killed a hundred times and more, then every event looked for (minutes)
	BLOOMTIDE_KILLS=200 $(BIN)/python -m pytest --timeout=3600 tests/history_store/test_kill.py tests/history_store/test_ingest_kills.py tests/cli/test_log_files.py
	BLOOMTIDE_KILLS=100 $(BIN)/python -m pytest --timeout=3600 tests/server/test_kill.py tests/monitor/test_crashes.py tests/monitor/test_watch_kills.py tests/durable
	BLOOMTIDE_KILLS=3 $(BIN)/python -m pytest --timeout=3600 tests/integrations/spark/test_processes.py
	BLOOMTIDE_CLIENTS=10000 $(BIN)/python -m pytest tests/server/test_bad_input.py -k ten_thousand

damage: $(VENV)/.build $(VENV)/.dev ## 12 000 times one file of a history damaged in some way, then everything asked of it by readers and writers (minutes)
	BLOOMTIDE_TRIALS=12000 $(BIN)/python -m pytest --timeout=3600 -n 2 tests/history_store/test_matrix.py

shop: $(VENV)/.build $(VENV)/.dev ## the example shop on http://127.0.0.1:8000, with and without the guard by a switch
	$(BIN)/python examples/shop

oracle: $(VENV)/.release $(VENV)/.dev ## a million operations on each structure beside an exact model, and every planted fault (minutes)
	$(BIN)/python -m benchmarks.oracle

histories: $(VENV)/.build $(VENV)/.dev ## 20 000 random schemas and histories of writes a database that try to make a DatabaseGuard say a wrong no (HISTORIES_ARGS="--database sqlite" for less)
	$(BIN)/python -m benchmarks.guard_histories $(HISTORIES_ARGS)

equal: $(VENV)/.release ## a million operations on every structure that counts: all answer alike
	$(BIN)/python -m benchmarks.equivalence

docs: $(VENV)/.docs ## build the documentation into site/
	$(BIN)/mkdocs build --strict

plots: $(VENV)/.build $(VENV)/.docs ## draw the plots of the documentation again and print their numbers
	for plot in bloom_error bloom_memory derivations counting_memory counting_zipf skew_memory policies fading hot_decay url_layers history_segments history_errors; do \
		$(BIN)/python -m docs.plots.$$plot || exit 1; done

pictures: $(VENV)/.build $(VENV)/.dev ## take the pictures of the monitor's page again (five minutes, needs Chromium)
	$(BIN)/python scripts/page_pictures.py

# Stable Rust refuses the sanitizer's flags unless RUSTC_BOOTSTRAP is set.
fuzz: export RUSTC_BOOTSTRAP := 1
fuzz: export PATH := $(CURDIR)/target/tools/bin:$(PATH)
fuzz: rust ## run each fuzz target for FUZZ_SECONDS
	cargo fuzz --version >/dev/null 2>&1 || cargo install --locked --root target/tools cargo-fuzz@0.13.2
	targets=$$(cargo fuzz list) && test -n "$$targets" && for target in $$targets; do \
		seeds=; test $$target = read && seeds=tests/golden/v1; \
		test $$target = history_segment && seeds=tests/golden/history; mkdir -p fuzz/corpus/$$target; \
		cargo fuzz run $$target fuzz/corpus/$$target $$seeds -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

lock: ## pin the Python requirements again (LOCK_ARGS=--upgrade for the newest)
	@scripts/require.sh uv
	requirements/lock $(LOCK_ARGS)

clean: ## remove everything that was built
	rm -rf $(VENV) dist target fuzz/target benchmarks/limit/target site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f python/bloomtide/*.so

# --- set-up -----------------------------------------------------------------------------------

.PHONY: rust
rust:
	@scripts/require.sh cargo

$(VENV)/.made:
	@scripts/require.sh python
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.dev $(VENV)/.bench $(VENV)/.docs $(VENV)/.spark: $(VENV)/.run

$(VENV)/.%: requirements/%.txt $(VENV)/.made
	@echo "bloomtide: installing the Python packages of $<" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --retries 1 --require-hashes --no-deps -r $< \
		2>$(VENV)/pip.log || { echo "bloomtide: the packages of $< could not be installed: connect to the network once," \
		"later runs work without (details: $(VENV)/pip.log)" >&2; exit 1; }
	@touch $@

$(VENV)/.build: $(CORE) $(VENV)/.run
	@scripts/build.sh quick
	@touch $@

# What measures speed measures what a release ships. It stands in for the quick build too.
$(VENV)/.release: $(CORE) $(VENV)/.run
	@scripts/build.sh release
	@touch $(VENV)/.build $@
