#!/bin/sh
# Runs the tests of monitors on PostgreSQL; beside them two servers that share a database, also with clocks that differ,
# then roles and migrations, and the backups of docker/README.md, of SQLite too. Each of both in a cluster of its own.
#
# usage: run.sh KLDIVD TESTS FILTER
set -eu
here=$(dirname "$0")
# A socket's path has 107 bytes at most, and nobody must be able to reach it.
folder=$(mktemp -d /tmp/kldiv-postgresql-XXXXXX)
suites=$folder/suites servers=$folder/servers
trap '"$here"/cluster.sh stop "$suites" || true; "$here"/cluster.sh stop "$servers" || true; rm -rf "$folder"' EXIT
chmod 755 "$folder"
"$here"/cluster.sh start "$suites" fsync=off # no test cuts the power
"$here"/cluster.sh start "$servers" fsync=off
createdb -h "$suites" -U kldiv tests
KLDIV_TEST_STORE="postgresql://kldiv@/tests?host=$suites" "$2" -j4 --verbose --filter "$3" &
/usr/bin/python3 "$here"/run.py "$1" "$servers"
/usr/bin/python3 "$here"/upgrades.py "$1" "$servers"
/usr/bin/python3 -B "$here"/clocks.py "$1" "$servers" "${2%/*}"/faults.so
/usr/bin/python3 -B "$here"/backup.py "$1" "$servers"
wait $!
