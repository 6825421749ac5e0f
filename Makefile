# kldiv
#
# make run       install what is missing, build, serve, and say how to call it
# make           build build/kldivd, libkldiv.a and libkldiv.so in build/release
# make quick     the tests of the library and of the service without sockets, in less than a minute
# make test      all suites, and the commands of the READMEs, in some minutes; installs Criterion, if it is missing
# make test-all  also what needs browsers, databases, proxies, sanitizers and other languages; installs all of that
# make check     the suites; ONLY='tls/*' runs one of them, OVER=unix or tcp says how their clients connect
# make lint      formatters, linters, layers and names, of what differs from the last commit
# make bench     our speed beside others'; golden, peer, numbers, soak: tests/README.md
# make install   into PREFIX, by way of DESTDIR; make install-lib: the C library alone; make uninstall removes it
# make readme    copy the help into server/README.md and the manual page
# make deb, wheel, npm, dist, release     packages; deb-test and image-test try them
# make rules     the alerts as Kubernetes takes them
# make clean     remove build/
#
# VARIANT=asan or tsan builds the same with a sanitizer, in its own folder. PAGE=no builds without the pages, which take
# node and npm. ARCH=arm64 or amd64 compiles for that machine.

VARIANT ?= release
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
PAGE = yes
VERSION := $(shell sed -n 's/^\#define KLDIV_VERSION "\(.*\)"/\1/p' lib/kldiv.h)

# ccache, where it is installed: CCACHE= does without.
CCACHE := $(shell command -v ccache)
CC = $(CCACHE) $(if $(filter asan,$(VARIANT)),clang,gcc)
PYTHON = /usr/bin/python3
CPUS := $(shell nproc)
B = build/$(VARIANT)
MACHINE := $(shell uname -m)
ARCH =
ifneq ($(ARCH),)
include docker/image/cross.mk
endif

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
           -Wpointer-arith -Wwrite-strings -Wvla -Werror=int-conversion -Werror=incompatible-pointer-types
HARDENING = -fstack-protector-strong -fstack-clash-protection -fPIC $(HARDENING_$(MACHINE))
HARDENING_x86_64 = -fcf-protection
HARDENING_aarch64 = -mbranch-protection=standard
OPTIMIZE_release = -O2 -D_FORTIFY_SOURCE=2
# Objects that the fuzzers are linked of, too. The other variants warn; clang has warnings of its own.
OPTIMIZE_asan = -O1 -gline-tables-only -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined \
                -fno-omit-frame-pointer -D__SANITIZE_ADDRESS__ -w
# Kernels take minutes each with all checks, and half a minute with AddressSanitizer's inline. Tests are not what is
# tested: AddressSanitizer alone, and a fifth of the time to compile.
ifeq ($(VARIANT),asan)
$(B)/lib/simd/%.o: override CFLAGS += -fno-sanitize=null,object-size,pointer-overflow,fuzzer-no-link \
                                      -mllvm -asan-instrumentation-with-call-threshold=0
$(B)/tests/%.o: override CFLAGS += -O0 -fno-sanitize=undefined,fuzzer-no-link
endif
OPTIMIZE_tsan = -O1 -g1 -fsanitize=thread
# Each multiplication and addition rounds by itself unless the source says fma.
override CFLAGS := -std=c11 -D_GNU_SOURCE -I. $(WARNINGS) $(HARDENING) $(OPTIMIZE_$(VARIANT)) \
          -fvisibility=hidden -pthread -MMD -MP $(CFLAGS) -ffp-contract=off
LDFLAGS += -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code -pthread $(filter -fsanitize%,$(OPTIMIZE_$(VARIANT)))

# Where requests are read, not in lib: there zeroed arrays cost 17 % on average and 84 % at most, checked
# copies 20 % of rows of 10, and valgrind would see no variable that nobody has set.
STRICT_asan = -enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang
STRICT_release = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
$(B)/api/%.o $(B)/server/%.o: override CFLAGS += -ftrivial-auto-var-init=zero $(STRICT_$(VARIANT))

