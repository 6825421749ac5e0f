# kldiv
#
# make run           install what is missing, build, serve, and say how to call it
# make               build build/kldivd, libkldiv.a and libkldiv.so in build/release
# make quick         the tests of the library and of the service without sockets: Debian's packages for building alone
# make test          all tests, as CI runs them: installs what they need, tens of minutes
# make check         the suites, in one program; ONLY='tls/*' runs one of them
# make lint          formatters, linters, layers and names
# make deps          install what tests need
# make bench, golden, peer, numbers, soak, image-test   comparisons and longer tests: tests/README.md
# make readme        copy the help into the READMEs, and the clients into theirs
# make install       into PREFIX, by way of DESTDIR; make uninstall removes it
# make install-lib   the C library alone, which needs gcc and make
# make deb           packages of Debian, in build/deb; make deb-test tries them in a chroot
# make dist          build/kldiv-VERSION.tar.gz, the sources that are committed
# make wheel         the package of Python, with the library, as a wheel and as sources, in build/pypi
# make npm           the package of TypeScript, build/npm/kldiv-VERSION.tgz
# make release       all of these and the images for amd64 and arm64, with notes, sums and lists of parts, in one folder
# make clean         remove build/
#
# VARIANT=asan or tsan builds the same with a sanitizer, in its own folder. PAGE=no builds without the pages, which take
# node and npm. ARCH=arm64 or amd64 compiles for that machine.

VARIANT ?= release
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
VERSION := $(shell sed -n 's/^\#define KLDIV_VERSION "\(.*\)"/\1/p' lib/kldiv.h)

CC = $(if $(filter asan,$(VARIANT)),clang,gcc)
PYTHON = /usr/bin/python3
CPUS := $(shell nproc)
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
# Objects that the fuzzers are linked of, too. The other variants warn; clang has warnings of its own.
OPTIMIZE_asan = -O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined \
                -fno-omit-frame-pointer -D__SANITIZE_ADDRESS__ -w
# Kernels take minutes each with all checks; AddressSanitizer finds what these would, and fuzzers look for other code.
ifeq ($(VARIANT),asan)
$(B)/lib/simd/%.o: override CFLAGS += -fno-sanitize=null,object-size,pointer-overflow,fuzzer-no-link
endif
OPTIMIZE_tsan = -O1 -g -fsanitize=thread
# Each multiplication and addition rounds by itself unless the source says fma.
override CFLAGS := -std=c11 -D_GNU_SOURCE -I. $(WARNINGS) $(HARDENING) $(OPTIMIZE_$(VARIANT)) \
          -fvisibility=hidden -pthread -MMD -MP $(CFLAGS) -ffp-contract=off
LDFLAGS += -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code -pthread $(filter -fsanitize%,$(OPTIMIZE_$(VARIANT)))

# Where requests are read, not in lib: there zeroed arrays cost 17 % on average and 84 % at most, checked
# copies 20 % of rows of 10, and valgrind would see no variable that nobody has set.
STRICT_asan = -enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang
STRICT_release = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
$(B)/api/%.o $(B)/server/%.o: override CFLAGS += -ftrivial-auto-var-init=zero $(STRICT_$(VARIANT))

API_LIBS = -lsqlite3 -lpq -ljansson -lcsv -lzip -lz
# libmicrohttpd comes before them, as a copy of its archive.
SERVER_LIBS = -lcurl -lgnutls -lseccomp
PACKAGES_BUILD = gcc libc6-dev pkg-config libmicrohttpd-dev libjansson-dev libcsv-dev libsqlite3-dev libpq-dev libzip-dev \
                 zlib1g-dev libcurl4-gnutls-dev libgnutls28-dev libseccomp-dev
# Debian's node, unless another is there already.
PACKAGES_NODE = $(if $(shell command -v node 2>/dev/null),,nodejs) $(if $(shell command -v npm 2>/dev/null),,npm)

# ---- The pages: files of api/web and of npm's packages, compressed; PAGE=no builds without them.
PAGE = yes
PAGE_SCRIPTS = dashboard/start.js dashboard/calculator.js docs/docs.js docs/theme.js
ASSETS_yes = $(PAGE_SCRIPTS) $(patsubst api/web/%,%,$(wildcard api/web/*.html $(addprefix api/web/*/*.,html css svg))) \
             dashboard/uplot.js dashboard/uplot.css dashboard/licenses docs/swagger-ui-bundle.js docs/swagger-ui.css
