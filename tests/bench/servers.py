"""Observations a second of one, two and three servers on one PostgreSQL, and what an observation costs it. Usage:
servers.py KLDIVD"""

import json
import os
import statistics
import sys

from cluster import BODY, call, cluster, put_monitor, requests_of, start_server, start_wrk, store_of

KLDIVD = os.path.abspath(sys.argv[1])
MONITORS, ROUNDS, SECONDS, CONNECTIONS = 32, 3, 4, 32


def cpu_seconds(folder):
    """Of the cluster: its processes that run, and those that ended."""
    postmaster = open(os.path.join(folder, "data", "postmaster.pid")).readline().strip()
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if pid == postmaster:
            total += sum(map(int, fields[11:15]))
        elif fields[1] == postmaster:
            total += sum(map(int, fields[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def measure(folder, ports):
    """Observations, how many a second, and microseconds of PostgreSQL's processor for each."""
    before = cpu_seconds(folder)
    of_each = [requests_of(wrk) for wrk in [
        start_wrk(port, "tests/bench/observations.lua", CONNECTIONS, SECONDS, str(MONITORS)) for port in ports]]
    cpu = cpu_seconds(folder) - before
    n = sum(n for n, _ in of_each)
    return n, sum(rate for _, rate in of_each), cpu / n * 1e6


def check(port, acknowledged):
    """All that was acknowledged is counted, and no more than was on its way when a round ended."""
    values = sum(json.loads(BODY)["counts"])
    found = sum(call(port, "GET", f"/monitors/bench/m{i}/windows")["windows"][0]["n"] for i in range(MONITORS)) / values
    in_flight = 3 * 3 * ROUNDS * CONNECTIONS
    assert acknowledged <= found <= acknowledged + in_flight, f"{found} observations of {acknowledged} are counted"


def main():
    with cluster() as (folder, started):
        ports = [start_server(KLDIVD, store_of(folder), started) for _ in range(3)]
        for i in range(MONITORS):
            put_monitor(ports[0], f"/monitors/bench/m{i}")
        found = {n: [] for n in (1, 2, 3)}
        for _ in range(ROUNDS):
            for n, results in found.items():
                results.append(measure(folder, ports[:n]))
        for port in ports:
            check(port, sum(n for results in found.values() for n, _, _ in results))
    print(f"\nObservations of 20 counts, {MONITORS} monitors of hours, servers on one PostgreSQL on the same machine "
          f"({os.cpu_count()} processors), {CONNECTIONS} connections each, medians of {ROUNDS} in turn\n\n"
          "| servers | a second | beside one | PostgreSQL's processor, µs each |\n|---|---|---|---|")
    rates = {n: statistics.median(rate for _, rate, _ in results) for n, results in found.items()}
    for n, results in found.items():
        cost = statistics.median(cost for _, _, cost in results)
        print(f"| {n} | {rates[n]:.0f} | {rates[n] / rates[1]:.2f} | {cost:.0f} |")


main()
