# Programs that test: the suites, what is preloaded into a server, clients of a server, comparisons.

TEST_LIBS = -lcriterion -lquadmath -lpq
$(B)/tests/%.o: override CFLAGS += -Wno-conversion -DKLDIV_BINARY='"$(B)/kldivd"' -DKLDIV_FAULTS='"$(B)/tests/faults.so"' \
    -DKLDIV_UNADAPTED='"$(B)/tests/unadapted"'

# Tests are not what is tested: -O1 takes half of the time to compile. Those of the library compute for minutes.
$(B)/tests/suites/%.o: override CFLAGS += $(if $(filter release,$(VARIANT)),-O1)
$(B)/tests/suites/lib/%.o: override CFLAGS += $(if $(filter release,$(VARIANT)),-O2)

# The header of libquadmath is one of gcc's: clang finds it by a link.
ifeq ($(VARIANT),asan)
$(B)/tests/%.o: override CFLAGS += -idirafter $(B)/include
$(B)/include/quadmath.h:
	@mkdir -p $(@D)
	@ln -sf $$(gcc -print-file-name=include)/quadmath.h $@
$(patsubst %.c,$(B)/%.o,$(wildcard tests/suites/lib/*.c)): $(B)/include/quadmath.h
endif

SUITES = $(filter-out tests/suites/support/%,$(wildcard tests/suites/*/*.c))
# Not sanitized are the suites of numbers but some, for the release's tests run the kernels beside unmapped pages, and those
# of the project's own files: LeakSanitizer would search all of their arrays at the end of every test.
RUN_SANITIZED = $(addprefix tests/suites/lib/,axes.c calls.c drift.c failures.c interrupted.c partial.c)
ifeq ($(VARIANT),asan)
SUITES := $(RUN_SANITIZED) $(filter-out tests/suites/lib/% tests/suites/project/%,$(SUITES))
endif
TESTS = $(patsubst %.c,$(B)/%.o,$(SUITES) $(wildcard tests/suites/support/*.c))

# Preloaded into a server by tests. Not instrumented: it is called before a sanitizer is ready.
$(B)/tests/faults.so: tests/tools/preload/faults.c tests/tools/preload/faults.h
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) -O2 $(filter-out -MMD -MP $(OPTIMIZE_$(VARIANT)),$(CFLAGS)) -shared $< -o $@
# The server with a libmicrohttpd that reads past the door: a test checks that it serves nothing.
$(B)/tests/unadapted.a: $(MHD_ARCHIVE)
	@mkdir -p $(@D)
	@$(BINUTILS)objcopy --redefine-sym close=srv_mhd_close $< $@
$(B)/tests/unadapted: $(SERVER) $(B)/tests/unadapted.a $(B)/libapi.a $(B)/libkldiv.a
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) $(LDFLAGS) $^ $(SERVER_LIBS) $(API_LIBS) -lm -o $@
$(B)/tests/all: $(B)/kldivd $(B)/tests/faults.so $(B)/tests/unadapted $(TESTS) $(filter-out %/main.o,$(SERVER)) \
                $(B)/libmicrohttpd.a $(B)/libapi.a $(B)/libkldiv.a
	@echo "  LINK $@"
	@$(CC) $(LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	    -Wl,--export-dynamic-symbol=fdatasync,--export-dynamic-symbol=fsync $(filter %.o %.a,$^) $(TEST_LIBS) \
	    $(SERVER_LIBS) $(API_LIBS) -lm -o $@

$(B)/stress/%: tests/tools/stress/%.c $(B)/libkldiv.a
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) $(CFLAGS) -Wno-conversion $(LDFLAGS) $^ -lm -o $@

$(B)/load: $(call objects,tests/system/load/*.c)
	@echo "  LINK $@"
	@$(CC) $(LDFLAGS) $^ -o $@

PROXIES = $(call objects,tests/system/proxies/*.c tests/suites/support/process.c tests/suites/support/log_lines.c tests/system/load/wire.c tests/system/load/calls.c)
$(B)/proxies: $(PROXIES) $(B)/libapi.a $(B)/libkldiv.a
	@echo "  LINK $@"
	@$(CC) $(LDFLAGS) $^ -lcriterion -lcurl $(API_LIBS) -lm -o $@

SLEEF = $(shell pkg-config --libs sleef 2>/dev/null)
$(B)/bench/sleef: override CFLAGS += $(if $(filter x86_64,$(MACHINE)),-mavx512f) # its header asks for it
$(B)/bench/%: tests/tools/bench/%.c tests/tools/bench/measure.h $(B)/libkldiv.a
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) $(CFLAGS) -Wno-conversion $(LDFLAGS) $(filter %.c %.a,$^) -lmicrohttpd $(SLEEF) -lm -o $@

$(B)/bench/tables $(B)/bench/false_alarms: $(B)/bench/%: tests/tools/bench/%.c tests/tools/bench/measure.h $(B)/libapi.a $(B)/libkldiv.a
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) $(CFLAGS) -Wno-conversion $(LDFLAGS) $(filter %.c %.a,$^) $(API_LIBS) -lm -o $@

# Programs of one VARIANT that tests run, all at once on machines with more processors.
.PHONY: programs
programs: build/kldivd $(B)/libkldiv.so $(B)/tests/all $(B)/load $(B)/proxies $(B)/stress/calls $(BENCHES)
