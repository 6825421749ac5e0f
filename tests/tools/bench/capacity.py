"""What monitors take: disk for each closed window, in SQLite and in PostgreSQL, and bytes and time of a scrape.

usage: capacity.py KLDIVD"""

import contextlib
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
import urllib.request

from cluster import cluster, psql, start_server, store_of

KLDIVD = os.path.abspath(sys.argv[1])
BINS, COLUMNS, WINDOWS, SCRAPED, SCRAPES = (10, 100, 1000), 100, 40, (100, 1000, 10000), 5
HOUR = 3600


def send(port, method, target, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{target}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"}, method=method)
    urllib.request.urlopen(request).read()


def columns_of(bins, n):
    """As many columns of values, of which some are in each of so many bins."""
    return {f"column_{i}": [(j * 7 + i) % bins + 0.5 for j in range(2 * bins)] for i in range(n)}


def fill(port, bins):
    """Observes in windows of an hour, which close."""
    columns, start = columns_of(bins, COLUMNS), int(time.time()) // HOUR * HOUR - WINDOWS * HOUR
    for i in range(WINDOWS):
        send(port, "POST", f"/monitors/b{bins}/observations?timestamp={start + i * HOUR}", {"columns": columns})


def make(port, bins):
    config = {"bins": {"edges": list(range(bins + 1))}, "reference": {"counts": [5] * bins}, "window": {"seconds": HOUR}}
    for name in columns_of(bins, COLUMNS):
        send(port, "PUT", f"/monitors/b{bins}/{name}", config)


@contextlib.contextmanager
def server(store, *flags):
    started = []
    yield start_server(KLDIVD, store, started, "--max-memory", "4G", *flags)
    started[0].terminate()
    started[0].wait()


def sqlite_size(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        pages, size = (database.execute("PRAGMA " + name).fetchone()[0] for name in ("page_count", "page_size"))
        return pages * size


def disk_of_sqlite(folder, bins):
    path = os.path.join(folder, f"{bins}.db")
    with server("sqlite:" + path) as port:
        make(port, bins)
    before = sqlite_size(path)
    with server("sqlite:" + path) as port:
        fill(port, bins)
    return (sqlite_size(path) - before) / (COLUMNS * WINDOWS)


def postgresql_size(folder):
    """Of the tables, packed."""
    psql(folder, "VACUUM FULL")
    return int(psql(folder, "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'"
                            " AND relname LIKE 'kldiv%'"))


def disk_of_postgresql(folder, port, bins):
    make(port, bins)
    before = postgresql_size(folder)
    fill(port, bins)
    return (postgresql_size(folder) - before) / (COLUMNS * WINDOWS)


def scrape(n, mode):
    """Bytes and milliseconds of /metrics of so many monitors, which have observations."""
    times = []
    with server("memory", "--monitor-metrics", mode) as port:
        columns = columns_of(10, COLUMNS)
        for i in range(n // COLUMNS):
            send(port, "PUT", f"/monitors/g{i}?window=batch&bins=10", {"columns": columns})
            send(port, "POST", f"/monitors/g{i}/observations", {"columns": columns})
        for _ in range(SCRAPES):
            begin = time.perf_counter()
            size = len(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read())
            times.append((time.perf_counter() - begin) * 1000)
    return size, statistics.median(times)


def main():
    print(f"Disk for each closed window, all bins of which have values, bytes ({COLUMNS} monitors, {WINDOWS} windows)\n\n"
          "| bins | SQLite | PostgreSQL |\n|---|---|---|")
    with cluster() as (folder, started), tempfile.TemporaryDirectory() as files:
        port = start_server(KLDIVD, store_of(folder), started)
        for bins in BINS:
            print(f"| {bins} | {disk_of_sqlite(files, bins):.0f} | {disk_of_postgresql(folder, port, bins):.0f} |",
                  flush=True)
    print(f"\nA scrape, medians of {SCRAPES}\n\n| monitors | KiB | ms | KiB, by groups of {COLUMNS} | ms |\n"
          "|---|---|---|---|---|")
    for n in SCRAPED:
        each, groups = (scrape(n, mode) for mode in ("monitors", "groups"))
        print(f"| {n:,} | {each[0] / 1024:.0f} | {each[1]:.1f} | {groups[0] / 1024:.0f} | {groups[1]:.1f} |", flush=True)


main()
