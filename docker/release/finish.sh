#!/bin/sh
# Completes the folder of a release: NOTES.md of CHANGELOG.md, SHA256SUMS.
#
# Usage: docker/release/finish.sh FOLDER VERSION REVISION. A VERSION with a plus is one between releases: its notes are
# those of [Unreleased]. CHANGELOG is another file in place of ours.
set -eu
folder=$1 version=$2 revision=$3
case $version in *+*) section=Unreleased ;; *) section=$version ;; esac

notes=$(awk -v section="## [$section]" '/^## / { inside = index($0, section) == 1; next } inside' \
    "${CHANGELOG:-${0%/*}/../../CHANGELOG.md}")
[ -n "$notes" ] || { echo "release: CHANGELOG.md has no section $section" >&2; exit 1; }
# Links of the changelog lead into the tree of that commit.
{
    printf '# kldiv %s\n\nCommit %s. `sha256sum -c SHA256SUMS` checks these files:\n\n' "$version" "$revision"
    (cd "$folder" && du -b --apparent-size -- * | sort -k 2 |
        awk '$2 !~ /NOTES.md|SHA256SUMS/ { printf "* `%s`, %.0f kB\n", $2, $1 / 1e3 }')
    printf '%s\n' "$notes"
} > "$folder/NOTES.md"
rm -f "$folder/SHA256SUMS"
(cd "$folder" && sha256sum -- *) > "$folder.sums"
mv "$folder.sums" "$folder/SHA256SUMS"
