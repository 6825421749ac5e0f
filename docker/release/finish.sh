#!/bin/sh
# Completes the folder of a release: NOTES.md of CHANGELOG.md, the list of what it is made of, SHA256SUMS.
#
# Usage: docker/release/finish.sh FOLDER VERSION REVISION BUILDINFO; SOURCE_DATE_EPOCH is the commit's time. A VERSION
# with a plus is one between releases: its notes are those of [Unreleased]. CHANGELOG is another file in place of ours.
set -eu
folder=$1 version=$2 revision=$3 buildinfo=$4
here=$(cd "$(dirname "$0")" && pwd)
case $version in *+*) section=Unreleased ;; *) section=$version ;; esac

notes=$(awk -v section="## [$section]" '/^## / { inside = index($0, section) == 1; next } inside' \
    "${CHANGELOG:-$here/../../CHANGELOG.md}")
[ -n "$notes" ] || { echo "release: CHANGELOG.md has no section $section" >&2; exit 1; }
# Links of the changelog lead into the tree of that commit.
{
    printf '# kldiv %s\n\nCommit %s. `sha256sum -c SHA256SUMS` checks these files:\n\n' "$version" "$revision"
    (cd "$folder" && du -b --apparent-size -- * | sort -k 2 |
        awk '$2 !~ /NOTES.md|SHA256SUMS|cdx/ { printf "* `%s`, %.0f kB\n", $2, $1 / 1e3 }')
    printf '%s\n' "$notes"
} > "$folder/NOTES.md"
"$here/bom.py" "$folder" "$version" "$revision" "$buildinfo" > "$folder/kldiv-$version.cdx.json"
rm -f "$folder/SHA256SUMS"
(cd "$folder" && sha256sum -- *) > "$folder.sums"
mv "$folder.sums" "$folder/SHA256SUMS"
