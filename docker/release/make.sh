#!/bin/sh
# Puts a release into one folder: packages of Debian, Python, npm and R, and the sources, which make has built of the
# commit; the image of this machine, which it builds and tries; notes and sums.
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
rm -f "$work/kldiv.json" "$work/archive.tar"
KLDIV_IMAGE=$work KLDIV_IMAGE_STEPS="build files run" "$here/../image/test.sh"
[ -e "$work/kldiv.json" ] || fail "there is no image"

# An archive for docker load, podman load and skopeo copy docker-archive:.
buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs push --quiet kldiv \
    "docker-archive:$work/archive.tar:kldiv:$(echo "$version" | tr + -)"
gzip -9nc "$work/archive.tar" > "$folder/kldiv-$version-image-$(dpkg --print-architecture).tar.gz"
rm "$work/archive.tar"

"$here/finish.sh" "$folder" "$version" "$REVISION"
cat "$folder/SHA256SUMS"
