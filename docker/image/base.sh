#!/bin/sh
# Makes debian:bookworm-slim for buildah from Debian's archive, by debootstrap, where no registry is at hand.
# Certificates that this machine trusts beside Debian's are trusted in it, too.
#
# Usage: docker/image/base.sh FOLDER; `BUILDAH` is the command with its flags. A folder that is complete is
# used again.
set -eu
folder=$1
if [ ! -e "$folder/complete" ]; then
    rm -rf "$folder"
    mkdir -p "$folder"
    # As in Debian's own image: no documents but notices of licences, and no wait for the disk.
    mkdir -p "$folder/root/etc/dpkg/dpkg.cfg.d"
    printf '%s\n' 'path-exclude /usr/share/doc/*' 'path-include /usr/share/doc/*/copyright' \
        'path-exclude /usr/share/man/*' 'path-exclude /usr/share/locale/*' > "$folder/root/etc/dpkg/dpkg.cfg.d/docker"
    echo force-unsafe-io > "$folder/root/etc/dpkg/dpkg.cfg.d/docker-apt-speedup"
    debootstrap --variant=minbase bookworm "$folder/root" http://deb.debian.org/debian > "$folder/log"
    for suite in bookworm bookworm-updates; do
        echo "deb http://deb.debian.org/debian $suite main"
    done > "$folder/root/etc/apt/sources.list"
    echo "deb http://deb.debian.org/debian-security bookworm-security main" >> "$folder/root/etc/apt/sources.list"
    rm -rf "$folder"/root/var/cache/apt/archives/*.deb "$folder"/root/usr/share/man "$folder"/root/usr/share/locale
    mkdir -p "$folder/root/usr/local/share/ca-certificates"
    cp /usr/local/share/ca-certificates/*.crt "$folder/root/usr/local/share/ca-certificates/" 2>/dev/null || true
    touch "$folder/complete"
fi
container=$($BUILDAH from scratch)
$BUILDAH add --quiet "$container" "$folder/root" / > /dev/null
$BUILDAH config --cmd bash "$container"
$BUILDAH commit --quiet --rm "$container" docker.io/library/debian:bookworm-slim > /dev/null
