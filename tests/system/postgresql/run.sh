#!/bin/sh
# Runs the tests of monitors on PostgreSQL, then two servers that share a database, also with clocks that
# differ, then roles and migrations, and the backups of docker/README.md, of SQLite too; in a cluster of its own.
#
# usage: run.sh KLDIVD TESTS FILTER
set -eu
here=$(dirname "$0")
# A socket's path has 107 bytes at most, and nobody must be able to reach it.
folder=$(mktemp -d /tmp/kldiv-postgresql-XXXXXX)
trap '"$here"/cluster.sh stop "$folder" || true; rm -rf "$folder"' EXIT
chmod 755 "$folder"
"$here"/cluster.sh start "$folder" fsync=off # no test cuts the power
createdb -h "$folder" -U kldiv tests
KLDIV_TEST_STORE="postgresql://kldiv@/tests?host=$folder" "$2" -j4 --verbose --filter "$3"
/usr/bin/python3 "$here"/run.py "$1" "$folder"
/usr/bin/python3 "$here"/upgrades.py "$1" "$folder"
/usr/bin/python3 -B "$here"/clocks.py "$1" "$folder" "${2%/*}"/faults.so
/usr/bin/python3 -B "$here"/backup.py "$1" "$folder"
