# Every target sets up what it needs on a fresh Debian 12 machine with Python 3.11.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
RUN    := $(BIN)/python -m scripts.quietly
PROCESSES ?= $(shell expr `nproc` + 1)  # of tests: one more than there are cores, since some wait for disks and servers

GO_PACKAGES := /usr/share/gocode/src
JAVA_PACKAGES := /usr/share/java

# How much is done: the usual amount, or with QUICK=1 so little that it takes a minute at most; `make test` runs each target so.
# Each amount can be named as well, such as `make bench URLS=10000` or `make crash KILLS=5`.
amount    = $(if $(QUICK),$(2),$(1))
PORT     ?= 8080
DATA     ?=
OUT      ?= .
FETCHES  ?= $(call amount,400,60)
URLS     ?= $(call amount,100000 1000000 5000000,10000)
LIVED    ?=
ROUNDS   ?= $(call amount,500,150)
KILLS    ?= $(call amount,50,1)
POINTS   ?= $(call amount,,after_write)
TELLS    ?= $(call amount,200,8)
FAULTS   ?= $(call amount,,begins_with_the_next_try)
EXAMPLES ?= $(call amount,300,1)
TENANTS  ?= $(call amount,200,1)
SECONDS  ?= $(call amount,60,7)
SEED     ?= 1
IDLE     ?= $(call amount,10000,500)
TRIES    ?= $(call amount,1,2)
TRIALS   ?= $(call amount,usual killed strict strict-killed,usual)
WEBS     ?= $(call amount,$(addprefix ../shared/data/webs/,docsweb debpkg wikispeedia),synthetic:pages=300)
QUICK_POLICIES := random,relational,layered
POLICIES ?= $(call amount,all,$(QUICK_POLICIES))
CHANGES  ?= $(wildcard ../shared/data/changes/changes.parquet)
CRAWLERS ?= $(call amount,httpx requests crawlee crawl4ai,httpx crawlee)
TASKS    ?= $(call amount,2,1)
BUDGET   ?= $(call amount,500,40)
WALL_WEB ?= $(call amount,../shared/data/webs/docsweb,synthetic:pages=300)

.PHONY: help setup demo serve kernels wheel test check style types docs bench crawling crash faults machine tenants politeness overload holds fuzz \
  lab freshness stopping harvest walls frontier hard doors bus clean

help:  ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12
	@echo "With QUICK=1 a target does so little that it takes a minute at most: make crash QUICK=1"

setup: $(READY)  ## make the virtual environment in .venv

