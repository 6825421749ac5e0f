"""Tables: CSV, JSON, npz and safetensors as monitors read them, beside pandas, numpy and Python's json.

Usage: tables.py build/release/bench/tables. Medians of 9 runs in turn, megabytes of the body a second, one
thread. Needs numpy and pandas."""
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd

ROWS, COLUMNS, RUNS = 100_000, 20, 9


def ours(path, type):
    out = subprocess.run([sys.argv[1], path, type], capture_output=True, text=True, check=True).stdout
    return float(out.split()[0])


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def show(name, path, runs):
    """runs: name -> a function that gives seconds; each in turn."""
    size = os.path.getsize(path) / 1e6
    seconds = {peer: [] for peer in runs}
    for _ in range(RUNS):
        for peer, run in runs.items():
            seconds[peer].append(run())
    median = {peer: statistics.median(s) for peer, s in seconds.items()}
    first = next(iter(median.values()))
    cells = ", ".join(f"{peer} {size / s:.0f} ({s / first:.1f})" for peer, s in median.items())
    print(f"| {name} | {size:.0f} | {cells} |")


def main():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"column {i}": rng.normal(size=ROWS) * 10.0 ** rng.integers(-3, 4, ROWS)
                          for i in range(COLUMNS)})
    short = frame.round(6)
    mixed = short.copy()
    for i in range(0, COLUMNS, 4):
        mixed[f"column {i}"] = rng.choice(["red", "green, dark", "blue"], ROWS)
    print("\nTables of 100,000 x 20, one thread: MB a second, and the time as a multiple of kldiv's\n")
    print("| table | MB | rates |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table")
        for name, table in (("CSV, 17 digits", frame), ("CSV, 6 decimals", short),
                            ("CSV, a quarter text in quotes", mixed)):
            table.to_csv(path, index=False)
            show(name, path, {"kldiv": lambda: ours(path, "text/csv"),
                              "pandas": lambda: timed(lambda: pd.read_csv(path)),
                              "pandas, round_trip":
                                  lambda: timed(lambda: pd.read_csv(path, float_precision="round_trip"))})
        for name, orient in (("JSON of columns", "list"), ("JSON of rows", "records")):
            with open(path, "w") as file:
                json.dump({"columns" if orient == "list" else "rows": frame.to_dict(orient)}, file)
            with open(path) as file:
                text = file.read()
            show(name, path, {"kldiv": lambda: ours(path, "application/json"),
                              "Python's json": lambda: timed(lambda: json.loads(text))})
        for name, save in (("npz", np.savez), ("npz, compressed", np.savez_compressed)):
            with open(path, "wb") as file:
                save(file, **{c: frame[c].to_numpy() for c in frame})
            with open(path, "rb") as file:
                body = file.read()
            show(name, path, {"kldiv": lambda: ours(path, "application/x-npz"),
                              "numpy": lambda: timed(lambda: [a.sum() for a in
                                                              np.load(io.BytesIO(body)).values()])})


main()
