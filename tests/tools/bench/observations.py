"""Observations of monitors a second, beside SQLite with one transaction for each; and tables by
upload, beside numpy and pandas. Usage: observations.py KLDIVD FOLDER, which is for the store."""

import io
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pandas as pd

KLDIVD, FOLDER = sys.argv[1:]
ROUNDS, SECONDS = 5, 2


def call(method, target, body=None, content_type="application/json"):
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    request = urllib.request.Request(HOST + target, body, {"Content-Type": content_type}, method=method)
    with urllib.request.urlopen(request) as answer:
        return answer.read()


def start():
    port_file = FOLDER + "/port"
    server = subprocess.Popen(
        [KLDIVD, "--listen", "127.0.0.1:0", "--port-file", port_file, "--store", f"sqlite:{FOLDER}/bench.db"],
        stderr=subprocess.DEVNULL)
    while not (os.path.exists(port_file) and os.path.getsize(port_file)):
        time.sleep(0.05)
    return server, "http://127.0.0.1:" + open(port_file).read().strip()


def put_monitors(window):
    for i in range(32):
        call("PUT", f"/monitors/bench/m{i}",
             {"bins": {"edges": list(range(21))}, "reference": {"counts": [5] * 20}, "window": window})


def observations_per_second(monitors):
    printed = subprocess.run(
        ["wrk", "-t1", "-c32", f"-d{SECONDS}", "-s", "tests/tools/bench/observations.lua", HOST, "--", str(monitors)],
        capture_output=True, text=True).stdout
    assert "Non-2xx" not in printed, printed
    return float(re.search(r"Requests/sec:\s+([\d.]+)", printed)[1])


def transactions_per_second():
    """SQLite as the store has it, with one observation of 20 counts in each transaction."""
    path = FOLDER + "/alone.db"
    database = sqlite3.connect(path, isolation_level=None)
    for pragma in "locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL":
        database.execute("PRAGMA " + pragma)
    database.execute("CREATE TABLE IF NOT EXISTS counts (monitor BIGINT, window_id BIGINT, bin BIGINT,"
                     " count BIGINT, PRIMARY KEY (monitor, window_id, bin)) WITHOUT ROWID")
    n, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO counts VALUES (1, 1, ?, 5) ON CONFLICT (monitor, window_id, bin)"
                             " DO UPDATE SET count = counts.count + excluded.count", ((i,) for i in range(20)))
        database.execute("COMMIT")
        n += 1
    database.close()
    return n / SECONDS


def bench_observations():
    print("\nObservations of 20 counts, answers with bins, 32 connections, a second, medians of "
          f"{ROUNDS} in turn\n\n| | kldivd | SQLite, one transaction each | ratio |\n|---|---|---|---|")
    for what, window, monitors in (("1 monitor, hours", {"seconds": 3600}, 1),
                                   ("32 monitors, hours", {"seconds": 3600}, 32),
                                   ("32 monitors, a window each", "batch", 32)):
        put_monitors(window)
        ours, alone = [], []
        for _ in range(ROUNDS):
            ours.append(observations_per_second(monitors))
            alone.append(transactions_per_second())
        print(f"| {what} | {statistics.median(ours):.0f} | {statistics.median(alone):.0f} "
              f"| {statistics.median(ours) / statistics.median(alone):.1f} |", flush=True)


def safetensors(values):
    header = json.dumps({"values": {"dtype": "F64", "shape": [len(values)],
                                    "data_offsets": [0, values.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + values.tobytes()


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def bench_uploads():
    values = np.random.default_rng(1).normal(size=1 << 23)
    body = safetensors(values)
    print(f"\n{len(values)} float64 by upload (safetensors, evaluate), ns a value, medians of {ROUNDS} "
          "in turn\n\n| bins | kldivd | numpy.histogram, in its process | ratio |\n|---|---|---|---|")
    for bins in 10, 100:
        edges = np.quantile(values[:100000], np.arange(bins + 1) / bins)
        call("PUT", "/monitors/upload/x", {"bins": {"edges": list(edges)}, "reference": {"counts": [1] * bins}})
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(timed(lambda: call("POST", "/monitors/upload/x/evaluate", body,
                                           "application/vnd.safetensors")))
            theirs.append(timed(lambda: np.histogram(values, edges)))
        a, b = (statistics.median(t) / len(values) * 1e9 for t in (ours, theirs))
        print(f"| {bins} | {a:.1f} | {b:.1f} | {b / a:.1f} |", flush=True)


def bench_csv():
    frame = pd.DataFrame(np.random.default_rng(2).normal(size=(200000, 20)), columns=[f"c{i}" for i in range(20)])
    print(f"\nA CSV of 200,000 x 20 numbers by upload (observations of 20 monitors), MB a second, medians of "
          f"{ROUNDS} in turn\n\n| digits | MB | kldivd | pandas.read_csv, in its process | ratio |\n|---|---|---|---|---|")
    for digits in "%.6f", "%.17g":
        text = frame.to_csv(index=False, float_format=digits).encode()
        call("PUT", "/monitors/csv", text, "text/csv")
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(timed(lambda: call("POST", "/monitors/csv/observations", text, "text/csv")))
            theirs.append(timed(lambda: pd.read_csv(io.BytesIO(text))))
        a, b = (len(text) / 1e6 / statistics.median(t) for t in (ours, theirs))
        print(f"| {digits} | {len(text) / 1e6:.0f} | {a:.0f} | {b:.0f} | {a / b:.1f} |", flush=True)


server, HOST = start()
try:
    bench_observations()
    bench_uploads()
    bench_csv()
finally:
    server.terminate()
    server.wait()
