#!/bin/sh
# Refuses comments that open with a word that names nothing, such as "Whether" or "Those": a comment
# begins with the thing that it describes, or with a verb. Reads block comments, and the
# // comments of JavaScript. Prints file:line and exits with 1 if there is one.
# Usage: tests/comments.sh FILE...
words='What|Of|Whether|Those|The same|Where|Some|These|How|Why|Which|Who'
status=0
grep -nHE "(/\*\*?|(^|[[:space:]])//)[[:space:]]*($words)([^[:alnum:]_]|$)" "$@" >&2 || status=$?
[ $status -eq 1 ] # 1: no line matches; 2: a file cannot be read
