# The steps of `make test`, each a target of its own, and what they need to be installed.

.PHONY: quick test check check-asan check-tsan local load soak memory proxies units unprivileged contract manifests journey \
        postgresql notify distributed python page sanitize uninitialized neon deps deps-test deps-quick tools check-image image-test

PACKAGES_DISTRIBUTED = python3-distributed python3-mpi4py openmpi-bin
PACKAGES_CLIENTS = r-base-core r-cran-httr r-cran-httr2 r-cran-jsonlite golang-go openjdk-17-jdk-headless rustc
PACKAGES_PYTHON = python3-build python3-venv python3-wheel python3-setuptools mypy python3-numpy python3-pandas python3-torch python3-fastapi
PACKAGES_TEST = $(PACKAGES_BUILD) $(PACKAGES_DISTRIBUTED) $(PACKAGES_PYTHON) libcriterion-dev postgresql postgresql-client sqlite3 python3-numpy clang clang-format clang-tidy cppcheck abigail-tools \
                libclang-rt-14-dev valgrind gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user \
                nginx-light haproxy systemd curl jq chromium-headless-shell openssl $(PACKAGES_CLIENTS) python3-requests python3-sklearn $(PACKAGES_NODE) \
                $(PACKAGES_MANIFESTS)
PACKAGES_MANIFESTS = prometheus python3-prometheus-client prometheus-alertmanager docker-compose python3-yaml

CONTRACT_TOOLS = tests/contract/node_modules/.package-lock.json
MANIFEST_TOOLS = tests/manifests/node_modules/.package-lock.json
PAGE_TOOLS = tests/page/node_modules/.package-lock.json
# In the order in which tests want them.
tools: $(CONTRACT_TOOLS) $(MANIFEST_TOOLS) $(PAGE_TOOLS) $(WEB_PACKAGES)
deps: deps-test tools
deps-test:
	@dpkg -s $(PACKAGES_TEST) >/dev/null 2>&1 || { $(INSTALL_PACKAGES) $(PACKAGES_TEST); }

deps-quick:
	@$(INSTALL_PACKAGES) $(PACKAGES_BUILD) libcriterion-dev

# All steps, several at once, then a table of their times; a step alone is a target: make check.
test: deps-test
	MAKE='$(MAKE)' $(PYTHON) -B tests/steps.py $(STEPS)
STEPS =

# Suites that start a server, and are run again where it or its clients differ.
SERVER_SUITES = @(server|abandoned_work|addresses|fairness|large|locked_in|metrics|oip|partial_requests|refusals|reload|scarce_memory|service_manager|tls|unix_clients|unix_sockets|store_bounds|store_files|store_full|store_killed|store_locked_in|store_times)

# The suites of one VARIANT, or those that a filter of Criterion names: ONLY='@(tls|oip)/*'. Twice as many at once as
# there are processors, for many wait.
ONLY = *
JOBS = -j$(shell expr 2 \* $(CPUS))
check: $(B)/tests/all $(B)/libkldiv.so $(BENCHES)
	$(B)/tests/all $(JOBS) --filter '$(if $(filter *,$(ONLY)),*/*,$(ONLY))'