ASSETS = $(sort $(ASSETS_$(PAGE)))
PACKED = $(ASSETS:%=build/assets/%.gz)

objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)))
LIB_SOURCES := $(wildcard lib/*.c lib/*/*.c)
API_SOURCES := $(wildcard api/*.c api/*/*.c api/*/*/*.c)
LIB = $(LIB_SOURCES:%.c=$(B)/%.o)
API = $(API_SOURCES:%.c=$(B)/%.o)
SERVER = $(call objects,server/*.c)

.PHONY: all help run readme install install-lib uninstall deb deb-test release dist wheel npm clean
all: build/kldivd $(B)/libkldiv.a $(B)/libkldiv.so

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC   $@"
	@$(CC) $(CFLAGS) -c $< -o $@
$(B)/api/endpoints.o: api/openapi.json
$(B)/api/web/web.o: build/assets/list.h $(PACKED)

$(B)/libkldiv.a: $(LIB)
	@rm -f $@; $(AR) rcs $@ $^
$(B)/libapi.a: $(API)
	@rm -f $@; $(AR) rcs $@ $^
$(B)/libkldiv.so: $(LIB) lib/kldiv.map
	@echo "  LINK $@"
	@$(CC) -shared -Wl,-soname,libkldiv.so.0,--version-script=lib/kldiv.map $(filter-out -pie,$(LDFLAGS)) $(LIB) -lm -o $@
# libmicrohttpd's own calls to the network go to server/transport.c, nobody else's: its static archive, in which
# they have other names. Where it does not make one of them, the server would not see what it reads or sends.
MHD_CALLS = recv gnutls_record_recv send sendmsg gnutls_record_send gnutls_bye setsockopt epoll_ctl
MHD_ARCHIVE = $(or $(wildcard $(shell $(CC) -print-file-name=libmicrohttpd.a 2>/dev/null)),libmicrohttpd.a)
libmicrohttpd.a:
	@echo "libmicrohttpd.a is missing: apt-get install libmicrohttpd-dev" >&2; exit 1
BINUTILS = $(if $(CROSS_ARCH),$(TRIPLET)-)
$(B)/libmicrohttpd.a: $(MHD_ARCHIVE) Makefile
	@mkdir -p $(@D)
	@echo "  COPY $@"
	@for call in $(MHD_CALLS); do $(BINUTILS)nm $< 2>/dev/null | grep -qx " *U $$call" || \
	    { echo "$<: libmicrohttpd does not call $$call; server/transport.c must be fitted to it" >&2; exit 1; }; done
	@if $(BINUTILS)nm $< 2>/dev/null | grep -xE ' *U (__)?(recv(from|msg)?|readv)(_chk)?' | grep -qvx ' *U recv'; then \
	    echo "$<: libmicrohttpd reads sockets by other calls, too; server/transport.c must be fitted to it" >&2; exit 1; fi
	@$(BINUTILS)objcopy $(foreach call,$(MHD_CALLS),--redefine-sym $(call)=srv_mhd_$(call)) $< $@

$(B)/kldivd: $(SERVER) $(B)/libmicrohttpd.a $(B)/libapi.a $(B)/libkldiv.a
	@echo "  LINK $@"
	@$(CC) $(LDFLAGS) $^ $(SERVER_LIBS) $(API_LIBS) -lm -o $@
build/kldivd: $(B)/kldivd
	@cp --remove-destination $< $@
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

MODULES = api/web/node_modules
WEB_PACKAGES = api/web/node_modules/.package-lock.json
.PHONY: deps-run
deps-run:
	@$(INSTALL_PACKAGES) $(PACKAGES_BUILD) $(if $(filter yes,$(PAGE)),$(PACKAGES_NODE))
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
# The list of them in C, replaced only when it changes; by way of a name of its own, as `make test` runs several makes.
.PHONY: assets FORCE
$(PACKED): Makefile
build/assets/list.h: $(PACKED) FORCE
	@mkdir -p $(@D)
	@new=$@.$$$$; { printf '#define ASSETS(X)'; n=0; for f in $(ASSETS); do \
	    printf ' \\\n    X(%d, "%s")' $$n $$f; n=$$((n + 1)); done; echo; } > $$new; \
	cmp -s $$new $@ && rm $$new || mv $$new $@

# The build of an image: fewer packages, by make deps-image; its files, by make image-files.
PACKAGES_OTHER = $(filter-out gcc pkg-config,$(PACKAGES_BUILD))
PACKAGES_IMAGE = $(if $(CROSS_ARCH),gcc-$(subst _,-,$(TRIPLET)) $(PACKAGES_OTHER:%=%:$(CROSS_ARCH)) qemu-user, \
                 $(PACKAGES_BUILD) libcriterion-dev) make python3 $(if $(filter yes,$(PAGE)),$(PACKAGES_NODE))
.PHONY: deps-image image-files
deps-image:
	$(if $(CROSS_ARCH),dpkg --add-architecture $(CROSS_ARCH))
	@$(INSTALL_PACKAGES) $(PACKAGES_IMAGE)
image-files: all
	docker/image/collect.sh build/kldivd $$($(CC) -dumpmachine) $(DESTDIR)

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

install: all install-lib
	install -D -m 755 build/kldivd $(DESTDIR)$(PREFIX)/bin/kldivd
	install -D -m 644 server/kldivd.1 $(DESTDIR)$(PREFIX)/share/man/man1/kldivd.1
	install -D -m 644 server/completion.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/kldivd
	install -D -m 644 server/completion.zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_kldivd
	for unit in docker/systemd/*; do \
	    sed 's|/usr/bin/kldivd|$(PREFIX)/bin/kldivd|' $$unit > build/$${unit##*/} && \
	    install -D -m 644 build/$${unit##*/} $(DESTDIR)$(PREFIX)/lib/systemd/system/$${unit##*/} || exit 1; done

# drift.h is the old name of kldiv_drift.h.
install-lib: $(B)/libkldiv.a $(B)/libkldiv.so
	install -d $(DESTDIR)$(PREFIX)/include
	install -m 644 lib/kldiv.h $(DESTDIR)$(PREFIX)/include
	install -m 644 lib/drift.h $(DESTDIR)$(PREFIX)/include/kldiv_drift.h
	printf '%s\n' '/* The old name of kldiv_drift.h. */' '#include "kldiv_drift.h"' > $(DESTDIR)$(PREFIX)/include/drift.h
	install -D -m 644 $(B)/libkldiv.a $(DESTDIR)$(LIBDIR)/libkldiv.a
	install -D -m 755 $(B)/libkldiv.so $(DESTDIR)$(LIBDIR)/libkldiv.so.$(VERSION)
	ln -sf libkldiv.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libkldiv.so.0
	ln -sf libkldiv.so.0 $(DESTDIR)$(LIBDIR)/libkldiv.so
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'Name: kldiv' \
	    'Description: The Kullback-Leibler divergence loss' 'Version: $(VERSION)' \
	    'libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)' 'Libs: -L$${libdir} -lkldiv' 'Libs.private: -lm -pthread' \
	    'Cflags: -I$${includedir}' \
	    > $(DESTDIR)$(LIBDIR)/pkgconfig/kldiv.pc

INSTALLED = bin/kldivd share/man/man1/kldivd.1 share/bash-completion/completions/kldivd share/zsh/site-functions/_kldivd \
            $(patsubst docker/systemd/%,lib/systemd/system/%,$(wildcard docker/systemd/*)) include/kldiv.h include/kldiv_drift.h include/drift.h
uninstall:
	rm -f $(INSTALLED:%=$(DESTDIR)$(PREFIX)/%) $(DESTDIR)$(LIBDIR)/libkldiv.* $(DESTDIR)$(LIBDIR)/pkgconfig/kldiv.pc

# Packages of Debian, of the files that are committed, by docker/debian; needs debhelper. What npm has installed for the
# pages is taken along. Who gives them away names the MAINTAINER. Between two releases the commit's time is a part of the
# version: dpkg-gensymbols forgives that a symbol is gone which it takes for one of the version that it builds.
DEB = build/deb/kldiv-$(VERSION)
UNRELEASED = $(shell sed -n '/^.. .Unreleased/,/^.. .[0-9]/s/^- .*/yes/p' CHANGELOG.md)
DEB_VERSION = $(VERSION)$(if $(UNRELEASED),+$(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d.%H%M%S))
MAINTAINER = The kldiv authors <kldiv@localhost>
deb: $(WEB_PACKAGES)
	rm -rf build/deb
	mkdir -p $(DEB)
	git archive HEAD | tar -x -C $(DEB)
	cp -r docker/debian $(DEB)/debian
	sed -i 's/@MAINTAINER@/$(MAINTAINER)/' $(DEB)/debian/control
	cp -r --preserve=timestamps api/web/node_modules $(DEB)/api/web
	printf 'kldiv (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' $(DEB_VERSION) \
	    '$(MAINTAINER)' "$$(git log -1 --format=%cD)" > $(DEB)/debian/changelog
	cd $(DEB) && dpkg-buildpackage --build=binary --no-sign --jobs=$(CPUS) > ../log 2>&1 || { tail -30 ../log; exit 1; }
	@ls build/deb/*.deb

# lintian, and a clean chroot of Debian in which they are installed, run, used and removed; needs root and the network.
deb-test: deb
	lintian --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog build/deb/*.deb
	docker/debian/test.sh build/deb

# The same commit gives the same bytes: times and names are those of the commit, and gzip has no time.
DIST = kldiv-$(VERSION)
dist:
	@mkdir -p build
	git archive --format=tar --prefix=$(DIST)/ HEAD | gzip -9n > build/$(DIST).tar.gz
	@echo build/$(DIST).tar.gz

# The package of Python, whose wheel runs where the C library is this machine's or newer. It is built in a copy, for
# setuptools writes among its sources; with python3-build, python3-setuptools and python3-wheel, without the network.
GLIBC := $(subst .,_,$(lastword $(shell getconf GNU_LIBC_VERSION)))
PLATFORM = manylinux_$(GLIBC)_$(MACHINE)
WHEEL = build/pypi/kldiv-$(VERSION)-py3-none-$(PLATFORM).whl
SDIST = build/pypi/kldiv-$(VERSION).tar.gz
# setuptools leaves the times of its copies in the archive of sources: it is packed again.
EPOCH = $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
wheel: $(WHEEL)
$(WHEEL): $(B)/libkldiv.so $(wildcard $(addprefix api/clients/python/,*.* kldiv/*))
	rm -rf build/pypi
	mkdir -p build/pypi/source
	cp -r api/clients/python/. LICENSE lib build/pypi/source
	cd build/pypi/source && SOURCE_DATE_EPOCH=$(EPOCH) KLDIV_BUILT_LIBRARY=$(abspath $<) KLDIV_PLATFORM=$(PLATFORM) \
	    $(PYTHON) -W ignore -m build --no-isolation --sdist --wheel --outdir .. . >../log || { cat ../log; exit 1; }
	cd build/pypi && mkdir sdist && tar -xzf $(notdir $(SDIST)) -C sdist && tar --sort=name --mtime=@$(EPOCH) --owner=0 \
	    --group=0 --numeric-owner --mode=go=rX,u+rw -C sdist -cf - kldiv-$(VERSION) | gzip -9n > $(notdir $(SDIST))
	@ls build/pypi/kldiv-$(VERSION)*

# The package of TypeScript, whose types are made of api/openapi.json, by the tools that the tests have.
NPM_TOOLS = tests/contract/node_modules
NPM_PACKAGE = build/npm/kldiv-$(VERSION).tgz
npm: $(NPM_PACKAGE)
$(NPM_PACKAGE): api/openapi.json $(NPM_TOOLS)/.package-lock.json LICENSE \
                $(filter-out %/schema.ts,$(wildcard $(addprefix api/clients/typescript/,*.json *.md src/*)))
	rm -rf build/npm api/clients/typescript/dist
	mkdir -p build/npm
	cd api/clients/typescript && PATH=$(abspath $(NPM_TOOLS)/.bin):$$PATH \
	    npm pack --silent --pack-destination $(abspath build/npm) >$(abspath build/npm/log) 2>&1 || \
	    { cat $(abspath build/npm/log); exit 1; }
	@ls $@

# SOURCE=URL of the repository; as root, a quarter of an hour. Between releases the commit's time is a part of its version.
RELEASE = build/release-$(DEB_VERSION)
release: deb wheel npm dist tests/manifests/node_modules/.package-lock.json
	cp build/$(DIST).tar.gz build/kldiv-$(DEB_VERSION)-source.tar.gz
	SOURCE='$(SOURCE)' docker/release/make.sh $(RELEASE) $(DEB_VERSION) build/deb/*.deb build/deb/*.buildinfo $(WHEEL) \
	    $(SDIST) $(NPM_PACKAGE) build/kldiv-$(DEB_VERSION)-source.tar.gz
	node tests/manifests/release.mjs $(RELEASE)

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

clean:
	rm -rf build

include $(wildcard tests/*.mk)

-include $(shell find build -name '*.d' 2>/dev/null)
