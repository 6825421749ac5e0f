#!/bin/sh
# The units of systemd: `systemd-analyze verify` has nothing to say, and the exposure of the service by `systemd-analyze
# security` is at most 1.2 of 10. Times fit: systemd waits for longer than the server drains.
# Usage: tests/system/boot/units.sh build/kldivd
set -eu
export LC_ALL=C
server=$(realpath "$1")
if ! command -v systemd-analyze >/dev/null; then
    echo "NOT RUN: the units of systemd: systemd-analyze is not installed"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
complain() { echo "units: $*" >&2; exit 1; }

for unit in docker/systemd/*; do
    sed "s|/usr/bin/kldivd|$server|" "$unit" > "$work/${unit##*/}"
done
systemd-analyze verify --man=no "$work"/* > "$work/said" 2>&1 || complain "verify: $(cat "$work/said")"
[ ! -s "$work/said" ] || complain "verify: $(cat "$work/said")"
systemd-analyze security --no-pager --offline=yes --threshold=12 "$work/kldivd.service" > "$work/said" 2>&1 ||
    complain "exposure above 1.2: $(grep -v '^+' "$work/said")"
grep 'Overall exposure' "$work/said"

value() { sed -n "s/^$1=\([0-9]*\).*/\1/p" docker/systemd/kldivd.service; }
drain=$(($(value Environment=KLDIV_DRAIN_DELAY) + $(value Environment=KLDIV_DRAIN_TIMEOUT)))
[ "$(value TimeoutStopSec)" -gt "$drain" ] || complain "TimeoutStopSec is not above the $drain s of the drain"

# Each variable is an option of the server.
for name in $(grep -oh '^Environment=KLDIV_[A-Z_]*' docker/systemd/kldivd.service | sed 's/.*KLDIV_//'); do
    flag=--$(echo "$name" | tr 'A-Z_' 'a-z-')
    "$server" --help | grep -q -- "$flag " || complain "KLDIV_$name is no option"
done
