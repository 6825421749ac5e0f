#!/bin/sh
# What `make release` adds to the packages and the image, for a file that stands for them: notes, sums.
set -eu
finish=$(dirname "$0")/../../../docker/release/finish.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "release: $*" >&2; exit 1; }
export CHANGELOG="$work/CHANGELOG.md"
printf '%s\n' '# Changelog' '## [Unreleased]' '' '- A pear.' '' '## [0.2.0] - 2026-11-23' '' '### Added' '' '- An apple.' '' \
    '## [0.1.0] - 2026-11-23' '' '- A plum.' > "$CHANGELOG"

for version in 0.2.0 0.2.0+20261124.010203; do
    mkdir "$work/$version"
    echo 'a package' > "$work/$version/kldivd_${version}_amd64.deb"
    $finish "$work/$version" "$version" 0123abc
    (cd "$work/$version" && sha256sum --quiet -c SHA256SUMS) || fail "sums"
    [ "$(wc -l < "$work/$version/SHA256SUMS")" = 2 ] || fail "SHA256SUMS has not all files"
    case $version in *+*) own=pear ;; *) own=apple ;; esac
    said=$(grep -oE 'pear|apple|plum|0123abc' "$work/$version/NOTES.md" | tr '\n' ' ')
    [ "$said" = "0123abc $own " ] || fail "the notes of $version tell of $said"
done
! $finish "$work/0.2.0" 9.9.9 0123abc 2> /dev/null || fail "notes of a version that CHANGELOG.md does not have"
