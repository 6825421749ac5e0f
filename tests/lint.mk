# make lint: the format of C, the layers and circles of files, names of suites, the library's binary interface, the
# types of JavaScript, and two analyzers.
.PHONY: lint
SOURCES = $(wildcard $(addsuffix /*.[ch],lib lib/* api api/* api/*/* server tests/* tests/cross/criterion))
TIDIED = $(filter-out lib/simd/%,$(LIB_SOURCES)) $(API_SOURCES) $(wildcard server/*.c) lib/simd/reference.c lib/simd/generic.c
lint: $(B)/kldivd $(B)/libkldiv.a $(B)/libapi.a $(B)/libkldiv.so $(PAGE_TOOLS) $(WEB_PACKAGES)
	clang-format --dry-run -Werror $(SOURCES)
	tests/lint/layers.sh $(B)
	$(PYTHON) -B tests/lint/circles.py $(B)
	tests/lint/suites.sh $(SUITES)
	tests/lint/abi.sh
	tests/lint/install.sh
	tests/page/node_modules/.bin/tsc -p tests/page
	cppcheck --quiet -j $(CPUS) --std=c11 --error-exitcode=1 --inline-suppr --enable=warning,performance,portability \
	    --suppress=missingIncludeSystem -D__x86_64__ -I. lib api server
	@echo "  TIDY"; printf '%s\n' $(TIDIED) | xargs -P $(CPUS) -n 4 sh -c \
	    'clang-tidy --quiet "$$@" -- -std=c11 -D_GNU_SOURCE -I. 2>/dev/null' tidy
