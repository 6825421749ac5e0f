#!/bin/sh
# Runs a fuzzer for SECONDS_EACH seconds, on its seeds and on what it has found before. Usage: tests/tools/fuzz/run.sh build/fuzz/NAME
set -eu
seeds=build/fuzz/seeds/$(basename "$1")
[ -d "$seeds" ] || seeds=
mkdir -p "$1.corpus"
# shellcheck disable=SC2086 # no seeds, no argument
"$1" -max_total_time="$SECONDS_EACH" -timeout=10 -rss_limit_mb=1024 -dict=tests/tools/fuzz/words.dict \
    -artifact_prefix="$1-" "$1.corpus" $seeds 2>"$1.log" || { tail -40 "$1.log"; exit 1; }
echo "$1, $SECONDS_EACH s"
