# kldiv. `make run` installs what is missing, builds and serves; `make test` tests.
#
# VARIANT=asan or tsan builds the same with a sanitizer, in its own folder.

VARIANT ?= release
PREFIX ?= /usr/local
DESTDIR ?=
SECONDS_EACH ?= 5
VERSION := $(shell sed -n 's/^\#define KLDIV_VERSION "\(.*\)"/\1/p' lib/kldiv.h)

CC = gcc
CLANG = clang
B = build/$(VARIANT)
MACHINE := $(shell uname -m)

# ARCH=arm64 or amd64, a Debian name, compiles for that machine where it is another: make deps-image ARCH=arm64
ARCH =
TRIPLET_amd64 = x86_64-linux-gnu
TRIPLET_arm64 = aarch64-linux-gnu
CROSS_ARCH := $(if $(ARCH),$(filter-out $(shell dpkg --print-architecture),$(ARCH)))
ifneq ($(CROSS_ARCH),)
TRIPLET := $(TRIPLET_$(CROSS_ARCH))
CC = $(TRIPLET)-gcc
AR = $(TRIPLET)-ar
MACHINE := $(TRIPLET:%-linux-gnu=%)
B = build/$(VARIANT)-$(CROSS_ARCH)
endif

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
           -Wpointer-arith -Wwrite-strings -Wvla
HARDENING = -fstack-protector-strong -fstack-clash-protection -fPIC $(HARDENING_$(MACHINE))
HARDENING_x86_64 = -fcf-protection
HARDENING_aarch64 = -mbranch-protection=standard
OPTIMIZE_release = -O2 -D_FORTIFY_SOURCE=2
OPTIMIZE_asan = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined \
                -fno-omit-frame-pointer
OPTIMIZE_tsan = -O1 -g -fsanitize=thread
# Each multiplication and addition rounds by itself unless the source says fma.
CFLAGS += -std=c11 -D_GNU_SOURCE -I. $(WARNINGS) $(HARDENING) $(OPTIMIZE_$(VARIANT)) \
          -ffp-contract=off -fvisibility=hidden -pthread -MMD -MP
LDFLAGS += -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code -pthread $(filter -fsanitize%,$(OPTIMIZE_$(VARIANT)))

# Where requests are read, not in lib: there zeroed arrays cost 17 % on average and 84 % at most, checked
# copies 20 % of rows of 10, and valgrind would see no variable that nobody has set.
STRICT_release = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
$(B)/api/%.o $(B)/server/%.o: CFLAGS += -ftrivial-auto-var-init=zero $(STRICT_$(VARIANT))

API_LIBS = -lsqlite3 -lpq -ljansson -lcsv -lzip -lz
SERVER_LIBS = -lmicrohttpd -lcurl -lgnutls -lseccomp
TEST_LIBS = -lcriterion -lquadmath -lpq
PACKAGES_BUILD = gcc libc6-dev pkg-config libmicrohttpd-dev libjansson-dev libcsv-dev libsqlite3-dev libpq-dev libzip-dev \
                 zlib1g-dev libcurl4-gnutls-dev libgnutls28-dev libseccomp-dev
PACKAGES_DISTRIBUTED = python3-distributed python3-mpi4py openmpi-bin
PACKAGES_TEST = $(PACKAGES_BUILD) $(PACKAGES_DISTRIBUTED) libcriterion-dev postgresql postgresql-client python3-numpy clang clang-format clang-tidy cppcheck \
                libclang-rt-14-dev valgrind gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user \
                nginx-light haproxy systemd curl jq chromium-headless-shell openssl r-base-core r-cran-httr r-cran-jsonlite python3-requests python3-sklearn $(PACKAGES_NODE) \
                $(PACKAGES_MANIFESTS)
