# Everything that is done with the project. `make` alone lists it.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
READY := $(VENV)/.ready

# Zone data comes from the pinned package alone; the machine's own may be years old.
export PYTHONTZPATH :=
# A machine that keeps no bytecode would compile Airflow anew in each of its processes.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPATH := $(CURDIR):$(CURDIR)/plugins
# For the tests' own imports of Airflow; the stack sets a home of its own.
export AIRFLOW_HOME ?= $(CURDIR)/.almanac/tests
export AIRFLOW__CORE__LOAD_EXAMPLES := False

TESTS ?= tests
# With a seed of its own, each process would name the cases that come from sets in another order.
PYTEST := PYTHONHASHSEED=0 $(PY) -m pytest --quiet

.PHONY: help setup demo up down env sql test quick check lint format types layers docs docs-fresh bench crash mutants \
	new-dag requirements browser queue-tools clean

help: ## list what can be done
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make the virtual environment from the pinned requirements

# The stamp is written last: a run that was cut off is done again.
$(READY): requirements.txt stack/bootstrap.sh
	@sh stack/bootstrap.sh "$(PYTHON)" "$(VENV)"
	@touch $@

demo: setup ## run the platform with demo data until Ctrl-C; EXIT=1 ends by itself, FRESH=1 makes the data anew, SYSTEM=clearpath runs its DAGs alone
	@exec $(PY) -m stack demo $(if $(EXIT),--exit) $(if $(FRESH),--fresh) $(if $(SYSTEM),--system "$(SYSTEM)")

up: setup ## start the platform without the demo
	@$(PY) -m stack up

down: setup ## end it
	@$(PY) -m stack down

env: setup ## print the addresses, logins and database URIs of the platform that is up
	@$(PY) -m stack env

sql: setup ## open a database of the stack that is up: make sql DB=clearpath
	@$(PY) -m stack sql "$(DB)"

# The tests on a whole stack run by themselves, after all others: beside them it would be short of breath. They share
# it, and take minutes of its day: in an order of its own each run would be another one.
# pytest's 5 says that TESTS names none of the one kind or the other.
test: setup browser queue-tools ## run every test (TESTS=tests/hooks for some)
	@$(PYTEST) -m "not live" --numprocesses auto $(TESTS) || [ $$? -eq 5 ]
	@$(PYTEST) -m live -p no:randomly $(TESTS) || [ $$? -eq 5 ]

quick: setup ## run the tests that start no Airflow process; under two minutes
	@$(PYTEST) -m "not live and not install and not slow" --numprocesses auto $(TESTS)

check: setup lint types layers docs-fresh test ## all that CI checks

lint: setup ## check style and form
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: setup ## put the code into form
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: setup ## check the types
	@$(BIN)/ty check

layers: setup ## check who may import whom
	@$(BIN)/lint-imports

docs: setup ## write the generated pages of docs/
	@$(PY) -m stack.docs
	@$(PY) -m tests.proof

docs-fresh: setup
	@$(PY) -m stack.docs --check
	@$(PY) -m tests.proof --check

bench: setup ## run the benchmarks
	@$(PY) -m bench

crash: setup ## end every job at each of its events, those that repeat themselves too
	@CRASH_POINTS=all $(PYTEST) --numprocesses auto tests/dags/test_promises.py -k test_killed_anywhere

mutants: setup ## break the code line by line and see that the tests notice
	@$(PY) -m tests.mutants

new-dag: setup ## begin a job: make new-dag ID=clearpath_my_job
	@$(PY) -m stack.new_dag "$(ID)"

requirements: setup ## pin anew what requirements.in asks for
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command "make requirements" --quiet requirements.in -o requirements.txt

browser: setup
	@$(PY) -m stack.browser

queue-tools: setup
	@$(PY) -m stack.queue_tools

clean: ## remove the virtual environment, the platform's data and all caches
	@if [ -x $(PY) ] && [ -d .almanac ]; then $(PY) -m stack down; fi
	rm -rf $(VENV) .almanac .pytest_cache .ruff_cache .hypothesis .import_linter_cache