# The library, and the service without sockets, but for suites that take long; without pages where there is no npm.
suites = $(sort $(shell sed -n 's/^Test.\([a-z0-9_]*\),.*/\1/p' $(wildcard $(1:%=tests/%/*.c))))
QUICK = $(filter-out layouts softmax_accuracy monitors_previous monitors_memory,\
        $(call suites,lib formats tables service monitors))
quick:
	$(MAKE) --no-print-directory -j$(CPUS) $(B)/tests/all $(if $(shell command -v npm),,PAGE=no)
	$(B)/tests/all $(JOBS) --filter '@($(subst $() ,|,$(QUICK)))/*'

# Bad clients, five times the connections, beside good ones: for seconds; for ten minutes.
load: $(B)/load $(B)/kldivd
	$(B)/load $(B)/kldivd 20
soak: $(B)/load $(B)/kldivd
	$(B)/load $(B)/kldivd 600

# The server in cgroups of 64 to 512 MiB, with all that takes memory at once. Takes the right to make cgroups.
MEMORY_LIMITS =
memory: build/kldivd
	$(PYTHON) -B tests/memory/run.py build/kldivd $(MEMORY_LIMITS)

# nginx and HAProxy before the server. Tests that hold the time do so one after another.
proxies: $(B)/proxies $(B)/kldivd
	$(B)/proxies -j1 --verbose

# What systemd-analyze says of the units; then the units under a systemd in namespaces of its own.
units: build/kldivd
	tests/units.sh build/kldivd
	$(PYTHON) tests/boot/run.py build/kldivd

# The server as a plain user with 256 descriptors.
unprivileged: $(B)/tests/all
	tests/unprivileged.sh $(B) '$(SERVER_SUITES)/*'

# The document under its linters; clients that are generated from it, and the package of TypeScript, call the server.
contract: build/kldivd $(NPM_PACKAGE)
	tests/contract/run.sh build/kldivd $(NPM_PACKAGE)

# What stands under docker/ by its linters and schemas, and its rules and dashboard by Prometheus beside two servers.
manifests: build/kldivd $(MANIFEST_TOOLS)
	PYTHON=$(PYTHON) tests/manifests/run.sh build/kldivd

# The READMEs' commands about monitors, and the same with other tables.
journey: build/kldivd
	$(PYTHON) tests/journey/run.py build/kldivd

# Monitors on PostgreSQL, in a cluster of its own: the tests of a store; then two servers that share one.
postgresql: build/kldivd $(B)/tests/all
	tests/postgresql/run.sh build/kldivd $(B)/tests/all

# Notifications: a server before all kinds of receivers, and an Alertmanager.
notify: build/kldivd
	$(PYTHON) -B tests/notify/run.py build/kldivd

# The library over processes: random cuts, Dask with a worker that is killed, MPI.
distributed: $(B)/libkldiv.so build/kldivd
	$(PYTHON) -B tests/distributed/run.py $^

# The pages in Chromium, in every state that they show; pictures go to build/page.
page: build/kldivd $(PAGE_TOOLS)
	node tests/page/run.mjs build/kldivd

# The package of Python, installed from its wheel.
python: $(WHEEL) build/kldivd
	PYTHON=$(PYTHON) tests/python/run.sh $(WHEEL) $(SDIST) build/kldivd

# The tests of the server by clients that connect to a unix socket.
local: $(B)/tests/all
	KLDIV_OVER_UNIX=yes $(B)/tests/all $(JOBS) --filter '$(SERVER_SUITES)/*'

# The suites under AddressSanitizer and UndefinedBehaviorSanitizer; as root without CAP_NET_ADMIN and with 1,024
# descriptors, as in the build of an image.
check-asan:
	$(MAKE) build/asan/tests/all build/asan/libkldiv.so VARIANT=asan
	ulimit -n 1024; $(if $(filter 0,$(shell id -u)),setpriv --bounding-set -net_admin --inh-caps -net_admin) \
	    build/asan/tests/all $(JOBS)
check-tsan: build/release/tests/all
	$(MAKE) build/tsan/stress/pool build/tsan/kldivd VARIANT=tsan
	build/tsan/stress/pool
	KLDIV_SERVER=build/tsan/kldivd build/release/tests/all $(JOBS) --filter '$(SERVER_SUITES)/*'
sanitize: check-asan check-tsan

# Decisions on memory that nobody has set, by kernels that valgrind can run.
uninitialized: $(B)/stress/calls
	valgrind --quiet --error-exitcode=1 $< 600 generic
	valgrind --quiet --error-exitcode=1 $< 600 avx2

CROSS = $(LIB_SOURCES) tests/lib/kernels.c tests/lib/accuracy.c tests/lib/threads.c tests/lib/rows.c \
        tests/lib/softmax_accuracy.c tests/lib/bins.c tests/cross/main.c
build/%/kernels: $(CROSS) $(wildcard lib/*.h lib/*/*.h tests/lib/*.h tests/cross/*/*.h)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$*-linux-gnu-gcc -std=c11 -D_GNU_SOURCE -Itests/cross -I. $(WARNINGS) -Wno-conversion -O2 \
	    -ffp-contract=off -static -pthread $(CROSS) -lm -o $@
neon: build/aarch64/kernels
	qemu-aarch64 $<

# What holds in the build of an image: clients need more languages. Programs for another machine are not run, but for the
# kernels, by qemu.
ifeq ($(CROSS_ARCH),)
check-image: $(B)/tests/all
	$(B)/tests/all --filter '$(HOLD_IN_IMAGE)'
else
check-image: build/$(MACHINE)/kernels
	qemu-$(MACHINE) $<
endif
HOLD_IN_IMAGE = !(clients)/*

# Builds the image by buildah, and runs it: root, debootstrap and the network, and some minutes.
image-test:
	docker/image/test.sh
