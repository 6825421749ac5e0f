#!/bin/sh
# Writes what is copied: the options' help into server/README.md and the manual page, the programs of clients into their
# README. Usage: tests/tools/readme.sh build/kldivd
set -eu
server=$1 clients=tests/system/clients

"$server" --help | sed -e 1,8d -e 's/^  /    /' -e 's/^[A-Z]/    &/' > build/help
sed -i -e '/<!-- help begins -->/,/<!-- help ends -->/{/<!-- help/!d}' \
    -e '/<!-- help begins -->/r build/help' server/README.md
awk '/^ *[A-Z].*:$/ { sub(/^ +/, ""); sub(/:$/, ""); print ".SS " $0; next }
    /^ +--/ { print ".TP"; printf ".B %s", $1; $1 = ""; print; next }
    /./ { sub(/^ +/, ""); print }' build/help | sed 's/-/\\-/g' > build/help.roff
sed -i -e '/options begin/,/options end/{/options/!d}' -e '/options begin/r build/help.roff' server/kldivd.1

for name in curl.sh stdlib.py with_numpy.py fetch.mjs libcurl.c with_httr.R local.py local.mjs shared_memory.py \
    monitors.py monitors.R; do
    title=$(sed -n -e 's/^[^A-Za-z]*//' -e '/^[A-Z].*:/{s/[.]* *\*\/$//;s/"""$//;p;q}' $clients/$name)
    printf '## %s\n\n[%s](%s)\n\n```%s\n%s\n```\n\n' "$title" "$name" "$name" "${name##*.}" "$(cat $clients/$name)"
done > build/clients
sed -i -e '/<!-- clients begin -->/,/<!-- clients end -->/{/<!-- clients/!d}' \
    -e '/<!-- clients begin -->/r build/clients' $clients/README.md
