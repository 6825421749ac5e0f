# The steps of `make test` and `make test-all`, each a target of its own, and what they need to be installed.

.PHONY: quick test test-all check check-root check-asan check-tsan load soak memory proxies units contract manifests journey \
        clients postgresql notify distributed python page uninitialized neon walk deps deps-check deps-test tools

# The READMEs' commands are of curl, jq and python3.
PACKAGES_CHECK = $(PACKAGES_BUILD) $(PACKAGES_NODE) libcriterion-dev $(call missing,curl) $(call missing,jq) \
                 $(call missing,$(PYTHON),python3)
PACKAGES_SANITIZE = clang clang-format clang-tidy cppcheck abigail-tools libclang-rt-14-dev valgrind
PACKAGES_CROSS = gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
PACKAGES_CLIENTS = r-base-core r-cran-httr r-cran-httr2 r-cran-jsonlite r-cran-testthat golang-go openjdk-17-jdk-headless \
                   rustc python3-requests python3-sklearn
PACKAGES_PYTHON = python3-build python3-venv python3-wheel python3-setuptools mypy python3-numpy python3-pandas python3-torch \
                  python3-fastapi python3-distributed python3-mpi4py openmpi-bin
PACKAGES_MANIFESTS = prometheus python3-prometheus-client prometheus-alertmanager docker-compose python3-yaml
PACKAGES_SERVERS = postgresql postgresql-client sqlite3 nginx-light haproxy systemd chromium-headless-shell openssl
PACKAGES_TEST = $(PACKAGES_CHECK) $(PACKAGES_SANITIZE) $(PACKAGES_CROSS) $(PACKAGES_CLIENTS) $(PACKAGES_PYTHON) \
                $(PACKAGES_MANIFESTS) $(PACKAGES_SERVERS)

CONTRACT_TOOLS = tests/system/contract/node_modules/.package-lock.json
COMPILERS = tests/system/contract/compilers/node_modules/.package-lock.json
MANIFEST_TOOLS = tests/system/manifests/node_modules/.package-lock.json
PAGE_TOOLS = tests/system/page/node_modules/.package-lock.json
tools: $(CONTRACT_TOOLS) $(COMPILERS) $(MANIFEST_TOOLS) $(PAGE_TOOLS) $(WEB_PACKAGES)
deps: deps-test tools
deps-check:
	@docker/install-packages.sh $(PACKAGES_CHECK)
deps-test:
	@docker/install-packages.sh $(PACKAGES_TEST)

# What people run: all suites, and the READMEs' commands. Then everything; or STEPS='lint page'.
test: deps-check
	@MAKE='$(MAKE)' $(PYTHON) -B tests/tools/steps.py test
STEPS = all
test-all: deps-test
	@MAKE='$(MAKE)' $(PYTHON) -B tests/tools/steps.py $(STEPS)

# The suites of one VARIANT, or those that a filter of Criterion names: ONLY='@(tls|oip)/*'. As a plain user with 256
# descriptors; three times as many at once as there are processors, for many wait. Clients connect by TCP in half of the
# tests, to a unix socket in the others; OVER=tcp or unix is for all.
ONLY = */!(*_as_root)
OVER =
JOBS = -j$(shell expr 3 \* $(CPUS))
SUITES_PROGRAM = $(B)/tests/all $(JOBS) --verbose
check: $(B)/tests/all $(B)/libkldiv.so
	@[ '$(ONLY)' != '*/!(*_as_root)' ] || echo "NOT RUN: the tests that need root, whose names end in _as_root: make check-root"
	KLDIV_OVER=$(OVER) tests/tools/plain_user.sh $(SUITES_PROGRAM) --filter '$(ONLY)'

# The tests that need root: they mount file systems, and make namespaces.
check-root: $(B)/tests/all
	@[ "$$(id -u)" = 0 ] || echo "NOT RUN: the tests whose names end in _as_root: sudo make check-root"
	[ "$$(id -u)" != 0 ] || $(SUITES_PROGRAM) --filter '*/*_as_root'

