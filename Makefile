# Every target sets up what it needs on a fresh Debian 12 machine with Python 3.11.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PROCESSES ?= $(shell expr `nproc` + 1)  # of tests: one more than there are cores, since some wait for disks and servers

.PHONY: help setup demo serve kernels test check style types docs bench crash faults machine politeness lab walls clean

help:  ## what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

setup: $(READY)  ## make the virtual environment in .venv

$(READY): requirements.lock pyproject.toml
	@sh scripts/debian-packages.sh python3-venv "$(PYTHON) -c 'import venv, ensurepip'"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(READY)  ## the service, two small crawlers over a tiny local web, a summary
	$(BIN)/python -m demo.run

serve: $(READY)  ## the guide on http://127.0.0.1:8080 until Ctrl-C
	@$(BIN)/crawlguide serve --port 8080

kernels: $(READY)  ## compile all kernels and keep the machine code (two minutes, then at once)
	$(BIN)/python scripts/kernels.py

test: $(READY) kernels  ## all tests, side by side
	@sh scripts/debian-packages.sh strace "command -v strace"
	@sh scripts/debian-packages.sh iproute2 "command -v ip || test -x /sbin/ip"
	@sh scripts/debian-packages.sh chromium "command -v chromium"
	@sh scripts/debian-packages.sh curl "command -v curl"
	$(BIN)/python -m pytest tests --numprocesses $(PROCESSES) --dist worksteal

check: style types docs  ## style, room order, types, links of the documentation; whether it is true the tests say

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(READY)
	$(BIN)/mypy --num-workers auto

docs: $(VENV)/.docs  ## the documentation as pages in site/; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

$(VENV)/.docs: $(READY) requirements-docs.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.lock
	@touch $@

bench: $(READY)  ## what asks, tells and starts cost at 100 k, 1 M and 5 M URLs, beside other frontiers (minutes)
	$(BIN)/crawlguide bench --peers --json bench.json

crash: $(READY)  ## 50 × kill -9 under 8 clients, every fault point, and that no ack precedes its fsync
	@sh scripts/debian-packages.sh strace "command -v strace"
	$(BIN)/python -m tests.crash.kill --kills 50
	$(BIN)/python -m tests.crash.kill --points
	$(BIN)/python -m tests.crash.ordering

faults: $(READY)  ## every single call to the disk fails once, in its turn
	EVERY_IO_CALL=1 $(BIN)/python -m pytest tests/store/test_disk_faults.py --timeout 3600

machine: $(READY)  ## long random histories: the embedded store against the memory store, with restarts
	MACHINE_EXAMPLES=300 $(BIN)/python -m pytest tests/store/test_machine.py --timeout 3600

politeness: $(READY)  ## 16 crawlers on 50 hosts for a minute, four times: usual, killed, strict, strict and killed
	$(BIN)/python -m tests.politeness.trial --seconds 60

lab: $(READY)  ## every policy on the recorded webs beside this folder, with reports (hours)
	for web in docsweb debpkg wikispeedia; do \
	  $(BIN)/crawlguide lab run --web ../shared/data/webs/$$web --policies all --json lab-$$web.json --html lab-$$web.html || exit 1; \
	done

walls: $(READY)  ## the proofs behind docs/adr: an exact loop on a recorded web, the store protocol on a real Redis
	@sh scripts/debian-packages.sh redis-server "command -v redis-server"
	$(BIN)/python -m pytest bench/walls
	$(BIN)/python -m bench.walls.measure_redis
	$(BIN)/python bench/relational.py

clean:  ## remove what the other targets made
	rm -rf site $(VENV) .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