API_LIBS = -lsqlite3 -lpq -ljansson -lzip -lz
# libmicrohttpd comes before them, as a copy of its archive.
SERVER_LIBS = -lcurl -lgnutls -lseccomp
PACKAGES_BUILD = gcc libc6-dev pkg-config libmicrohttpd-dev libjansson-dev libsqlite3-dev libpq-dev libzip-dev \
                 zlib1g-dev libcurl4-gnutls-dev libgnutls28-dev libseccomp-dev tzdata
# Debian's, unless another is there already.
missing = $(if $(shell command -v $(1) 2>/dev/null),,$(or $(2),$(1)))
PACKAGES_NODE = $(if $(filter yes,$(PAGE)),$(call missing,node,nodejs) $(call missing,npm))

objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)))
LIB_SOURCES := $(wildcard lib/*.c lib/*/*.c)
API_SOURCES := $(wildcard api/*.c api/*/*.c api/*/*/*.c)
SERVER_SOURCES := $(wildcard server/*.c server/*/*.c)
LIB = $(LIB_SOURCES:%.c=$(B)/%.o)
API = $(API_SOURCES:%.c=$(B)/%.o)
SERVER = $(SERVER_SOURCES:%.c=$(B)/%.o)

.PHONY: all help run deps-run readme install install-lib uninstall clean
.DELETE_ON_ERROR:
all: build/kldivd $(B)/libkldiv.a $(B)/libkldiv.so

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC   $@"
	@$(CC) $(CFLAGS) -c $< -o $@
