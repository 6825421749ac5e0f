#!/bin/sh
# Writes the options' help into server/README.md and the manual page. Usage: tests/tools/readme.sh build/kldivd
set -eu
server=$1

"$server" --help | sed -e 1,8d -e 's/^  /    /' -e 's/^[A-Z]/    &/' > build/help
sed -i -e '/<!-- help begins -->/,/<!-- help ends -->/{/<!-- help/!d}' \
    -e '/<!-- help begins -->/r build/help' server/README.md
awk '/^ *[A-Z].*:$/ { sub(/^ +/, ""); sub(/:$/, ""); print ".SS " $0; next }
    /^ +--/ { print ".TP"; printf ".B %s", $1; $1 = ""; print; next }
    /./ { sub(/^ +/, ""); print }' build/help | sed 's/-/\\-/g' > build/help.roff
sed -i -e '/options begin/,/options end/{/options/!d}' -e '/options begin/r build/help.roff' server/kldivd.1
