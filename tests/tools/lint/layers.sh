#!/bin/sh
# Layers: lib <- api <- server. Checks the includes and the libraries of each, and that each archive
# exports only names of its own prefix. Usage: tests/tools/lint/layers.sh build/release
set -eu
bad=0
complain() { echo "layers: $*" >&2; bad=1; }

includes() { grep -nE "#include \"($2)/" "$1"/*.[ch] "$1"/*/*.[ch] "$1"/*/*/*.[ch] 2>/dev/null || true; }
[ -z "$(includes lib 'api|server|tests')" ] || complain "lib includes from above: $(includes lib 'api|server|tests')"
[ -z "$(includes api 'server|tests')" ] || complain "api includes from above: $(includes api 'server|tests')"
[ -z "$(includes server 'tests')" ] || complain "server includes tests"
system=$(grep -nE '#include <(jansson|microhttpd|curl/|gnutls/)' lib/*.[ch] lib/*/*.[ch] || true)
[ -z "$system" ] || complain "lib wants libraries: $system"
system=$(grep -nE '#include <(microhttpd|curl/|gnutls/)' api/*.[ch] api/*/*.[ch] api/*/*/*.[ch] || true)
[ -z "$system" ] || complain "api wants the server's libraries: $system"

exports() { nm -g --defined-only "$1" | awk 'NF == 3 { print $3 }' | grep -vE "^$2" || true; }
[ -z "$(exports "$1/libkldiv.a" kl_)" ] || complain "libkldiv.a exports $(exports "$1/libkldiv.a" kl_)"
[ -z "$(exports "$1/libapi.a" api_)" ] || complain "libapi.a exports $(exports "$1/libapi.a" api_)"

# libkldiv.so needs only libc, libm and pthread, and exports only functions that its headers declare, each
# with the version of its soname.
needed=$(readelf -d "$1/libkldiv.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^lib(c|m|pthread)\.so' || true)
[ -z "$needed" ] || complain "libkldiv.so needs $needed"
version=KLDIV_$(readelf -d "$1/libkldiv.so" | sed -n 's/.*SONAME.*\[libkldiv\.so\.\(.*\)\]/\1/p')
for symbol in $(nm -D --defined-only "$1/libkldiv.so" | awk '$2 != "A" { print $3 }'); do
    name=${symbol%%@*}
    [ "$symbol" = "$name@@$version" ] || complain "libkldiv.so exports $symbol, not in version $version"
    grep -q "\b$name(" lib/kldiv.h lib/drift.h || complain "libkldiv.so exports $name, which no header declares"
done
exit $bad