$(B)/api/endpoints.o: api/openapi.json
# Kernels take half a minute each. Threads share nothing in them, and of those under AddressSanitizer only the one that this
# machine takes runs: the others are the release's, whose make knows the headers that they depend on.
KERNELS = $(wildcard lib/simd/*.c)
CPU_FLAGS := $(shell sed -n '/^flags/{s/.*: //p;q}' /proc/cpuinfo 2>/dev/null)
FASTEST = $(if $(filter avx512vl,$(CPU_FLAGS)),avx512,$(if $(filter avx2,$(CPU_FLAGS)),avx2,generic))
FROM_RELEASE_tsan = $(KERNELS)
FROM_RELEASE_walk = $(KERNELS)
FROM_RELEASE_asan = $(filter-out lib/simd/$(FASTEST).c,$(addprefix lib/simd/,avx512.c avx2.c generic.c))
.PHONY: ask-release
$(patsubst %.c,$(B)/%.o,$(FROM_RELEASE_$(VARIANT))): $(B)/lib/simd/%.o: ask-release
	@mkdir -p $(@D)
	@$(MAKE) -s --no-print-directory VARIANT=release build/release/lib/simd/$*.o && cp -u build/release/lib/simd/$*.o $@

$(B)/libkldiv.a: $(LIB)
	@rm -f $@; $(AR) rcs $@ $^
$(B)/libapi.a: $(API)
	@rm -f $@; $(AR) rcs $@ $^
$(B)/libkldiv.so: $(LIB) lib/kldiv.map
	@echo "  LINK $@"
	@$(CC) -shared -Wl,-soname,libkldiv.so.1,-Bsymbolic-functions,--version-script=lib/kldiv.map $(filter-out -pie,$(LDFLAGS)) $(LIB) -lm -o $@
# libmicrohttpd's own calls to the network go to server/connection/door.c, nobody else's: its static archive, in which
# they have other names. Where it does not make one of them, the server would not see what it reads or sends.
MHD_CALLS = recv send sendmsg setsockopt epoll_ctl epoll_wait close
MHD_ARCHIVE = $(or $(wildcard $(shell $(CC) -print-file-name=libmicrohttpd.a 2>/dev/null)),libmicrohttpd.a)
libmicrohttpd.a:
	@echo "libmicrohttpd.a is missing: apt-get install libmicrohttpd-dev" >&2; exit 1
$(B)/libmicrohttpd.a: $(MHD_ARCHIVE) Makefile
	@mkdir -p $(@D)
	@echo "  COPY $@"
	@for call in $(MHD_CALLS); do $(BINUTILS)nm $< 2>/dev/null | grep -qx " *U $$call" || \
	    { echo "$<: libmicrohttpd does not call $$call; server/connection/door.c must be fitted to it" >&2; exit 1; }; done
	@if $(BINUTILS)nm $< 2>/dev/null | grep -xE ' *U (__)?(recv(from|msg)?|readv)(_chk)?' | grep -qvx ' *U recv'; then \
	    echo "$<: libmicrohttpd reads sockets by other calls, too; server/connection/door.c must be fitted to it" >&2; exit 1; fi
	@$(BINUTILS)objcopy $(foreach call,$(MHD_CALLS),--redefine-sym $(call)=srv_mhd_$(call)) $< $@

$(B)/kldivd: $(SERVER) $(B)/libmicrohttpd.a $(B)/libapi.a $(B)/libkldiv.a
	@echo "  LINK $@"
	@$(CC) $(LDFLAGS) $^ $(SERVER_LIBS) $(API_LIBS) -lm -o $@
build/kldivd: $(B)/kldivd
	@cp --remove-destination $< $@

# Installs what is missing, builds, serves, and says how to call it.
run:
	@{ pkg-config --exists libmicrohttpd jansson sqlite3 libpq libzip zlib libcurl gnutls libseccomp && \
	    { [ $(PAGE) = no ] || command -v npm; }; } >/dev/null 2>&1 || $(MAKE) deps-run
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
deps-run:
	@docker/install-packages.sh $(PACKAGES_BUILD) $(PACKAGES_NODE)

# Copies the help into the READMEs and the manual page, the clients into theirs.
readme: all
	tests/tools/readme.sh build/kldivd

# Quoted, for DESTDIR may have blanks.
TO_PREFIX = "$(DESTDIR)$(PREFIX)"
TO_LIB = "$(DESTDIR)$(LIBDIR)"
install: all install-lib
	install -D -m 755 build/kldivd $(TO_PREFIX)/bin/kldivd
	install -D -m 644 server/kldivd.1 $(TO_PREFIX)/share/man/man1/kldivd.1
	install -D -m 644 server/completion.bash $(TO_PREFIX)/share/bash-completion/completions/kldivd
	install -D -m 644 server/completion.zsh $(TO_PREFIX)/share/zsh/site-functions/_kldivd
	for unit in docker/systemd/*; do \
	    sed 's|/usr/bin/kldivd|$(PREFIX)/bin/kldivd|' $$unit > build/$${unit##*/} && \
	    install -D -m 644 build/$${unit##*/} $(TO_PREFIX)/lib/systemd/system/$${unit##*/} || exit 1; done

# drift.h is the old name of kldiv_drift.h.
install-lib: $(B)/libkldiv.a $(B)/libkldiv.so
	install -d $(TO_PREFIX)/include
	install -m 644 lib/kldiv.h $(TO_PREFIX)/include
	install -m 644 lib/drift.h $(TO_PREFIX)/include/kldiv_drift.h
	printf '%s\n' '/* The old name of kldiv_drift.h. */' '#include "kldiv_drift.h"' > $(TO_PREFIX)/include/drift.h
	install -D -m 644 $(B)/libkldiv.a $(TO_LIB)/libkldiv.a
	install -D -m 755 $(B)/libkldiv.so $(TO_LIB)/libkldiv.so.$(VERSION)
	ln -sf libkldiv.so.$(VERSION) $(TO_LIB)/libkldiv.so.1
	ln -sf libkldiv.so.1 $(TO_LIB)/libkldiv.so
	install -d $(TO_LIB)/pkgconfig
	printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'Name: kldiv' \
	    'Description: The Kullback-Leibler divergence loss' 'Version: $(VERSION)' \
	    'libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)' 'Libs: -L$${libdir} -lkldiv' 'Libs.private: -lm -pthread' \
	    'Cflags: -I$${includedir}' \
	    > $(TO_LIB)/pkgconfig/kldiv.pc

INSTALLED = bin/kldivd share/man/man1/kldivd.1 share/bash-completion/completions/kldivd share/zsh/site-functions/_kldivd \
            $(patsubst docker/systemd/%,lib/systemd/system/%,$(wildcard docker/systemd/*)) include/kldiv.h include/kldiv_drift.h include/drift.h
uninstall:
	for file in $(INSTALLED); do rm -f $(TO_PREFIX)/$$file; done
	rm -f $(TO_LIB)/libkldiv.* $(TO_LIB)/pkgconfig/kldiv.pc

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

clean:
	rm -rf build

include $(wildcard api/web/web.mk docker/package.mk tests/*.mk)

-include $(shell find build -name '*.d' 2>/dev/null)