PACKAGES_MANIFESTS = prometheus prometheus-alertmanager docker-compose python3-yaml
# Debian's node, unless another is there already.
PACKAGES_NODE = $(if $(shell command -v node 2>/dev/null),,nodejs) $(if $(shell command -v npm 2>/dev/null),,npm)

$(B)/tests/%.o: CFLAGS += -Wno-conversion -DKLDIV_BINARY='"$(B)/kldivd"' -DKLDIV_FAULTS='"$(B)/tests/faults.so"'

# ---- The pages: files of api/web and of npm's packages, compressed; PAGE=no builds without them.
PAGE = yes
PAGE_SCRIPTS = dashboard/start.js dashboard/calculator.js docs/docs.js docs/theme.js
ASSETS_yes = $(PAGE_SCRIPTS) $(patsubst api/web/%,%,$(wildcard $(addprefix api/web/*/*.,html css svg))) \
             dashboard/uplot.js dashboard/uplot.css dashboard/licenses docs/swagger-ui-bundle.js docs/swagger-ui.css
ASSETS = $(sort $(ASSETS_$(PAGE)))
PACKED = $(ASSETS:%=build/assets/%.gz)

objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)))
LIB = $(call objects,lib/*.c lib/*/*.c)
API = $(call objects,api/*.c api/*/*.c api/*/*/*.c)
SERVER = $(call objects,server/*.c)
SERVER_BUT_MAIN = $(filter-out %/main.o,$(SERVER))
# Folders of suites. The others under tests/ are programs of their own.
SUITES = $(wildcard $(addprefix tests/,$(addsuffix /*.c,lib formats tables service shared_memory monitors store server faults project)))
TESTS = $(call objects,$(SUITES) tests/support/*.c)

.PHONY: all run test check load soak proxies unprivileged uninitialized contract manifests journey postgresql distributed units page deps readme lint bench fuzz sanitize neon install clean golden numbers peer
all: build/kldivd $(B)/libkldiv.a $(B)/libkldiv.so

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC   $@"
	@$(CC) $(CFLAGS) -c $< -o $@
$(B)/api/endpoints.o: api/openapi.json
$(B)/api/web/files.o: build/assets/list.h $(PACKED)

$(B)/libkldiv.a: $(LIB)
	@rm -f $@; $(AR) rcs $@ $^
$(B)/libapi.a: $(API)
	@rm -f $@; $(AR) rcs $@ $^
$(B)/libkldiv.so: $(LIB) lib/kldiv.map
	@echo "  LINK $@"
	@$(CC) -shared -Wl,-soname,libkldiv.so.0,--version-script=lib/kldiv.map $(filter-out -pie,$(LDFLAGS)) $(LIB) -lm -o $@
$(B)/kldivd: $(SERVER) $(B)/libapi.a $(B)/libkldiv.a
	@echo "  LINK $@"
	@$(CC) $(LDFLAGS) $^ $(SERVER_LIBS) $(API_LIBS) -lm -o $@
build/kldivd: $(B)/kldivd
	@cp --remove-destination $< $@
# Preloaded into a server by tests. Not instrumented: it is called before a sanitizer is ready.
$(B)/tests/faults.so: tests/preload/faults.c tests/preload/faults.h
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) -O2 $(filter-out -MMD -MP $(OPTIMIZE_$(VARIANT)),$(CFLAGS)) -shared $< -o $@
$(B)/tests/all: $(B)/kldivd $(B)/tests/faults.so $(TESTS) $(SERVER_BUT_MAIN) $(B)/libapi.a $(B)/libkldiv.a
	@echo "  LINK $@"
	@$(CC) $(LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc $(filter %.o %.a,$^) $(TEST_LIBS) \
	    $(SERVER_LIBS) $(API_LIBS) -lm -o $@

$(B)/stress/%: tests/stress/%.c $(B)/libkldiv.a
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) $(CFLAGS) -Wno-conversion $(LDFLAGS) $^ -lm -o $@

$(B)/load: $(call objects,tests/load/*.c)
	@echo "  LINK $@"
	@$(CC) $(LDFLAGS) $^ -o $@

PROXIES = $(call objects,tests/proxies/*.c tests/support/process.c tests/load/wire.c tests/load/calls.c)
$(B)/proxies: $(PROXIES) $(B)/libapi.a $(B)/libkldiv.a
	@echo "  LINK $@"
	@$(CC) $(LDFLAGS) $^ -lcriterion -lcurl $(API_LIBS) -lm -o $@

SLEEF = $(shell pkg-config --libs sleef 2>/dev/null)
$(B)/bench/sleef: CFLAGS += $(if $(filter x86_64,$(MACHINE)),-mavx512f) # its header asks for it
BENCHES = $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
$(B)/bench/%: tests/bench/%.c tests/bench/measure.h $(B)/libkldiv.a
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) $(CFLAGS) -Wno-conversion $(LDFLAGS) $(filter %.c %.a,$^) -lmicrohttpd $(SLEEF) -lm -o $@

$(B)/bench/tables: tests/bench/tables.c tests/bench/measure.h $(B)/libapi.a $(B)/libkldiv.a
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) $(CFLAGS) -Wno-conversion $(LDFLAGS) $(filter %.c %.a,$^) $(API_LIBS) -lm -o $@

# ---- For people

# Installs what is missing, builds, serves, and says how to call it.
run:
	@{ pkg-config --exists libmicrohttpd jansson sqlite3 libpq libzip zlib libcurl gnutls libseccomp && \
	    echo '#include <csv.h>' | $(CC) -E - && { [ $(PAGE) = no ] || command -v npm; }; } >/dev/null 2>&1 || $(MAKE) deps-run
	@$(MAKE) --no-print-directory all
	@printf '\n%s\n' "Try:  curl '$(URL)/kl_div?reduction=batchmean' -d '"'$(EXAMPLE)'"'"
	@printf '\n%s\n%s\n%s\n' "Or watch numbers drift (with tables of your own: curl -T reference.csv $(URL)/monitors/NAME):" \
	    "      seq 1000 | sed '1i x' | curl -T - $(URL)/monitors/try" \
	    "      seq 400 900 | sed '1i x' | curl --data-binary @- $(URL)/monitors/try/observations"
	@[ $(PAGE) = no ] || printf '\n%s\n' "Pages:  $(URL)/  $(URL)/dashboard/  $(URL)/docs"
	@printf '\n%s\n\n' "Monitors are kept in $(STORE): make run STORE=memory forgets them."
	@build/kldivd --listen $(LISTEN) --store $(STORE)

LISTEN = 127.0.0.1:8080
URL = http://$(LISTEN)
STORE = sqlite:build/kldiv.db
EXAMPLE = {"input": [[-1, -0.5], [-2, -0.2]], "target": [[0.4, 0.6], [0.1, 0.9]]}
APT = $(if $(filter 0,$(shell id -u)),,sudo) env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -qq
# A machine in its first minutes has apt's locks taken. DPkg::Lock::Timeout waits for dpkg's alone, not for those of
# lists and archives: so whatever lock it is, apt is run again, for ten minutes.
INSTALL_PACKAGES = run() { echo "apt-get $$*"; left=120; until said=$$($(APT) "$$@" 2>&1 >&3); do \
        case $$said in *"Could not get lock"*) left=$$((left - 1));; *) left=0;; esac; \
        echo "$$said"; [ $$left -gt 0 ] || return 1; sleep 5; \
    done; [ -z "$$said" ] || echo "$$said"; } 3>&1 >&2; run update && run install -y --no-install-recommends

CONTRACT_TOOLS = tests/contract/node_modules/.package-lock.json
MANIFEST_TOOLS = tests/manifests/node_modules/.package-lock.json
PAGE_TOOLS = tests/page/node_modules/.package-lock.json
MODULES = api/web/node_modules
WEB_PACKAGES = api/web/node_modules/.package-lock.json
.PHONY: deps-run deps-test
deps: deps-test $(CONTRACT_TOOLS) $(MANIFEST_TOOLS) $(PAGE_TOOLS) $(WEB_PACKAGES)
deps-run:
	@$(INSTALL_PACKAGES) $(PACKAGES_BUILD) $(if $(filter yes,$(PAGE)),$(PACKAGES_NODE))
deps-test:
	@dpkg -s $(PACKAGES_TEST) >/dev/null 2>&1 || { $(INSTALL_PACKAGES) $(PACKAGES_TEST); }

# npm's record of what it installed tells whether that is what the lockfile wants.
%/node_modules/.package-lock.json: %/package-lock.json
	@command -v npm >/dev/null || { echo "The pages and their tests need node and npm (apt-get install nodejs npm)."; \
	    echo "Without them:  make PAGE=no"; exit 1; } >&2
	cd $* && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && \
	    touch node_modules/.package-lock.json

.DELETE_ON_ERROR:
ifeq ($(filter yes no,$(PAGE)),)
$(error PAGE is yes or no)
endif
# Packs the pages: the modules of a script as one file, scripts and styles without blanks and comments. gzip
# has no time, so that the same files give the same bytes.
assets: build/assets/list.h
$(PAGE_SCRIPTS:%=build/assets/%.gz): build/assets/%.gz: api/web/% $(wildcard api/web/*/*.js) $(WEB_PACKAGES)
	@mkdir -p $(@D)
	@$(MODULES)/.bin/esbuild --bundle --minify --format=esm --target=es2022 \
	    --log-level=warning $< --outfile=build/assets/$* && gzip -9nc build/assets/$* > $@
build/assets/%.css.gz: api/web/%.css $(WEB_PACKAGES)
	@mkdir -p $(@D)
	@$(MODULES)/.bin/esbuild --minify --log-level=warning $< --outfile=build/assets/$*.css && gzip -9nc build/assets/$*.css > $@
build/assets/%.gz: api/web/%
	@mkdir -p $(@D)
	@gzip -9nc $< > $@
build/assets/dashboard/uplot.js.gz: $(WEB_PACKAGES)
	@mkdir -p $(@D)
	@cp $(MODULES)/uplot/dist/uPlot.iife.min.js $(@:.gz=) && echo 'export default uPlot;' >> $(@:.gz=) && \
	    gzip -9nc $(@:.gz=) > $@
build/assets/dashboard/uplot.css.gz: $(WEB_PACKAGES)
	@mkdir -p $(@D)
	@gzip -9nc $(MODULES)/uplot/dist/uPlot.min.css > $@
build/assets/docs/swagger-ui-bundle.js.gz build/assets/docs/swagger-ui.css.gz: build/assets/docs/%.gz: $(WEB_PACKAGES)
	@mkdir -p $(@D)
	@gzip -9nc $(MODULES)/swagger-ui-dist/$* > $@
LICENSES = uplot/LICENSE swagger-ui-dist/LICENSE swagger-ui-dist/NOTICE \
           swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt
build/assets/dashboard/licenses.gz: $(WEB_PACKAGES)
	@mkdir -p $(@D)
	@for f in $(LICENSES); do printf '\n==== %s\n\n' $$f; cat $(MODULES)/$$f || exit 1; done > $(@:.gz=)
	@gzip -9nc $(@:.gz=) > $@
# The list of them in C, replaced only when it changes.
.PHONY: assets FORCE
$(PACKED): Makefile
build/assets/list.h: $(PACKED) FORCE
	@mkdir -p $(@D)
	@{ printf '#define ASSETS(X)'; n=0; for f in $(ASSETS); do \
	    printf ' \\\n    X(%d, "%s")' $$n $$f; n=$$((n + 1)); done; echo; } > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The tests as they are, the server under load and behind proxies, the tests with fewer rights, then the public contract, the READMEs, the library over processes and the pages, then the tests under sanitizers,
# those of the kernels on an emulated ARM, then some seconds of each fuzzer, then lint.
CPUS := $(shell nproc)
test: deps-test
	$(MAKE) -j$(CPUS) programs
	$(MAKE) check
	$(MAKE) local
	$(MAKE) load
	$(MAKE) memory
	$(MAKE) proxies
	$(MAKE) units
	$(MAKE) unprivileged
	$(MAKE) contract
	$(MAKE) manifests
	$(MAKE) journey
	$(MAKE) postgresql
	$(MAKE) distributed
	$(MAKE) page
	$(MAKE) -j$(CPUS) programs VARIANT=asan
	$(MAKE) -j$(CPUS) build/tsan/stress/pool build/tsan/kldivd VARIANT=tsan
	$(MAKE) sanitize
	$(MAKE) uninitialized
	$(MAKE) neon
	$(MAKE) -j$(CPUS) fuzzers
	$(MAKE) fuzz
	$(MAKE) lint

# The build of an image: fewer packages, and the tests that hold there: clients need more languages. Programs for another
# machine are not run, but for the kernels, by qemu.
PACKAGES_OTHER = $(filter-out gcc pkg-config,$(PACKAGES_BUILD))
PACKAGES_IMAGE = $(if $(CROSS_ARCH),gcc-$(subst _,-,$(TRIPLET)) $(PACKAGES_OTHER:%=%:$(CROSS_ARCH)) qemu-user, \
                 $(PACKAGES_BUILD) libcriterion-dev) make python3 $(if $(filter yes,$(PAGE)),$(PACKAGES_NODE))
.PHONY: deps-image check-image image-files image-test
deps-image:
	$(if $(CROSS_ARCH),dpkg --add-architecture $(CROSS_ARCH))
	@$(INSTALL_PACKAGES) $(PACKAGES_IMAGE)
ifeq ($(CROSS_ARCH),)
check-image: $(B)/tests/all
	$(B)/tests/all --filter '$(HOLD_IN_IMAGE)'
else
check-image: build/$(MACHINE)/kernels
	qemu-$(MACHINE) $<
endif
HOLD_IN_IMAGE = !(clients)/*
image-files: all
	docker/image/collect.sh build/kldivd $$($(CC) -dumpmachine) $(DESTDIR)

# Builds the image by buildah, and runs it: root, debootstrap and the network, and some minutes.
image-test:
	docker/image/test.sh

# Programs of one VARIANT that tests run, all at once on machines with more processors.
.PHONY: programs
programs: $(B)/kldivd $(B)/libkldiv.so $(B)/tests/all $(B)/load $(B)/proxies $(B)/stress/calls $(BENCHES)

# The tests of one VARIANT.
check: $(B)/tests/all $(B)/libkldiv.so $(BENCHES)
	$(B)/tests/all

# Bad clients, five times the connections, beside good ones: for seconds; for ten minutes.
load: $(B)/load $(B)/kldivd
	$(B)/load $(B)/kldivd 20
soak: $(B)/load $(B)/kldivd
	$(B)/load $(B)/kldivd 600

# The server in cgroups of 64 to 512 MiB, with all that takes memory at once. Takes the right to make cgroups.
MEMORY_LIMITS =
.PHONY: memory
memory: build/kldivd
	$(PYTHON) -B tests/memory/run.py build/kldivd $(MEMORY_LIMITS)

# nginx and HAProxy before the server. Tests that hold the time do so one after another.
proxies: $(B)/proxies $(B)/kldivd
	$(B)/proxies -j1 --verbose

# What systemd-analyze says of the units; then the units under a systemd in namespaces of its own.
.PHONY: units
units: build/kldivd
	tests/units.sh build/kldivd
	$(PYTHON) tests/boot/run.py build/kldivd

unprivileged: $(B)/tests/all
	tests/unprivileged.sh $(B) '$(SERVER_SUITES)/*'

# The document under its linters; clients that are generated from it call the server.
contract: build/kldivd $(CONTRACT_TOOLS)
	tests/contract/run.sh build/kldivd

# What stands under docker/ by its linters and schemas, and its rules and dashboard by Prometheus beside two servers.
manifests: build/kldivd $(MANIFEST_TOOLS)
	PYTHON=$(PYTHON) tests/manifests/run.sh build/kldivd

# The READMEs' commands about monitors, and the same with other tables.
journey: build/kldivd
	$(PYTHON) tests/journey/run.py build/kldivd

# Monitors on PostgreSQL, in a cluster of its own: the tests of a store; then two servers that share one.
postgresql: build/kldivd $(B)/tests/all
	tests/postgresql/run.sh build/kldivd $(B)/tests/all

# The library over processes: random cuts, Dask with a worker that is killed, MPI.
distributed: $(B)/libkldiv.so
	$(PYTHON) -B tests/distributed/run.py $<

# The pages in Chromium, in every state that they show; pictures go to build/page.
page: build/kldivd $(PAGE_TOOLS)
	node tests/page/run.mjs build/kldivd

# Suites that start a server, and are run again where it or its clients differ.
SERVER_SUITES = @(server|abandoned_work|addresses|fairness|large|locked_in|metrics|oip|partial_requests|refusals|reload|scarce_memory|service_manager|tls|unix_clients|unix_sockets|store_bounds|store_files|store_full|store_killed|store_locked_in|store_times)

# The tests of the server by clients that connect to a unix socket.
.PHONY: local
local: $(B)/tests/all
	KLDIV_OVER_UNIX=yes $(B)/tests/all --filter '$(SERVER_SUITES)/*'

sanitize:
	$(MAKE) check VARIANT=asan
	$(MAKE) build/tsan/stress/pool build/tsan/kldivd VARIANT=tsan
	build/tsan/stress/pool
	KLDIV_SERVER=build/tsan/kldivd build/release/tests/all --filter '$(SERVER_SUITES)/*'

# Decisions on memory that nobody has set, by kernels that valgrind can run.
uninitialized: $(B)/stress/calls
	valgrind --quiet --error-exitcode=1 $< 600 generic
	valgrind --quiet --error-exitcode=1 $< 600 avx2

CROSS = $(wildcard lib/*.c lib/*/*.c) tests/lib/kernels.c tests/lib/accuracy.c tests/lib/threads.c tests/lib/rows.c \
        tests/lib/softmax_accuracy.c tests/lib/bins.c tests/cross/main.c
build/%/kernels: $(CROSS) $(wildcard lib/*.h lib/*/*.h tests/lib/*.h tests/cross/*/*.h)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$*-linux-gnu-gcc -std=c11 -D_GNU_SOURCE -Itests/cross -I. $(WARNINGS) -Wno-conversion -O2 \
	    -ffp-contract=off -static -pthread $(CROSS) -lm -o $@
neon: build/aarch64/kernels
	qemu-aarch64 $<

FUZZERS = $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/*.c))
FUZZED = $(patsubst %.c,build/fuzz/%.o,$(wildcard lib/*.c lib/*/*.c api/*.c api/*/*.c api/*/*/*.c) server/framing.c)
FUZZ_FLAGS = -std=c11 -D_GNU_SOURCE -I. -g -O1 -fno-sanitize-recover=undefined -ffp-contract=off -pthread
build/fuzz/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC   $@"
	@$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c $< -o $@
