#!/bin/sh
# Checks what an image is made of: its settings, its files, the lists in it. Usage:
# docker/image/check_files.sh FOLDER CONFIG, with the image's files, and what `buildah inspect` says of it; SOURCE and
# REVISION are what it was built with.
set -eu
files=$1 config=$2
fail() { echo "image-test: $*" >&2; exit 1; }

# Settings by which others run it.
setting() { jq -r ".Docker.config$1" "$config"; }
expect() { [ "$(setting "$1")" = "$2" ] || fail "the image's $1 is $(setting "$1"), not $2"; }
expect .User 10001:10001
expect '.Entrypoint | join(" ")' /usr/bin/kldivd
expect .StopSignal SIGTERM
expect '.Volumes | keys | join(" ")' /var/lib/kldiv
expect '.ExposedPorts | keys | join(" ")' 8080/tcp
expect '.Healthcheck.Test | join(" ")' 'CMD /usr/bin/kldivd --healthcheck'
version=$(sed -n 's/^#define KLDIV_VERSION "\(.*\)"/\1/p' "${0%/*}/../../lib/kldiv.h")
for label in title=kldiv "version=$version" "source=$SOURCE" "revision=$REVISION" licenses=MIT 'vendor=The kldiv authors'; do
    expect ".Labels[\"org.opencontainers.image.${label%%=*}\"]" "${label#*=}"
done
[ "$(setting '.Labels["org.opencontainers.image.description"] // "" | length > 20')" = true ] || fail "no description"
for variable in 'KLDIV_LISTEN=[::]:8080' KLDIV_LOG_FORMAT=json KLDIV_DRAIN_DELAY=5 \
    KLDIV_STORE=sqlite:/var/lib/kldiv/kldiv.db KLDIV_STORE_FALLBACK=memory; do
    setting '.Env[]' | grep -qxF "$variable" || fail "the image does not set $variable"
done

# Nothing but the program, libraries and lists; nothing that others may write, or that gives rights.
list() { (cd "$files" && find . "$@" | sort); }
odd=$(list -type f ! -path './usr/bin/kldivd' ! -path './usr/lib/*-linux-gnu/*.so*' ! -path './usr/share/doc/kldiv/*' \
    ! -path './usr/share/zoneinfo/[A-Z]*' \
    ! -path './var/lib/dpkg/status.d/*' ! -path './etc/debian_version' ! -path './etc/os-release' \
    ! -path './etc/passwd' ! -path './etc/group' ! -path './etc/nsswitch.conf')
[ -z "$odd" ] || fail "files that nothing needs: $odd"
odd=$(list ! -type l \( -perm /6000 -o -perm /022 -o \( ! -user 0 ! -path './var/lib/kldiv' \) \))
[ -z "$odd" ] || fail "odd rights: $odd"
[ "$(stat -c %u:%g "$files/var/lib/kldiv")" = 10001:10001 ] || fail "the store's folder is not the user's"
odd=$(cd "$files" && find . -xtype l)
[ -z "$odd" ] || fail "links that lead nowhere: $odd"

# What scanners read: the system, and each library's package; of each there is the notice of its licence.
grep -qx ID=debian "$files/etc/os-release" && grep -q '^[0-9]' "$files/etc/debian_version" || fail "the image is not Debian's"
status=$files/var/lib/dpkg/status.d
for package in libc6 libgnutls30 libmicrohttpd-dev libpq5 libsqlite3-0 tzdata; do
    [ -e "$status/$package" ] || fail "no package $package"
done
for package in "$status"/*; do
    for line in "Package: ${package##*/}" 'Status: install ok installed' 'Architecture: .*' 'Version: [0-9].*'; do
        grep -qx "$line" "$package" || fail "${package##*/} has no line $line"
    done
done
{ printf '/usr/share/doc/%s/copyright\n' $(ls "$status") && echo LICENSE && \
    printf 'api/web/node_modules/%s/LICENSE\n' swagger-ui-dist uplot; } | sort > "$config.packages"
gzip -dc "$files/usr/share/doc/kldiv/copyright.gz" | sed -n 's/^==== //p' | sort | diff "$config.packages" - ||
    fail "notices of other packages"
echo "image-test: $(du -sk --apparent-size "$files" | cut -f1) KiB in $(list -type f | wc -l) files," \
    "$(list -name '*.so*' -type f | wc -l) of them libraries; $(ls "$status" | wc -l) packages"
