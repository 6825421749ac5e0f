#!/bin/sh
# Runs a program as a plain user with 256 descriptors: as nobody, without capabilities, where it is root that calls, and
# nobody can read this folder. A program may raise the limit of descriptors. 
# Usage: tests/tools/plain_user.sh PROGRAM [ARGUMENT...]
set -eu
ulimit -S -n 256
[ "$(id -u)" = 0 ] || exec "$@"
nobody='setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all --bounding-set -all'
if $nobody test -r Makefile -a -x "$1" 2>/dev/null; then
    exec $nobody "$@"
fi
echo "NOT RUN: the suites as a plain user, but as root: nobody cannot read this folder, or setpriv is missing"
exec "$@"
