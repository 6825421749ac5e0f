#!/bin/sh
# make bench: kernels, their limits, installed peers, and the server end to end.
set -eu
work=$(mktemp -d)
started=
trap 'for p in $started; do kill "$p" 2>/dev/null || true; done; rm -rf "$work"' EXIT

build/release/bench/kernels
build/release/bench/limits
build/release/bench/options
build/release/bench/divergences
build/release/bench/sparse
build/release/bench/sleef
build/release/bench/binning
build/release/bench/false_alarms

if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    /usr/bin/python3 tests/tools/bench/binning.py build/release/libkldiv.so
else
    echo; echo "(python3-numpy is not installed: no comparison of binning)"
fi

if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    /usr/bin/python3 tests/tools/bench/pytorch.py build/release/libkldiv.so
    /usr/bin/python3 tests/tools/bench/rows.py build/release/libkldiv.so
    /usr/bin/python3 tests/tools/bench/options.py build/release/libkldiv.so
    /usr/bin/python3 tests/tools/bench/distillation.py build/release/libkldiv.so
else
    echo; echo "(python3-torch is not installed: no comparison with PyTorch)"
fi

if /usr/bin/python3 -c 'import numpy, pandas' 2>/dev/null; then
    /usr/bin/python3 tests/tools/bench/tables.py build/release/bench/tables
else
    echo; echo "(python3-pandas is not installed: no rates of tables)"
fi

if /usr/bin/python3 -c 'import numpy, pandas' 2>/dev/null && command -v wrk >/dev/null; then
    /usr/bin/python3 tests/tools/bench/observations.py build/kldivd "$work"
else
    echo; echo "(python3-pandas or wrk is not installed: no rate of observations)"
fi

if command -v wrk >/dev/null && command -v createdb >/dev/null; then
    /usr/bin/python3 -B tests/tools/bench/servers.py build/kldivd
else
    echo; echo "(wrk or PostgreSQL is not installed: no rate of servers that share a store)"
fi

build/release/bench/bare > "$work/bare.port" & started="$started $!"
build/release/bench/bare fields > "$work/fields.port" & started="$started $!"
build/kldivd --listen 127.0.0.1:0 --listen "unix:$work/socket" --port-file "$work/port" \
    --shared-memory kldiv_bench_ 2>/dev/null & server=$!
started="$started $server"
while [ ! -s "$work/port" ] || [ ! -s "$work/bare.port" ] || [ ! -s "$work/fields.port" ]; do sleep 0.05; done
port=$(cat "$work/port") bare_port=$(cat "$work/bare.port") fields_port=$(cat "$work/fields.port")
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# Two tensors of 2 x 2 numbers.
printf '%s' '{"input": [[-1, -0.5], [-2, -0.2]], "target": [[0.4, 0.6], [0.1, 0.9]]}' > "$work/json"
{ printf '\176\0\0\0\0\0\0\0%s' '{"input":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},'
  printf '%s' '"target":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]}}   '
  head -c 32 /dev/zero; } > "$work/vnd.safetensors"

printf '%s' '{"inputs":[{"name":"input","shape":[2,2],"datatype":"FP32","data":[-1,-0.5,-2,-0.2]},' \
    '{"name":"target","shape":[2,2],"datatype":"FP32","data":[0.4,0.6,0.1,0.9]}]}' > "$work/inference"

if command -v wrk >/dev/null; then
    rate() {
        path=/kl_div; [ "$2" != inference ] || path=/v2/models/kl_div/infer
        wrk -t1 -c32 -d2 -s tests/tools/bench/small.lua "http://127.0.0.1:$1$path?reduction=sum" -- \
            "$work/$2" "application/$2" | awk '/Requests\/sec/ { printf "%.0f\n", $2 }'
    }
    echo; echo "Small requests, wrk -t1 -c32, requests a second, medians of 9 in turn and of their ratios"; echo
    echo "| 2 x 2 | kldivd | bare libmicrohttpd | ratio | bare, with kldivd's header fields |"
    echo "|---|---|---|---|---|"
    for format in json vnd.safetensors inference; do
        for i in 1 2 3 4 5 6 7 8 9; do
            a=$(rate "$port" $format); b=$(rate "$bare_port" $format)
            echo "$a" >> "$work/$format.a"; echo "$b" >> "$work/$format.b"
            rate "$fields_port" $format >> "$work/$format.f"
            awk "BEGIN { printf \"%.2f\n\", $a / $b }" >> "$work/$format.r"
        done
        echo "| $format | $(median < "$work/$format.a") | $(median < "$work/$format.b") |" \
            "$(median < "$work/$format.r") | $(median < "$work/$format.f") |"
    done
else
    echo; echo "(wrk is not installed: no rate of small requests)"
fi

echo
/usr/bin/python3 tests/tools/bench/scrapes.py build/kldivd

build/release/bench/wire "$port" "$bare_port" $server

if /usr/bin/python3 -c 'import numpy, torch' 2>/dev/null; then
    /usr/bin/python3 tests/tools/bench/same_host.py "$port" "$work/socket" build/release/libkldiv.so
else
    echo; echo "(python3-torch is not installed: no comparison of ways on one host)"
fi

if /usr/bin/python3 -c 'import fastapi, uvicorn, torch' 2>/dev/null; then
    /usr/bin/python3 tests/tools/bench/fastapi_server.py > "$work/fastapi.port" & started="$started $!"
    while [ ! -s "$work/fastapi.port" ]; do sleep 0.05; done
    sleep 1
    /usr/bin/python3 tests/tools/bench/services.py "$port" "$(cat "$work/fastapi.port")"
else
    echo; echo "(python3-fastapi, python3-uvicorn or python3-torch is not installed: no comparison)"
fi
