#!/bin/sh
# Builds the image by buildah, without a container engine or registry, and runs it as one would: process 1 of
# namespaces of its own, on a read-only root, as its user, without capabilities, in 256 MiB. `make image-test`.
#
# Needs root, buildah, debootstrap, the network for Debian's and npm's packages, and some minutes. Says so and
# succeeds where something is missing. SOURCE and REVISION are for its labels. KLDIV_IMAGE=FOLDER keeps the base, the
# images and the log between runs; KLDIV_IMAGE_STEPS chooses of: build files run debug.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=${here%/docker/image}
work=${KLDIV_IMAGE:-/var/tmp/kldiv-image}
steps=${KLDIV_IMAGE_STEPS:-build files run debug}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000}
export SOURCE=${SOURCE:-https://kldiv.example/kldiv.git}
REVISION=${REVISION:-$(git -C "$source" rev-parse HEAD 2>/dev/null || echo unknown)}
export REVISION
export BUILDAH_ISOLATION=chroot
export BUILDAH="buildah --root $work/storage --runroot $work/run --storage-driver vfs"

skip() { echo "image-test: not run: $*"; exit 0; }
fail() { echo "image-test: $*" >&2; exit 1; }
say() { echo "image-test: $*"; }

[ "$(id -u)" = 0 ] || skip "needs root"
for tool in buildah debootstrap unshare nsenter capsh ip curl jq; do
    command -v $tool > /dev/null || skip "needs $tool (apt-get install buildah debootstrap libcap2-bin iproute2 curl jq)"
done
unshare --mount --pid --net --ipc --uts --fork true 2>/dev/null || skip "namespaces cannot be made here"
mkdir -p "$work"

# Builds a target under a name, with further flags of buildah.
build() {
    name=$1
    shift
    began=$(date +%s)
    $BUILDAH bud --pull-never --format docker --timestamp "$SOURCE_DATE_EPOCH" --build-arg SOURCE="$SOURCE" \
        --build-arg REVISION="$REVISION" --build-arg SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" --tag "$name" "$@" "$source" > "$work/$name.log" 2>&1 ||
        { tail -40 "$work/$name.log" >&2; fail "$name: no build"; }
    $BUILDAH inspect --type image "$name" > "$work/$name.json"
    say "$name: built in $(($(date +%s) - began)) s"
}

# Copies the files of an image to a folder.
unpack() {
    container=$($BUILDAH from --pull-never "$1")
    rm -rf "$2"
    cp -a "$($BUILDAH mount "$container")" "$2"
    $BUILDAH rm "$container" > /dev/null
}

step_build() {
    "$here/base.sh" "$work/base"
    build kldiv --build-arg CHECK=yes
    grep -h 'Synthesis' "$work/kldiv.log" || fail "the build ran no tests"
}

step_files() {
    unpack kldiv "$work/files"
    "$here/check_files.sh" "$work/files" "$work/kldiv.json"
}

step_run() { "$here/run.sh" "$work/files" "$work/kldiv.json" "$work"; }

step_debug() {
    build kldiv-debug --target debug
    unpack kldiv-debug "$work/debug"
    cmp "$work/files/usr/bin/kldivd" "$work/debug/usr/bin/kldivd" || fail "debug: another program"
    chroot "$work/debug" /bin/sh -c 'kldivd --version && gdb --version | head -1' || fail "debug: does not run"
    say "kldiv-debug: $(du -sk --apparent-size "$work/debug" | cut -f1) KiB"
    rm -rf "$work/debug"
}

for step in $steps; do
    "step_$step"
done
say "passed: $steps"
