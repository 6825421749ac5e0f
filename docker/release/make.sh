#!/bin/sh
# Puts a release into one folder, of what make has built of the commit: packages of Debian, Python, npm and R, the sources.
# Builds the images for amd64 and arm64 and tries them, the second emulated; adds lists of what all is made of, and notes.
#
# Usage: SOURCE=URL docker/release/make.sh FOLDER VERSION FILE..., as root, with what docker/image/test.sh needs.
set -eu
folder=$1 version=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
work=${KLDIV_IMAGE:-/var/tmp/kldiv-image}
fail() { echo "release: $*" >&2; exit 1; }
[ -n "${SOURCE-}" ] || fail "SOURCE=URL says where the repository is: it goes into the image's labels"
[ -z "$(git status --porcelain)" ] || fail "the tree has changes that are not committed"
REVISION=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE REVISION SOURCE_DATE_EPOCH

rm -rf "$folder"
mkdir -p "$folder"
cp --preserve=timestamps -- "$@" "$folder"
own=$(dpkg --print-architecture)
rm -f "$work/kldiv.json" "$work/kldiv-arm64.json"
KLDIV_IMAGE=$work KLDIV_IMAGE_STEPS="build files run $([ "$own" = arm64 ] || echo arm64)" "$here/../image/test.sh"

# An archive for docker load, podman load and skopeo copy docker-archive:, and the list that the image has.
save() {
    [ -e "$work/$1.json" ] || fail "there is no image for $2"
    rm -f "$work/archive.tar"
    buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs push --quiet "$1" \
        "docker-archive:$work/archive.tar:kldiv:$(echo "$version" | tr + -)"
    gzip -9nc "$work/archive.tar" > "$folder/kldiv-$version-image-$2.tar.gz"
    rm "$work/archive.tar"
    cp "$3/usr/share/doc/kldiv/sbom.spdx.json" "$folder/kldiv-$version-image-$2.spdx.json"
}
save kldiv "$own" "$work/files"
[ "$own" = arm64 ] || save kldiv-arm64 arm64 "$work/files.arm64"

"$here/finish.sh" "$folder" "$version" "$REVISION" "$(ls build/deb/*.buildinfo)"
cat "$folder/SHA256SUMS"
