#!/bin/sh
# The tests with few rights: all as in the build of an image (root without CAP_NET_ADMIN, 1,024
# descriptors), and those of the server as a plain user with 256. Does nothing
# without root, where `make check` runs as a plain user anyway. Usage: tests/unprivileged.sh build/release FILTER
set -eu
tests=$1/tests/all server=$1/kldivd filter=$2
if [ "$(id -u)" != 0 ]; then
    echo "unprivileged: not root: the tests run as a plain user by themselves"
    exit 0
fi

echo "== root without CAP_NET_ADMIN, 1024 descriptors"
(ulimit -n 1024; setpriv --bounding-set -net_admin --inh-caps -net_admin "$tests")

echo "== a plain user, 256 descriptors"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$1/tests"
cp "$tests" "$server" "$work"
cp "$1/tests/faults.so" "$work/$1/tests"
chmod -R a+rX "$work"
(cd "$work"; ulimit -n 256
    KLDIV_SERVER=./kldivd setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all \
        --bounding-set -all ./all --filter "$filter")
