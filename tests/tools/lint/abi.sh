#!/bin/sh
# The binary interface of libkldiv.so: a program that was compiled with the last release runs with this library, too.
# abidiff compares its functions, structs and enums with lib/kldiv.abi, and the constants of its headers, which programs
# have compiled in, are compared with lib/kldiv.constants; `abi.sh write` makes both of a release. More functions are fine, more
# warnings, of which a program reads those that it knows, and constants that are gone: a program asks a function now, or does not
# compile. Then removed and changed parts are put into copies of the sources, and must be found.
# Usage: tests/tools/lint/abi.sh [write]
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "abi: $*" >&2; exit 1; }

# Without optimization: neither symbols nor layouts depend on it. Kernels define nothing that is public. abidiff's own
# --headers-dir2 would leave out changes of structs, for the functions that take them are defined in no header.
describe() {
    mkdir "$1/public" "$1/objects"
    cp "$1/lib/kldiv.h" "$1/lib/drift.h" "$1/public"
    (cd "$1" && for source in lib/*.c lib/[!s]*/*.c lib/sparse/*.c lib/simd/kernel.c; do
        gcc -std=c11 -D_GNU_SOURCE -I. -g -O0 -w -fPIC -fvisibility=hidden -pthread -c "$source" \
            -o "objects/${source##*/}.o" || exit 1
    done && gcc -shared -Wl,-soname,libkldiv.so.1,--version-script=lib/kldiv.map objects/*.o -lm -o libkldiv.so)
    abidw --headers-dir "$1/public" --drop-private-types --drop-undefined-syms --exported-interfaces-only \
        --no-corpus-path --no-comp-dir-path --no-show-locs --no-parameter-names --out-file "$1/kldiv.abi" "$1/libkldiv.so"
    names=$(cat "$1"/public/*.h | gcc -fpreprocessed -dD -E -P - | grep -oE '\bKL_[A-Z0-9_]+' | sort -u)
    { cat "$1/public/kldiv.h" "$1/public/drift.h"; printf '%s\n' '#include <stdio.h>' 'int main(void) {'
      printf 'printf("%%s %%lld\\n", "%s", (long long)%s);\n' $(for name in $names; do echo "$name $name"; done)
      echo '}'; } | gcc -w -I "$1/public" -x c - -o "$1/constants"
    "$1/constants" > "$1/kldiv.constants"
}
copy() { rm -rf "${work:?}/$1" && mkdir "$work/$1" && cp -r lib "$work/$1"; }
compare() {
    abidiff --no-architecture --no-added-syms lib/kldiv.abi "$1/kldiv.abi" && ! join lib/kldiv.constants "$1/kldiv.constants" |
        awk '$2 != $3 && !($1 == "KL_WARNINGS" && $3 > $2) { print "constant " $1 " was " $2 ", is " $3 }' | grep .
}

copy now
describe "$work/now"
[ "${1-}" != write ] || { cp "$work/now/kldiv.abi" "$work/now/kldiv.constants" lib; exit; }
compare "$work/now" || fail "programs of the last release would not run: see kl_sizeof in lib/kldiv.h"

# The symbols that the Debian package lists: with others `make deb` fails.
{ nm -D --defined-only "$work/now/libkldiv.so" | awk '$3 ~ /^kl_/ {sub("@@", "@", $3); print $3}'; } | sort > "$work/defined"
awk '$1 ~ /^kl_/ {print $1}' docker/debian/libkldiv1.symbols | sort | diff "$work/defined" - ||
    fail "docker/debian/libkldiv1.symbols has other symbols"

# Expects that a change of a file, by sed, is found.
changed() {
    copy changed
    sed -i "$3" "$work/changed/$2"
    ! cmp -s "$2" "$work/changed/$2" || fail "$1: $2 has no such line"
    describe "$work/changed"
    ! compare "$work/changed" > "$work/said" || fail "$1 is not noticed"
    grep -q "$4" "$work/said" || fail "$1: $(cat "$work/said")"
}
changed 'a removed function' lib/kldiv.map 's/local: /local: kl_simd_name; /' 'kl_simd_name'
changed 'a member within a struct' lib/kldiv.h 's/^struct kl_options {/& int added;/' "'int added'"
changed 'other numbers of an enum' lib/kldiv.h 's/KL_LOG_PROB, KL_PROB/KL_PROB, KL_LOG_PROB/' KL_LOG_PROB
changed 'another limit' lib/drift.h 's/^#define KL_MAX_BINS .*/#define KL_MAX_BINS 2000/' 'KL_MAX_BINS was 1000, is 2000'
