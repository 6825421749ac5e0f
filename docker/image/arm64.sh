#!/bin/sh
# Builds the image for ARM from the same Dockerfile, on a machine of another kind, and has its program answer
# requests, emulated by qemu. Usage: docker/image/arm64.sh WORK; `BUILDAH` is the command with its flags.
#
# buildah 1.28 has to be told BUILDPLATFORM, which newer ones and docker know.
set -eu
work=$1
source=$(cd "${0%/*}/../.." && pwd)
files=$work/files.arm64
fail() { echo "image-test: arm64: $*" >&2; exit 1; }

began=$(date +%s)
$BUILDAH bud --pull-never --format docker --platform linux/arm64 --timestamp "$SOURCE_DATE_EPOCH" $LABELS \
    --build-arg BUILDPLATFORM="linux/$(dpkg --print-architecture)" --build-arg SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" \
    --tag kldiv-arm64 "$source" \
    > "$work/kldiv-arm64.log" 2>&1 || { tail -40 "$work/kldiv-arm64.log" >&2; fail "no build"; }
echo "image-test: kldiv-arm64: built in $(($(date +%s) - began)) s"
grep -h 'tests, 0 failed' "$work/kldiv-arm64.log" || fail "the build ran no tests of the kernels"

$BUILDAH inspect --type image kldiv-arm64 > "$work/kldiv-arm64.json"
jq -e '.OCIv1.architecture == "arm64"' "$work/kldiv-arm64.json" > /dev/null || fail "the image is of another machine"
container=$($BUILDAH from --pull-never kldiv-arm64)
rm -rf "$files"
cp -a "$($BUILDAH mount "$container")" "$files"
$BUILDAH rm "$container" > /dev/null
"$source/docker/image/check_files.sh" "$files" "$work/kldiv-arm64.json"
if ! command -v qemu-aarch64 > /dev/null; then
    echo "image-test: arm64: not run: needs qemu-aarch64 (apt-get install qemu-user)"
    exit 0
fi
readelf -h "$files/usr/bin/kldivd" | grep -q AArch64 || fail "the program is of another machine"

rm -f "$work/port" "$work/store.db"*
qemu-aarch64 -L "$files" "$files/usr/bin/kldivd" --listen 127.0.0.1:0 --port-file "$work/port" \
    --store "sqlite:$work/store.db" > "$work/arm64.log" 2>&1 &
server=$!
trap 'kill -KILL $server 2>/dev/null || true' EXIT
for _ in $(seq 300); do
    [ -s "$work/port" ] && break
    sleep 0.1
done
url=http://127.0.0.1:$(cat "$work/port")
body='{"input": [[-1, -0.5], [-2, -0.2]], "target": [[0.4, 0.6], [0.1, 0.9]]}'
loss=$(curl -sS "$url/kl_div?reduction=batchmean" -d "$body" | jq -c .loss)
[ "$loss" = 0.04095267979964768 ] || { cat "$work/arm64.log"; fail "a loss: $loss"; }
monitor=$(seq 1000 | sed '1i x' | curl -sS -o /dev/null -w '%{http_code}' -T - "$url/monitors/try")
[ "$monitor" = 201 ] || fail "a monitor: $monitor"
grep -q 'simd=neon' "$work/arm64.log" || fail "no NEON"
kill -TERM $server
wait $server || fail "exit status $? after SIGTERM"
trap - EXIT
echo "image-test: arm64: emulated by qemu: a loss, a monitor in SQLite, SIGTERM: exit status 0"