# The library, and the service without sockets, but for suites that take long; without pages where there is no npm.
suites = $(sort $(shell sed -n 's/^Test.\([a-z0-9_]*\),.*/\1/p' $(wildcard $(1:%=tests/suites/%/*.c))))
either = @($(subst $() ,|,$(strip $(1))))
# Criterion takes 100 alternatives at most.
QUICK = $(filter-out layouts softmax_accuracy,$(call suites,lib formats tables service)) monitors_!(previous|memory)
quick:
	@docker/install-packages.sh $(PACKAGES_BUILD) libcriterion-dev
	$(MAKE) --no-print-directory -j$(CPUS) $(B)/tests/all $(if $(shell command -v npm),,PAGE=no)
	$(B)/tests/all $(JOBS) --filter '$(call either,$(QUICK))/*'

# The READMEs' commands, and the same with other tables; PARTS=--all fails where a module of Python is missing.
PARTS =
journey: build/kldivd
	$(PYTHON) -B tests/system/journey/run.py $(PARTS) build/kldivd

# Programs in other languages, and the blocks of pages about them; the package of R.
clients: build/kldivd $(R_PACKAGE)
	$(PYTHON) -B tests/system/clients/run.py build/kldivd $(R_PACKAGE)

# Bad clients, five times the connections, beside good ones: for seconds; for ten minutes.
load: $(B)/load $(B)/kldivd
	$(B)/load $(B)/kldivd 20
soak: $(B)/load $(B)/kldivd
	$(B)/load $(B)/kldivd 600

# The server in cgroups of 64 to 512 MiB, with all that takes memory at once, for so long. Takes the right to make cgroups.
MEMORY_LIMITS =
MEMORY_SECONDS = 60
memory: build/kldivd
	$(PYTHON) -B tests/system/memory/run.py build/kldivd $(MEMORY_SECONDS) $(MEMORY_LIMITS)

# nginx and HAProxy before the server. Tests that hold the time do so one after another.
proxies: $(B)/proxies $(B)/kldivd
	$(B)/proxies -j1 --verbose

# What systemd-analyze says of the units; then the units under a systemd in namespaces of its own.
units: build/kldivd
	tests/system/boot/units.sh build/kldivd
	$(PYTHON) tests/system/boot/run.py build/kldivd

# The document under its linters; clients that are generated from it, and the package of TypeScript, call the server.
contract: build/kldivd $(NPM_PACKAGE) $(COMPILERS)
	tests/system/contract/run.sh build/kldivd $(NPM_PACKAGE)

# What stands under docker/ by its linters and schemas, and its rules and dashboard by Prometheus beside two servers.
manifests: build/kldivd $(MANIFEST_TOOLS)
	PYTHON=$(PYTHON) tests/system/manifests/run.sh build/kldivd

# Monitors on PostgreSQL, in a cluster of its own: the suites of monitors whose subject is what is stored; then two servers
# that share one.
ON_POSTGRESQL = $(addprefix monitors_,counts crowd erase etags failures groups keys labels lists memory missed mutes notes outage patch promote \
                pools previous queue retention segment_groups segments states tenants timed times unseen volume windows)
postgresql: build/kldivd $(B)/tests/all
	tests/system/postgresql/run.sh build/kldivd $(B)/tests/all '$(call either,$(ON_POSTGRESQL))/*'

# Notifications: a server before all kinds of receivers, and an Alertmanager.
notify: build/kldivd
	$(PYTHON) -B tests/system/notify/run.py build/kldivd

# The library over processes: random cuts, Dask with a worker that is killed, MPI.
distributed: $(B)/libkldiv.so build/kldivd
	$(PYTHON) -B tests/system/distributed/run.py $^

# The pages in Chromium, in every state that they show; pictures go to build/page.
page: build/kldivd $(PAGE_TOOLS)
	node tests/system/page/run.mjs build/kldivd

# The files of the source that a small loss and a small CSV pass.
walk:
	$(PYTHON) -B tests/tools/bench/walk.py

# The package of Python, installed from its wheel.
python: $(WHEEL) build/kldivd
	PYTHON=$(PYTHON) tests/system/python/run.sh $(WHEEL) $(SDIST) build/kldivd

# Servers that take ten times as long, fewer at once: tests have their times.
SANITIZED_JOBS = -j$(shell expr 2 \* $(CPUS))

# Parsers and servers under AddressSanitizer and UndefinedBehaviorSanitizer; not tests of much work, and of times and sizes. As
# root without CAP_NET_ADMIN and with 1,024 descriptors, as in the build of an image. What is freed waits to be used again
# until 16 MiB are free, not 256: most processes then never fill fresh pages, a sixth of the time. Criterion's libgit2 looks
# for the end of each certificate of the system when a test starts: the sanitizer's strstr would read them all for each.
NOT_ASAN = work_of_* work_for_* take_scratch_* calls_ask_every_few_microseconds of_millions_of_bins \
           holds_the_store_that_is_in_memory moves_its_log_into_the_file_while_it_is_locked_in writes_that_break \
           each_type_that_is_described_is_acceptable few_new_columns_are_kept
check-asan: export ASAN_OPTIONS = quarantine_size_mb=16:intercept_strstr=0
check-asan:
	$(MAKE) build/asan/tests/all build/asan/libkldiv.so VARIANT=asan
	ulimit -n 1024; $(if $(filter 0,$(shell id -u)),setpriv --bounding-set -net_admin --inh-caps -net_admin) \
	    build/asan/tests/all $(SANITIZED_JOBS) --verbose --filter '*/!($(subst $() ,|,$(strip $(NOT_ASAN))))'
	$(PYTHON) -B tests/system/notify/run.py build/asan/kldivd $(SENDERS)

# Senders of notifications that end while they wait: for a name, an answer, a test.
SENDERS = names many_tests test_that_waits
# The pool, and the suites and scenarios in which threads of the server meet, under ThreadSanitizer.
TSAN = server abandoned_work fairness scarce_memory reload metrics monitors_outage store_killed store_bounds unix_clients
check-tsan: build/release/tests/all
	$(MAKE) build/tsan/stress/pool build/tsan/kldivd VARIANT=tsan
	build/tsan/stress/pool
	KLDIV_SERVER=build/tsan/kldivd build/release/tests/all $(SANITIZED_JOBS) --verbose --filter '$(call either,$(TSAN))/*'
	$(PYTHON) -B tests/system/notify/run.py build/tsan/kldivd $(SENDERS)

# Decisions on memory that nobody has set, by kernels that valgrind can run.
uninitialized: $(B)/stress/calls
	valgrind --quiet --error-exitcode=1 $< 600 generic
	valgrind --quiet --error-exitcode=1 $< 600 avx2

CROSS = $(LIB_SOURCES) $(wildcard tests/tools/cross/*.c) \
        $(addprefix tests/suites/lib/,kernels.c accuracy.c threads.c rows.c softmax_accuracy.c bins.c)
build/%/kernels: $(CROSS) $(wildcard lib/*.h lib/*/*.h tests/suites/lib/*.h tests/tools/cross/*/*.h)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$*-linux-gnu-gcc -std=c11 -D_GNU_SOURCE -Itests/tools/cross -I. $(WARNINGS) -Wno-conversion -O2 \
	    -ffp-contract=off -static -pthread $(CROSS) -lm -o $@
neon: build/aarch64/kernels
	qemu-aarch64 $<
