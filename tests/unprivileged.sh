#!/bin/sh
# The tests of the server as a plain user with 256 descriptors. Does nothing without root, where `make check` runs as a
# plain user anyway. Usage: tests/unprivileged.sh build/release FILTER
set -eu
build=$1 filter=$2
if [ "$(id -u)" != 0 ]; then
    echo "unprivileged: not root: the tests run as a plain user by themselves"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$build/tests"
cp "$build/tests/all" "$build/kldivd" "$work"
cp "$build/tests/faults.so" "$build/tests/unadapted" "$work/$build/tests"
chmod -R a+rX "$work"
(cd "$work"; ulimit -n 256
    KLDIV_SERVER=./kldivd setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all \
        --bounding-set -all ./all --filter "$filter")
