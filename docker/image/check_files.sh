#!/bin/sh
# Checks what an image is made of: its settings, its files, the list of them. Usage:
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
    ! -path './etc/passwd' ! -path './etc/group' ! -path './etc/nsswitch.conf')
[ -z "$odd" ] || fail "files that nothing needs: $odd"
odd=$(list ! -type l \( -perm /6000 -o -perm /022 -o \( ! -user 0 ! -path './var/lib/kldiv' \) \))
[ -z "$odd" ] || fail "odd rights: $odd"
[ "$(stat -c %u:%g "$files/var/lib/kldiv")" = 10001:10001 ] || fail "the store's folder is not the user's"
odd=$(cd "$files" && find . -xtype l)
[ -z "$odd" ] || fail "links that lead nowhere: $odd"

# The list of SPDX has each file with its sum, and each library's package, version and licence.
sbom=$files/usr/share/doc/kldiv/sbom.spdx.json
list -type f ! -name sbom.spdx.json > "$config.there"
jq -r '.files[].fileName' "$sbom" | sort > "$config.listed"
diff "$config.there" "$config.listed" || fail "the SPDX list has other files"
jq -r '.files[] | "\(.checksums[] | select(.algorithm == "SHA256") | .checksumValue)  \(.fileName)"' "$sbom" > "$config.sums"
(cd "$files" && sha256sum --quiet -c "$config.sums") || fail "the SPDX list has other sums"
jq -e '
    (.spdxVersion == "SPDX-2.3") and (.dataLicense == "CC0-1.0") and (.SPDXID == "SPDXRef-DOCUMENT")
    and (.creationInfo.created | test("^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$"))
    and ([.packages[] | select((.versionInfo // "") == "" or (.licenseDeclared // "NOASSERTION") == "NOASSERTION")] == [])
    and (([.packages[], .files[]] | map(.SPDXID)) as $ids
        | ($ids | length) == ($ids | unique | length)
        and all(.relationships[]; (.relatedSpdxElement | IN($ids[])) and (.spdxElementId | IN($ids[], "SPDXRef-DOCUMENT"))))
    and ([.files[].SPDXID] - [.relationships[] | select(.relationshipType == "CONTAINS").relatedSpdxElement] == [])
    and (([.packages[].licenseDeclared | scan("LicenseRef-[A-Za-z0-9.-]+")] | unique)
        == ([.hasExtractedLicensingInfos[].licenseId] | unique))' "$sbom" > /dev/null || fail "the SPDX list is malformed"
if command -v pyspdxtools > /dev/null; then
    pyspdxtools -i "$sbom" || fail "pyspdxtools finds faults in the SPDX list"
else
    echo "image-test: the SPDX list was looked at by jq alone; pip install spdx-tools has it validated"
fi
echo "image-test: $(du -sk --apparent-size "$files" | cut -f1) KiB in $(list -type f | wc -l) files," \
    "$(list -name '*.so*' -type f | wc -l) of them libraries of $(jq '[.packages[] | select(.sourceInfo)] | length' "$sbom") packages"
