#!/bin/sh
# Prints those of the given sources that differ from a commit, or that include a header that does: by the lists of headers
# that the compiler has written; all of them that have no list. Usage: tests/tools/lint/changed.sh COMMIT SOURCE...
set -eu
commit=$1
shift
changed=$(git diff --name-only "$commit" --)
changed=$(printf '%s\n' "$changed" "$(git ls-files --others --exclude-standard)" | grep '\.[ch]$' || true)
[ -n "$changed" ] || exit 0
for source in "$@"; do
    headers=build/release/${source%.c}.d
    if echo "$changed" | grep -qxF "$source" ||
        [ ! -f "$headers" ] || tr ' ' '\n' < "$headers" | grep -qxF "$changed"; then
        echo "$source"
    fi
done
