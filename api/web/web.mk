# The pages: files of api/web and of npm's packages, compressed, and their list in C. PAGE=no builds without them.
PAGE_SCRIPTS = dashboard/start.js dashboard/calculator.js docs/docs.js docs/theme.js
ASSETS_yes = $(PAGE_SCRIPTS) $(patsubst api/web/%,%,$(wildcard api/web/*.html $(addprefix api/web/*/*.,html css svg))) \
             dashboard/uplot.js dashboard/uplot.css dashboard/licenses docs/swagger-ui-bundle.js docs/swagger-ui.css
ASSETS = $(sort $(ASSETS_$(PAGE)))
PACKED = $(ASSETS:%=build/assets/%.gz)

$(B)/api/web/web.o: build/assets/list.h $(PACKED)

MODULES = api/web/node_modules
WEB_PACKAGES = api/web/node_modules/.package-lock.json
# npm's record of what it installed tells whether that is what the lockfile wants.
%/node_modules/.package-lock.json: %/package-lock.json
	@command -v npm >/dev/null || { echo "The pages and their tests need node and npm (apt-get install nodejs npm)."; \
	    echo "Without them:  make PAGE=no"; exit 1; } >&2
	cd $* && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && \
	    touch node_modules/.package-lock.json

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
$(PACKED): api/web/web.mk
build/assets/list.h: $(PACKED) FORCE
	@mkdir -p $(@D)
	@new=$@.$$$$; { printf '#define ASSETS(X)'; n=0; for f in $(ASSETS); do \
	    printf ' \\\n    X(%d, "%s")' $$n $$f; n=$$((n + 1)); done; echo; } > $$new; \
	cmp -s $$new $@ && rm $$new || mv $$new $@

