# Gatehouse. `make run` starts it, `make test` tests it; the rest serves those who build it.
SHELL := /bin/sh
VENV := .venv
SQLITE := (3, 34)
SQLITE_WORDS := 3.34
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
# The version it is tested with first. Looked for only where .venv is made.
BASE_PYTHON = $(shell for p in python3.11 python3.12 python3.13 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)
PYTEST := $(PY) -m pytest -q

.PHONY: run install test test-fast test-postgres test-slurm soak lint format bench bench-facility bench-collector \
  bench-events bench-polling bench-scheduler bench-auth bench-suspension demo-collector clean

run: $(STAMP)
	@exec $(PY) manage.py run

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@python="$(BASE_PYTHON)"; \
	test -n "$$python" || { echo "Gatehouse needs Python 3.11 or newer; this machine has none on its PATH." >&2; exit 1; }; \
	"$$python" -c 'import sqlite3, sys; v = sqlite3.sqlite_version_info; sys.exit(0 if v >= $(SQLITE) else f"Gatehouse needs SQLite $(SQLITE_WORDS) or newer; {sys.executable} has {sqlite3.sqlite_version}.")' || exit 1; \
	if ! $(PY) -m pip --version >/dev/null 2>&1; then \
		"$$python" -c 'import ensurepip, venv' 2>/dev/null || { echo "$$python lacks its venv module; install the package that brings it (Debian, Ubuntu: python3-venv, or $$python-venv) and run this again." >&2; exit 1; }; \
		"$$python" -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "Installing into $(VENV) …"
	@$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[server]' || \
		{ echo "Installing failed; what pip says above tells why. Run this again once it is mended." >&2; exit 1; }
	@touch $@

$(DEV_STAMP): $(STAMP)
	@$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[server,services,dev]'
	@touch $@

# Services that tests and benchmarks need are started by tests/support/services.py, where their programs are installed.
test: $(DEV_STAMP)
	@$(PY) -m tests.support.services -- $(MAKE) --no-print-directory lint test-fast test-postgres

test-fast:
	$(PYTEST) -n 2 -m "not soak and not slurm" tests

test-postgres:
	@if [ -n "$$TEST_DATABASE_URL" ]; then \
		DATABASE_URL="$$TEST_DATABASE_URL" $(PYTEST) -n 2 -m "sql and not soak and not slurm" tests; \
	elif [ "$$REQUIRE_ALL" = 1 ]; then echo "PostgreSQL is missing." >&2; exit 1; \
	else echo "PostgreSQL is missing: its half of the suite was skipped."; fi

test-slurm: $(DEV_STAMP)
	$(PYTEST) -m slurm tests/slurm

soak: $(DEV_STAMP)
	@$(PY) -m tests.support.services -- $(PYTEST) -m soak tests

lint: $(DEV_STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo
	git ls-files -z -- 'templates/*.html' | xargs -0 -r $(VENV)/bin/djade --check --target-version 5.2
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) -m tests.support.file_lengths

format: $(DEV_STAMP)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	git ls-files -z -- 'templates/*.html' | xargs -0 -r $(VENV)/bin/djade --target-version 5.2

bench-facility: $(DEV_STAMP)
	@$(PY) -m tests.bench.facility $(if $(ROWS),--rows $(ROWS)) $(if $(FILE),--file $(FILE))

# As root, or the kernel tells nothing and /proc is walked. SSH_LOG is how many come by SSH a second, if its log is read.
bench-collector: $(DEV_STAMP)
	@$(PY) -m tests.bench.collector $(if $(SSH_LOG),--ssh-log $(SSH_LOG))

# Five thousand sockets on servers of its own. SECONDS is how long jobs change, in each of three variants.
bench-events: $(DEV_STAMP)
	@$(PY) -m tests.bench.events $(if $(SUBSCRIBERS),--subscribers $(SUBSCRIBERS)) $(if $(RATE),--rate $(RATE)) \
		$(if $(SECONDS),--seconds $(SECONDS))

# A loop of squeue, `gatehouse wait`, and the loop with the portal's squeue, on a real Slurm. As root.
bench-polling: $(DEV_STAMP)
	@$(PY) -m tests.bench.polling $(if $(JOBS),--jobs $(JOBS))

# The token check alone, and GET /api/v1/me from two server processes.
bench-auth: $(DEV_STAMP)
	@$(PY) -m tests.bench.auth $(if $(SECONDS),--seconds $(SECONDS)) $(if $(PROCESSES),--processes $(PROCESSES))

# From a kill switch to a thousand closed sockets and 403, on servers of its own.
bench-suspension: $(DEV_STAMP)
	@$(PY) -m tests.bench.suspension $(if $(SOCKETS),--sockets $(SOCKETS)) $(if $(PROCESSES),--processes $(PROCESSES))

# What the reader asks a real Slurm while one socket listens, and while five thousand do. As root.
bench-scheduler: $(DEV_STAMP)
	@$(PY) -m tests.bench.scheduler $(if $(SUBSCRIBERS),--subscribers $(SUBSCRIBERS)) $(if $(SECONDS),--seconds $(SECONDS))

# Two hours of an agent's and a person's work with real processes, through a collector and a portal, in two minutes.
demo-collector: $(STAMP)
	@$(PY) -m portal.demo.node

bench: $(DEV_STAMP)
	@$(PY) -m tests.bench.ingest

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