$(READY): requirements.lock pyproject.toml $(wildcard src/crawlguide/gateway/*/*.proto)  # whose Python the install makes
	@sh scripts/debian-packages.sh python3-venv "$(PYTHON) -c 'import venv, ensurepip'"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(READY) kernels  ## let the built-in crawler and a Scrapy spider share a guide over a small local web; compare with breadth first
	$(RUN) demo.run $(FETCHES)

serve: $(READY)  ## serve a guide on http://127.0.0.1:8080 until Ctrl-C (PORT=, DATA=)
	@$(BIN)/crawlguide serve --port $(PORT) $(if $(DATA),--data $(DATA))

kernels: $(READY)  ## compile all numba kernels and keep the machine code (a minute the first time)
	$(RUN) scripts.kernels

wheel: $(READY)  ## build a wheel in dist/ that carries the machine code of the kernels, so that its first start need not compile
	$(RUN) scripts.wheel $(if $(filter-out .,$(OUT)),--out $(OUT)) $(if $(QUICK),--only crawlguide.core.columns)

test: $(READY) kernels  ## run all tests in parallel
	@sh scripts/debian-packages.sh strace "command -v strace"
	@sh scripts/debian-packages.sh iproute2 "command -v ip || test -x /sbin/ip"
	@sh scripts/debian-packages.sh chromium "command -v chromium"
	@sh scripts/debian-packages.sh curl "command -v curl"
	@sh scripts/debian-packages.sh nodejs "command -v node"
	@sh scripts/debian-packages.sh golang-go "command -v go"
	@# first the newer of two packages that exclude each other, or gRPC brings the older one, which reads no generated code of today
	@sh scripts/debian-packages.sh golang-github-golang-protobuf-1-5-dev "test -f $(GO_PACKAGES)/github.com/golang/protobuf/proto/wire.go"
	@sh scripts/debian-packages.sh golang-google-grpc-dev "test -d $(GO_PACKAGES)/google.golang.org/grpc"
	@sh scripts/debian-packages.sh golang-google-protobuf-dev "test -d $(GO_PACKAGES)/google.golang.org/protobuf"
	@sh scripts/debian-packages.sh protobuf-compiler "command -v protoc"
	@sh scripts/debian-packages.sh protoc-gen-go "command -v protoc-gen-go"
	@sh scripts/debian-packages.sh protoc-gen-go-grpc "command -v protoc-gen-go-grpc"
	@sh scripts/debian-packages.sh default-jdk-headless "command -v javac"
	@sh scripts/debian-packages.sh protobuf-compiler-grpc-java-plugin "command -v grpc_java_plugin"
	@sh scripts/debian-packages.sh libgrpc-java "test -e $(JAVA_PACKAGES)/grpc-netty.jar"
	@sh scripts/debian-packages.sh libnetty-java "test -e $(JAVA_PACKAGES)/netty-codec-http2.jar"
	@sh scripts/debian-packages.sh libprotobuf-java "test -e $(JAVA_PACKAGES)/protobuf-util.jar"
	@sh scripts/debian-packages.sh libperfmark-java "test -e $(JAVA_PACKAGES)/perfmark-api.jar"
	@sh scripts/debian-packages.sh libguava-java "test -e $(JAVA_PACKAGES)/guava.jar"
	@sh scripts/debian-packages.sh libgoogle-gson-java "test -e $(JAVA_PACKAGES)/gson.jar"
	@sh scripts/debian-packages.sh libgeronimo-annotation-1.3-spec-java "test -e $(JAVA_PACKAGES)/geronimo-annotation-1.3-spec.jar"
	@sh scripts/debian-packages.sh redis-server "command -v redis-server"
	$(BIN)/python -m pytest tests --numprocesses $(PROCESSES) --dist worksteal

check: style types docs  ## check style, the order of packages, types, and the links of the documentation

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(READY)
	$(BIN)/mypy --num-workers auto

docs: $(VENV)/.docs  ## build the documentation in site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

$(VENV)/.docs: $(READY) requirements-docs.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.lock
	@touch $@

bench: $(READY)  ## measure asks, tells and starts at 100 k, 1 M and 5 M URLs, beside other frontiers (minutes; URLS=, LIVED=, ROUNDS=)
	$(BIN)/crawlguide bench $(addprefix --urls ,$(URLS)) $(addprefix --lived ,$(LIVED)) --rounds $(ROUNDS) --peers --json $(OUT)/bench.json

crash: $(READY)  ## kill -9 a server under load 50 times and at every fault point; check that nothing acknowledged is lost
	@sh scripts/debian-packages.sh strace "command -v strace"
	$(RUN) tests.crash.kill --kills $(KILLS)
	$(RUN) tests.crash.kill --points $(POINTS)
	$(RUN) tests.crash.ordering --one-by-one $(TELLS) --together $(TELLS)

faults: $(READY)  ## let every single call to the disk fail once (an hour)
	EVERY_IO_CALL=1 $(BIN)/python -m pytest tests/store/test_disk_faults.py --timeout 3600 $(if $(FAULTS),-k $(FAULTS))

machine: $(READY)  ## compare the embedded store with the memory store over long random histories (EXAMPLES=)
	MACHINE_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest tests/store/test_machine.py --timeout 3600

tenants: $(READY)  ## compare two tenants behind one server with each alone, over 10,000 random operations (TENANTS=)
	TENANT_EXAMPLES=$(TENANTS) $(BIN)/python -m pytest tests/gateway/access/test_tenants.py --timeout 3600

politeness: $(READY)  ## measure the delays of 16 crawlers at 50 hosts: usual, killed, strict, strict and killed (SECONDS=)
	$(RUN) tests.politeness.trial --seconds $(SECONDS) --tries $(TRIES) $(TRIALS)

overload: $(READY)  ## send five times what the server can answer, and open 10,000 idle connections (SECONDS=, IDLE=)
	$(RUN) bench.overload --seconds $(SECONDS) --idle $(IDLE)

holds: $(READY)  ## measure how long the largest request of each kind keeps others waiting (minutes)
	$(RUN) bench.holds $(if $(QUICK),--urls 2000 --only leases)

fuzz: $(READY)  ## send random requests and messages, right and wrong, and fail if the server is at fault (SECONDS=, SEED=)
	$(RUN) tests.fuzz.run --seconds $(SECONDS) --seed $(SEED)

lab: $(READY)  ## run every policy on the recorded webs in ../shared, with reports (hours; WEBS=, POLICIES=)
	for web in $(WEBS); do \
	  out=$(OUT)/lab-$$(basename $$web | cut -d: -f1); \
	  $(BIN)/crawlguide lab run --web $$web --policies $(POLICIES) $(if $(QUICK),--quick --budget 50) \
	    --json $$out.json --html $$out.html || exit 1; \
	done

freshness: $(READY)  ## compare orders of recrawling on made-up webs and on the recorded changes in ../shared, with a report (an hour; CHANGES=)
	$(BIN)/crawlguide lab freshness --webs all $(addprefix --histories ,$(CHANGES)) $(if $(QUICK),--quick --budgets 20 --pages 100) \
	  --json $(OUT)/lab-freshness.json --html $(OUT)/lab-freshness.html

hard: $(READY)  ## run layered, breadth first and keyword on webs where guidance could fail, and say who wins (minutes)
	$(RUN) bench.hard $(if $(QUICK),--kinds delayed news --tasks 1 --budget 60)

stopping: $(READY)  ## which share of the relevant pages crawls have found that stop at an estimated 80, 90, 95 % (half an hour; WEBS=)
	$(RUN) bench.stopping --webs $(WEBS) $(if $(QUICK),--tasks 1 --budget 300 --batch 10)

crawling: $(READY)  ## measure pages in a CPU second of the built-in crawler beside Scrapy, on a served web (minutes)
	$(RUN) bench.crawling $(if $(QUICK),--pages 60 --rounds 1 --without-scrapy)

harvest: $(READY)  ## what Scrapy, scripts, Crawlee and Crawl4AI find with and without a guide (ten minutes; WEBS=, CRAWLERS=, TASKS=, BUDGET=)
	for web in $(WEBS); do $(RUN) bench.scrapy_harvest --web $$web --tasks $(TASKS) --budget $(BUDGET) || exit 1; done
	$(RUN) bench.integrations_harvest --webs $(WEBS) --crawlers $(CRAWLERS) --tasks $(TASKS) --budget $(BUDGET)

walls: $(READY)  ## prove what docs/adr claims: the store protocol on a real Redis, and the order of an exact loop
	@sh scripts/debian-packages.sh redis-server "command -v redis-server"
	$(BIN)/python -m pytest bench/walls
	$(RUN) bench.walls.measure_redis $(if $(QUICK),--urls 6000)
	$(RUN) bench.relational --web $(WALL_WEB) $(if $(QUICK),--budget 50)

frontier: $(READY)  ## measure URLs in a second through the door for clients of URLFrontier, in and out
	$(RUN) bench.urlfrontier $(if $(QUICK),--urls 2000 --hosts 200 --rounds 1)

doors: $(READY)  ## measure what each door adds to an ask, beside its bare transport, at 1, 16 and 128 connections (minutes)
	$(RUN) bench.doors $(if $(QUICK),--urls 5000 --rounds 1 --asks 8 --connections 1 2)

bus: $(READY)  ## kill NATS for 30 s under load and check that nothing is lost or doubled
	$(RUN) tests.gateway.bus.trial $(if $(QUICK),--seconds 5 --away 2)

clean:  ## remove what the other targets made, but no data folder
	rm -rf bench.json lab-*.json lab-*.html site $(VENV) .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
