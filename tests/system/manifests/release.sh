#!/bin/sh
# What `make release` adds to the packages and images, for files that stand for them: notes, lists, sums.
# `make release` itself, which takes a quarter of an hour, holds its folder against release.mjs, too.
set -eu
cd "$(dirname "$0")"
finish=../../../docker/release/finish.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "release: $*" >&2; exit 1; }
export SOURCE_DATE_EPOCH=1700000000 CHANGELOG="$work/CHANGELOG.md"
printf '%s\n' '# Changelog' '## [Unreleased]' '' '- A pear.' '' '## [0.2.0] - 2026-11-23' '' '### Added' '' '- An apple.' '' \
    '## [0.1.0] - 2026-11-23' '' '- A plum.' > "$CHANGELOG"

# In the form of dpkg-genbuildinfo.
printf '%s\n' 'Format: 1.0' 'Source: kldiv' 'Build-Architecture: amd64' 'Installed-Build-Depends:' ' gcc-12 (= 12.2.0-14+deb12u1),' \
    ' libc6-dev:arm64 (= 2.36-9+deb12u14),' ' zlib1g-dev (= 1:1.2.13.dfsg-1)' 'Environment:' ' LANG="C"' > "$work/buildinfo"
for version in 0.2.0 0.2.0+20261124.010203; do
    for run in first second; do
        mkdir "$work/$run"
        echo 'a package' > "$work/$run/kldivd_${version}_amd64.deb"
        echo '{}' > "$work/$run/kldiv-$version-image-amd64.spdx.json"
        $finish "$work/$run" "$version" 0123abc "$work/buildinfo"
    done
    diff -r "$work/first" "$work/second" || fail "two runs differ"
    (cd "$work/first" && sha256sum --quiet -c SHA256SUMS) || fail "sums"
    [ "$(wc -l < "$work/first/SHA256SUMS")" = 4 ] || fail "SHA256SUMS has not all files"
    node release.mjs "$work/first" || fail "the list of $version"
    case $version in *+*) own=pear ;; *) own=apple ;; esac
    said=$(grep -oE 'pear|apple|plum|0123abc' "$work/first/NOTES.md" | tr '\n' ' ')
    [ "$said" = "0123abc $own " ] || fail "the notes of $version tell of $said"
    # release.mjs must see what is wrong.
    for fault in 'del(.bomFormat)' '.components[0].type = "thing"' '.metadata.component.components = []' \
        '.components |= map(select(.name != "uplot"))'; do
        jq "$fault" "$work/second/kldiv-$version.cdx.json" > "$work/first/kldiv-$version.cdx.json"
        ! node release.mjs "$work/first" 2> /dev/null || fail "a list is taken after $fault"
    done
    rm -r "$work/first" "$work/second"
done
mkdir "$work/first"
! $finish "$work/first" 9.9.9 0123abc "$work/buildinfo" 2> /dev/null || fail "notes of a version that CHANGELOG.md does not have"
