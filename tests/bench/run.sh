#!/bin/sh
# make bench: kernels, their limits, their peers where those are installed, and the server end to end.
set -eu
work=$(mktemp -d)
started=
trap 'for p in $started; do kill "$p" 2>/dev/null || true; done; rm -rf "$work"' EXIT

build/release/bench/kernels
build/release/bench/limits
build/release/bench/sleef

if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    /usr/bin/python3 tests/bench/pytorch.py build/release/libkldiv.so
else
    echo; echo "(python3-torch is not installed: no comparison with PyTorch)"
fi

build/release/bench/bare > "$work/bare.port" & started="$started $!"
build/kldivd --listen 127.0.0.1:0 --port-file "$work/port" 2>/dev/null & started="$started $!"
while [ ! -s "$work/port" ] || [ ! -s "$work/bare.port" ]; do sleep 0.05; done
ours=http://127.0.0.1:$(cat "$work/port")/kl_div
bare=http://127.0.0.1:$(cat "$work/bare.port")/kl_div
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

if command -v wrk >/dev/null; then
    rate() { wrk -t1 -c32 -d2 -s tests/bench/small.lua "$1" | awk '/Requests\/sec/ { print $2 }'; }
    for i in 1 2 3 4 5 6 7 8 9; do
        a=$(rate "$ours"); b=$(rate "$bare")
        echo "$a" >> "$work/a"; echo "$b" >> "$work/b"; awk "BEGIN { print $a / $b }" >> "$work/r"
    done
    echo; echo "2 x 2 float64 as JSON, wrk -t1 -c32, requests a second, medians of 9 in turn"; echo
    echo "| kldivd | bare libmicrohttpd | ratio |"; echo "|---|---|---|"
    echo "| $(median < "$work/a") | $(median < "$work/b") | $(median < "$work/r") |"
else
    echo; echo "(wrk is not installed: no rate of small requests)"
fi

# A million numbers each of input and target.
awk 'BEGIN { srand(1); n = 1000000
    printf "{\"reduction\":\"sum\",\"input\":["
    for (i = 0; i < n; i++) printf "%s%.8f", i ? "," : "", -10 * rand()
    printf "],\"target\":["
    for (i = 0; i < n; i++) printf "%s%.8f", i ? "," : "", rand()
    printf "]}" }' > "$work/large.json"
for i in 1 2 3 4 5 6 7; do
    for which in ours bare; do
        eval url=\$$which
        curl -s -o /dev/null -w '%{time_total}\n' -H 'Content-Type: application/json' -H Expect: \
            --data-binary @"$work/large.json" "$url" >> "$work/large.$which"
    done
done
echo; echo "2,000,000 JSON numbers in one request, medians of 7 in turn"; echo
echo "| | seconds | ns a number |"; echo "|---|---|---|"
for which in ours bare; do
    s=$(median < "$work/large.$which")
    name=kldivd; [ $which = ours ] || name="bare libmicrohttpd, body dropped"
    echo "| $name | $s | $(awk "BEGIN { print $s * 1e9 / 2000000 }") |"
done
