# Packages of what is built: Debian, Python, npm, R, an image, a release of all of them.
.PHONY: deb deb-test release dist wheel npm R rules deps-image image-files check-image image-test

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
wheel:
	@pkg-config --exists libmicrohttpd jansson sqlite3 libpq libzip zlib libcurl gnutls libseccomp >/dev/null 2>&1 || $(MAKE) deps-run
	@$(MAKE) --no-print-directory $(WHEEL)
$(WHEEL): $(B)/libkldiv.so build/kldivd $(wildcard $(addprefix api/clients/python/,*.* kldiv/*))
	docker/install-packages.sh python3-build python3-setuptools python3-wheel python3-venv
	rm -rf build/pypi
	mkdir -p build/pypi/source
	cp -r api/clients/python/. LICENSE lib build/pypi/source
	cd build/pypi/source && SOURCE_DATE_EPOCH=$(EPOCH) KLDIV_BUILT_LIBRARY=$(abspath $<) KLDIV_PLATFORM=$(PLATFORM) \
	    KLDIV_BUILT_SERVER=$(abspath build/kldivd) \
	    $(PYTHON) -W ignore -m build --no-isolation --sdist --wheel --outdir .. . >../log || { cat ../log; exit 1; }
	cd build/pypi && mkdir sdist && tar -xzf $(notdir $(SDIST)) -C sdist && tar --sort=name --mtime=@$(EPOCH) --owner=0 \
	    --group=0 --numeric-owner --mode=go=rX,u+rw -C sdist -cf - kldiv-$(VERSION) | gzip -9n > $(notdir $(SDIST))
	@ls build/pypi/kldiv-$(VERSION)*

# The package of TypeScript, whose types are made of api/openapi.json, by the tools that the tests have.
NPM_TOOLS = tests/system/contract/node_modules
NPM_PACKAGE = build/npm/kldiv-$(VERSION).tgz
npm:
	@$(if $(strip $(PACKAGES_NODE)),docker/install-packages.sh $(PACKAGES_NODE))
	@$(MAKE) --no-print-directory $(NPM_PACKAGE)
$(NPM_PACKAGE): api/openapi.json $(NPM_TOOLS)/.package-lock.json LICENSE \
                $(filter-out %/schema.ts,$(wildcard $(addprefix api/clients/typescript/,*.json *.md src/*)))
	rm -rf build/npm api/clients/typescript/dist
	mkdir -p build/npm
	cd api/clients/typescript && PATH=$(abspath $(NPM_TOOLS)/.bin):$$PATH \
	    npm pack --silent --pack-destination $(abspath build/npm) >$(abspath build/npm/log) 2>&1 || \
	    { cat $(abspath build/npm/log); exit 1; }
	@ls $@

# The package of R, by R CMD build, which writes the time and the user into it: it is packed again.
R_PACKAGE = build/R/kldiv_$(VERSION).tar.gz
R: $(R_PACKAGE)
$(R_PACKAGE): $(wildcard $(addprefix api/clients/R/,* R/* man/* tests/* tests/*/*))
	rm -rf build/R
	mkdir -p build/R/tree
	cd build/R && R CMD build ../../api/clients/R >log 2>&1 || { cat log; exit 1; }
	tar -xzf $@ -C build/R/tree
	sed -i 's/^Packaged: .*/Packaged: '"$$(date -u -d @$(EPOCH) '+%F %T')"' UTC; kldiv/' build/R/tree/kldiv/DESCRIPTION
	tar --sort=name --mtime=@$(EPOCH) --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -C build/R/tree -cf - kldiv | \
	    gzip -9n > $@
	@ls $@

# SOURCE=URL of the repository; as root, a quarter of an hour. Between releases the commit's time is a part of its version.
RELEASE = build/release-$(DEB_VERSION)
release: deb wheel npm R dist
	cp build/$(DIST).tar.gz build/kldiv-$(DEB_VERSION)-source.tar.gz
	SOURCE='$(SOURCE)' docker/release/make.sh $(RELEASE) $(DEB_VERSION) build/deb/*.deb $(WHEEL) \
	    $(SDIST) $(NPM_PACKAGE) $(R_PACKAGE) build/kldiv-$(DEB_VERSION)-source.tar.gz

# The rules of Prometheus for its operator: kustomize makes no resource of a file that is none. And the dashboard beside them:
# kustomize reads no file of another folder.
RULES = docker/kubernetes/components/monitoring/rules.yaml
rules: $(RULES) $(dir $(RULES))dashboard.json
$(dir $(RULES))dashboard.json: docker/grafana/dashboard.json
	cp $< $@
$(RULES): docker/prometheus/rules.yml
	sed -e '1i apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: kldiv}\nspec:' -e 's/^./  &/' $< > $@

# The build of an image: fewer packages, by make deps-image; its files, by make image-files.
PACKAGES_OTHER = $(filter-out gcc pkg-config tzdata,$(PACKAGES_BUILD))
PACKAGES_IMAGE = $(if $(CROSS_ARCH),gcc-$(subst _,-,$(TRIPLET)) $(PACKAGES_OTHER:%=%:$(CROSS_ARCH)), \
                 $(PACKAGES_BUILD) libcriterion-dev) make tzdata $(PACKAGES_NODE)
deps-image:
	$(if $(CROSS_ARCH),dpkg --add-architecture $(CROSS_ARCH))
	@docker/install-packages.sh $(PACKAGES_IMAGE)
image-files: all
	docker/image/collect.sh build/kldivd $$($(CC) -dumpmachine) $(DESTDIR)

# The suites, in the build of an image for this machine.
check-image: $(B)/tests/all
	$(B)/tests/all

# Builds the image by buildah, and runs it: root, debootstrap and the network, and some minutes.
image-test:
	docker/image/test.sh
