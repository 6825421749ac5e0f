# Fuzzers: one program for each parser. SECONDS_EACH=600 for longer.
SECONDS_EACH ?= 3

FUZZERS = $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/*.c))
FUZZED = $(patsubst %.c,build/fuzz/%.o,$(LIB_SOURCES) $(API_SOURCES) server/framing.c)
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
	    $(API_LIBS) -lm -o $@
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