build/fuzz/api/endpoints.o: api/openapi.json
build/fuzz/api/web/files.o: build/assets/list.h $(PACKED)
.SECONDARY: $(FUZZED)
build/fuzz/%: tests/fuzz/%.c $(wildcard tests/fuzz/*.h) $(FUZZED)
	@echo "  LINK $@"
	@$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer,address,undefined $(filter %.c %.o,$^) \
	    $(API_LIBS) -lmicrohttpd -lm -o $@
# Seeds are the bodies of the table, and those of monitors, where there is numpy to make them.
build/fuzz/seeds: tests/golden/bodies.py tests/fuzz/seeds.py
	@mkdir -p $@
	@if $(PYTHON) -c 'import numpy' 2>/dev/null; then \
	    $(PYTHON) -W ignore $< $@ && $(PYTHON) tests/fuzz/seeds.py $@; \
	else echo "(no python3-numpy: fuzzing without seeds)"; fi
.PHONY: fuzzers
fuzzers: $(FUZZERS) build/fuzz/seeds
fuzz: fuzzers
	@for f in $(FUZZERS); do \
	    seeds=build/fuzz/seeds/$$(basename $$f); [ -d $$seeds ] || seeds=; \
	    mkdir -p $$f.corpus && echo "$$f, $(SECONDS_EACH) s" && \
	    $$f -max_total_time=$(SECONDS_EACH) -timeout=10 -rss_limit_mb=1024 \
	        -dict=tests/fuzz/words.dict -artifact_prefix=$$f- $$f.corpus $$seeds 2>$$f.log || \
	        { tail -40 $$f.log; exit 1; }; \
	done

SOURCES = $(wildcard $(addsuffix /*.[ch],lib lib/* api api/* api/*/* server tests/* tests/cross/criterion))
SCRIPTS = $(wildcard api/web/*/*.js tests/page/*.mjs tests/clients/*.mjs tests/manifests/*.mjs)
TIDIED = $(wildcard lib/*.c lib/diagnose/*.c api/*.c api/*/*.c api/*/*/*.c server/*.c) lib/simd/reference.c lib/simd/generic.c
lint: $(B)/libkldiv.a $(B)/libapi.a $(B)/libkldiv.so $(PAGE_TOOLS) $(WEB_PACKAGES)
	clang-format --dry-run -Werror $(SOURCES)
	tests/layers.sh $(B)
	tests/suites.sh $(SUITES)
	tests/comments.sh $(SOURCES) $(SCRIPTS)
	tests/page/node_modules/.bin/tsc -p tests/page
	cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --enable=warning,performance,portability \
	    --suppress=missingIncludeSystem -D__x86_64__ -I. lib api server
	@echo "  TIDY"; printf '%s\n' $(TIDIED) | xargs -P $(CPUS) -n 8 sh -c \
	    'clang-tidy --quiet "$$@" -- -std=c11 -D_GNU_SOURCE -I. 2>/dev/null' tidy

# numbers reads a hundred million random strings as strtod does, which takes minutes. The others
# need python3-torch, python3-numpy, python3-scipy, python3-mpmath; bench takes what it finds of them, python3-scipy, libsleef-dev,
# wrk, python3-fastapi and python3-uvicorn: the peers that our numbers are compared with.
PYTHON = /usr/bin/python3
golden:
	$(PYTHON) tests/golden/make.py > tests/golden/vectors.jsonl
	$(PYTHON) tests/golden/bodies.py > tests/golden/bodies.jsonl
	$(PYTHON) tests/golden/tables.py > tests/golden/tables.jsonl
	$(PYTHON) tests/golden/gradients.py > tests/golden/gradients.jsonl
	$(PYTHON) tests/golden/compositions.py > tests/golden/compositions.jsonl
	$(PYTHON) tests/golden/drift.py > tests/golden/drift.jsonl
numbers: $(B)/tests/all
	KLDIV_NUMBERS=100000000 $(B)/tests/all --filter 'numbers/random*'
peer: all
	$(PYTHON) tests/peer/random_requests.py build/kldivd
	$(PYTHON) -B tests/peer/random_monitors.py build/kldivd
bench: all $(BENCHES)
	sh tests/bench/run.sh

# The rules as the operator of Prometheus wants them.
OPERATOR_RULES = docker/kubernetes/components/monitoring/rules.yaml
$(OPERATOR_RULES): docker/prometheus/rules.yml
	@{ printf '%s\n' '# Made by `make readme` of ../../../prometheus/rules.yml.' \
	    'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' \
	    'metadata:' '  name: kldiv' '  labels: {app.kubernetes.io/name: kldiv, release: kube-prometheus-stack}' 'spec:'; \
	    sed -e '/^#/d' -e 's/^./  &/' $<; } > $@

# Copies the options' help into server/README.md and the manual page, and the clients into their README.
CLIENTS = curl.sh stdlib.py with_numpy.py fetch.mjs libcurl.c with_httr.R local.py local.mjs shared_memory.py \
    monitors.py monitors.R
readme: all $(OPERATOR_RULES)
	build/kldivd --help | sed -e 1,7d -e 's/^  /    /' > build/help
	sed -i -e '/<!-- help begins -->/,/<!-- help ends -->/{/<!-- help/!d}' \
	    -e '/<!-- help begins -->/r build/help' server/README.md
	sed -E -e 's/-/\\-/g' -e 's/^ +(\S+) ?([A-Z:]*) +(.*)/.TP\n.BR \1 " \2"\n\3/' -e 's/ " "$$//m' \
	    build/help > build/help.roff
	sed -i -e '/options begin/,/options end/{/options/!d}' -e '/options begin/r build/help.roff' server/kldivd.1
	for f in $(CLIENTS); do \
	    printf '## %s\n\n```%s\n%s\n```\n\n' \
	        "$$(sed -n -e 's/^[^A-Za-z]*//' -e '/^[A-Z].*:/{s/[.]* *\*\/$$//;s/"""$$//;p;q}' tests/clients/$$f)" \
	        "$${f##*.}" "$$(cat tests/clients/$$f)"; \
	done > build/clients
	sed -i -e '/<!-- clients begin -->/,/<!-- clients end -->/{/<!-- clients/!d}' \
	    -e '/<!-- clients begin -->/r build/clients' tests/clients/README.md

install: all
	install -D -m 755 build/kldivd $(DESTDIR)$(PREFIX)/bin/kldivd
	install -D -m 644 server/kldivd.1 $(DESTDIR)$(PREFIX)/share/man/man1/kldivd.1
	for unit in docker/systemd/*; do \
	    sed 's|/usr/bin/kldivd|$(PREFIX)/bin/kldivd|' $$unit > build/$${unit##*/} && \
	    install -D -m 644 build/$${unit##*/} $(DESTDIR)$(PREFIX)/lib/systemd/system/$${unit##*/} || exit 1; done
	install -D -m 644 lib/kldiv.h $(DESTDIR)$(PREFIX)/include/kldiv.h
	sed 's|"lib/kldiv.h"|"kldiv.h"|' lib/drift.h > build/drift.h
	install -D -m 644 build/drift.h $(DESTDIR)$(PREFIX)/include/drift.h
	install -D -m 644 $(B)/libkldiv.a $(DESTDIR)$(PREFIX)/lib/libkldiv.a
	install -D -m 755 $(B)/libkldiv.so $(DESTDIR)$(PREFIX)/lib/libkldiv.so.$(VERSION)
	ln -sf libkldiv.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libkldiv.so.0
	ln -sf libkldiv.so.0 $(DESTDIR)$(PREFIX)/lib/libkldiv.so
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: kldiv' \
	    'Description: The Kullback-Leibler divergence loss' 'Version: $(VERSION)' \
	    'Libs: -L$${prefix}/lib -lkldiv' 'Libs.private: -lm -pthread' 'Cflags: -I$${prefix}/include' \
	    > $(DESTDIR)$(PREFIX)/lib/pkgconfig/kldiv.pc

clean:
	rm -rf build

-include $(shell find build -name '*.d' 2>/dev/null)
