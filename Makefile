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

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
           -Wpointer-arith -Wwrite-strings -Wvla
HARDENING = -fstack-protector-strong -fcf-protection -fPIC
OPTIMIZE_release = -O2 -D_FORTIFY_SOURCE=2
OPTIMIZE_asan = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined \
                -fno-omit-frame-pointer
OPTIMIZE_tsan = -O1 -g -fsanitize=thread
# Each multiplication and addition rounds by itself unless the source says fma.
CFLAGS += -std=c11 -D_GNU_SOURCE -I. $(WARNINGS) $(if $(filter x86_64,$(MACHINE)),$(HARDENING),-fPIC) \
          $(OPTIMIZE_$(VARIANT)) -ffp-contract=off -fvisibility=hidden -pthread -MMD -MP
LDFLAGS += -pie -Wl,-z,relro,-z,now -pthread $(filter -fsanitize%,$(OPTIMIZE_$(VARIANT)))
MACHINE := $(shell uname -m)

API_LIBS = -ljansson
SERVER_LIBS = -lmicrohttpd -lcurl
PACKAGES_BUILD = gcc libc6-dev pkg-config libmicrohttpd-dev libjansson-dev libcurl4-gnutls-dev
PACKAGES_TEST = $(PACKAGES_BUILD) libcriterion-dev clang clang-format clang-tidy cppcheck \
                libclang-rt-14-dev

$(B)/tests/%.o: CFLAGS += -Wno-conversion -DKLDIV_BINARY='"$(B)/kldivd"'

objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)))
LIB = $(call objects,lib/*.c lib/simd/*.c)
API = $(call objects,api/*.c)
SERVER = $(call objects,server/*.c)
SERVER_BUT_MAIN = $(filter-out %/main.o,$(SERVER))
TESTS = $(call objects,tests/*.c)

.PHONY: all run test check deps deps-build lint bench fuzz stress install clean readme golden
all: build/kldivd $(B)/libkldiv.a $(B)/libkldiv.so

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@
$(B)/api/openapi.o: api/openapi.json

$(B)/libkldiv.a: $(LIB)
	$(AR) rcs $@ $?
$(B)/libapi.a: $(API)
	$(AR) rcs $@ $?
$(B)/libkldiv.so: $(LIB)
	$(CC) -shared -Wl,-soname,libkldiv.so.0 $(filter-out -pie,$(LDFLAGS)) $^ -lm -o $@
$(B)/kldivd: $(SERVER) $(B)/libapi.a $(B)/libkldiv.a
	$(CC) $(LDFLAGS) $^ $(SERVER_LIBS) $(API_LIBS) -lm -o $@
build/kldivd: $(B)/kldivd
	cp $< $@
$(B)/tests/all: $(B)/kldivd $(TESTS) $(SERVER_BUT_MAIN) $(B)/libapi.a $(B)/libkldiv.a
	$(CC) $(LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc $(filter %.o %.a,$^) -lcriterion \
	    $(SERVER_LIBS) $(API_LIBS) -lm -o $@

-include $(shell find build -name '*.d' 2>/dev/null)
