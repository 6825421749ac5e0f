# Fuzzers: one program for each parser, of the objects of VARIANT=asan. SECONDS_EACH=600 for longer.
SECONDS_EACH ?= 3

FUZZERS = $(patsubst tests/tools/fuzz/%.c,build/fuzz/%,$(wildcard tests/tools/fuzz/*.c))
ifeq ($(VARIANT),asan)
build/fuzz/%: tests/tools/fuzz/%.c $(wildcard tests/tools/fuzz/*.h) $(B)/server/connection/framing.o $(B)/libapi.a $(B)/libkldiv.a
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) $(filter-out -MMD -MP,$(CFLAGS)) $(LDFLAGS) -fsanitize=fuzzer $(filter %.c %.o %.a,$^) \
	    $(API_LIBS) -lm -o $@
endif
# Seeds are the bodies of the table, and those of monitors, where there is numpy to make them.
build/fuzz/seeds: tests/tools/golden/bodies.py tests/tools/fuzz/seeds.py
	@mkdir -p $@
	@if $(PYTHON) -c 'import numpy' 2>/dev/null; then \
	    $(PYTHON) -W ignore $< $@ && $(PYTHON) tests/tools/fuzz/seeds.py $@; \
	else echo "(no python3-numpy: fuzzing without seeds)"; fi
.PHONY: fuzzers
fuzzers: build/fuzz/seeds
	$(MAKE) --no-print-directory $(FUZZERS) VARIANT=asan
fuzz: fuzzers
	@printf '%s\n' $(FUZZERS) | SECONDS_EACH=$(SECONDS_EACH) xargs -P $(CPUS) -n 1 tests/tools/fuzz/run.sh
