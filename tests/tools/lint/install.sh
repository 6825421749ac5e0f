#!/bin/sh
# make install-lib needs gcc, make and lib/, nothing of the server, with flags of one's own; what it installs can be moved,
# and found by pkg-config, and the programs of its page print what they say; and the compiler says what lib/ cannot be compiled with. Usage: tests/tools/lint/install.sh
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install: $*" >&2; exit 1; }

cp -r Makefile LICENSE CHANGELOG.md lib "$work"
mkdir -p "$work/build/release/lib/simd" # kernels take half a minute: those of this folder's build
cp build/release/lib/simd/*.o "$work/build/release/lib/simd"
make -s -C "$work" -j2 CFLAGS=-O1 PREFIX=/opt/kldiv DESTDIR="$work/a stage" install-lib > "$work/said" 2>&1 ||
    fail "$(cat "$work/said")"
mv "$work/a stage/opt/kldiv" "$work/moved"
export PKG_CONFIG_PATH="$work/moved/lib/pkgconfig"
flags=$(pkg-config --define-prefix --cflags --libs kldiv)
[ "$(pkg-config --modversion kldiv)" = "$(sed -n 's/^#define KLDIV_VERSION "\(.*\)"/\1/p' lib/kldiv.h)" ] ||
    fail "kldiv.pc has another version"
for header in kldiv.h kldiv_drift.h drift.h; do
    for compiler in 'gcc -x c' 'clang -x c++'; do
        printf '#include <%s>\n#include <stdio.h>\nint main(void) { return puts(kl_version()) < 0; }\n' "$header" |
            $compiler -Wall -Wextra -Werror -pedantic - -o "$work/program" $flags || fail "$header by $compiler"
        LD_LIBRARY_PATH="$work/moved/lib" "$work/program" | grep -qx "$(pkg-config --modversion kldiv)" ||
            fail "$header: the program does not run"
    done
done

# The programs of lib/README.md print what they say.
awk -v to="$work/page" '/^    #include/ && !inside { inside = 1; n++ } !/^    / && NF { inside = 0 }
                        inside { print substr($0, 5) > to n ".c" }' lib/README.md
for program in "$work"/page*.c; do
    gcc -Wall -Wextra -Werror "$program" -o "$work/program" $flags || fail "lib/README.md: $program"
    LD_LIBRARY_PATH="$work/moved/lib" "$work/program" > "$work/said" || fail "lib/README.md: $(cat "$work/said")"
    grep -qF "prints $(cat "$work/said") " "$program" || fail "lib/README.md: a program prints $(cat "$work/said")"
done
[ "$(ls "$work"/page*.c | wc -l)" = 3 ] || fail "lib/README.md has other programs"

# Expects that the compiler refuses a flag, and says why.
refused() {
    for source in lib/drift/drift.c lib/job/exact.c lib/simd/generic.c; do
        ! gcc -std=c11 -D_GNU_SOURCE -I. "$1" -fsyntax-only "$source" 2> "$work/said" || fail "$source: $1 is taken"
        grep -q "error.*$2" "$work/said" || fail "$source, $1: $(cat "$work/said")"
    done
}
refused -ffast-math 'fast-math'
refused -Ofast 'fast-math'
refused -ffinite-math-only 'fast-math'
refused -U__SIZEOF_INT128__ '64-bit'
