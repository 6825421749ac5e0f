# make lint: the format of C, the layers and circles of files, names of suites, the library's binary interface, the types
# of JavaScript, and two analyzers: of the sources that differ from SINCE, or that include a header that does. make lint-all
# analyzes all sources.
.PHONY: lint lint-all
SINCE = HEAD
SOURCES = $(wildcard $(addsuffix /*.[ch],lib lib/* api api/* api/*/* server server/* tests/*/* tests/tools/cross/criterion))
ANALYZED = $(LIB_SOURCES) $(API_SOURCES) $(SERVER_SOURCES)
# The same code by other intrinsics than those of generic.c, for minutes.
INTRINSICS = lib/simd/avx2.c lib/simd/avx512.c lib/simd/neon.c
# The analyzer's bound of steps of a function, of its own 225,000. What differs gets more than all sources at once.
NODES = 15000
TIDY = clang-tidy --quiet --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=$(NODES)

lint:
	@sources=$$(tests/tools/lint/changed.sh '$(SINCE)' $(ANALYZED)) && \
	    $(MAKE) --no-print-directory lint-all NODES=40000 ANALYZED="$$(echo $$sources)"
lint-all: $(addprefix lint-,format structure abi install types cppcheck tidy)
.PHONY: $(addprefix lint-,format structure abi install types cppcheck tidy)
lint-format:
	clang-format --dry-run -Werror $(SOURCES)
lint-structure: $(B)/kldivd $(B)/libkldiv.a $(B)/libapi.a
	tests/tools/lint/layers.sh $(B)
	$(PYTHON) -B tests/tools/lint/circles.py $(B)
	tests/tools/lint/suites.sh $(SUITES)
lint-abi: $(B)/libkldiv.so
	tests/tools/lint/abi.sh
lint-install: $(B)/libkldiv.a
	tests/tools/lint/install.sh
lint-types: tests/system/page/node_modules/.package-lock.json
	tests/system/page/node_modules/.bin/tsc -p tests/system/page
lint-cppcheck:
	@echo "  CPPCHECK  $(words $(ANALYZED)) sources"
	@[ -z '$(strip $(ANALYZED))' ] || cppcheck --quiet -j $(CPUS) --std=c11 --error-exitcode=1 --inline-suppr \
	    --enable=warning,performance,portability --suppress=missingIncludeSystem -D__x86_64__ -D__cppcheck__ -I. $(ANALYZED)
lint-tidy: $(WEB_PACKAGES)
	@echo "  TIDY  $(words $(ANALYZED)) sources"
	@printf '%s\n' $(filter-out $(INTRINSICS),$(ANALYZED)) | xargs -r -P $(CPUS) -n 4 sh -c '$(TIDY) "$$@" -- -std=c11 -D_GNU_SOURCE -I. 2>/dev/null' tidy
