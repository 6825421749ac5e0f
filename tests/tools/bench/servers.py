"""Observations a second of one, two and three servers on one PostgreSQL, and what an observation costs it. Usage:
servers.py KLDIVD"""

import json
import os
import statistics
import sys

from cluster import BODY, call, cluster, psql, put_monitor, requests_of, start_server, start_wrk, store_of

KLDIVD = os.path.abspath(sys.argv[1])
MONITORS, ROUNDS, SECONDS, CONNECTIONS, SERVERS = 32, 3, 3, (32, 1), (1, 2, 3)


def process_seconds(pid, with_ended=False):
    """User's and system's time of a process, and of its children that ended; 0 of one that is gone."""
    try:
        fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0
    return sum(map(int, fields[11:15 if with_ended else 13])) / os.sysconf("SC_CLK_TCK")


def database_seconds(folder):
    postmaster = open(os.path.join(folder, "data", "postmaster.pid")).readline().strip()
    children = open(f"/proc/{postmaster}/task/{postmaster}/children").read().split()
    return process_seconds(postmaster, True) + sum(map(process_seconds, children))


def wal_bytes(folder):
    return int(psql(folder, "SELECT pg_current_wal_lsn() - '0/0'"))


def costs(folder, servers):
    return (database_seconds(folder) * 1e6, sum(process_seconds(server.pid) for server in servers) * 1e6,
            wal_bytes(folder))


def measure(folder, servers, ports, connections):
    """Observations, how many a second, and what each takes: microseconds of PostgreSQL's processor and of the servers',
    bytes of the log that PostgreSQL writes ahead."""
    before = costs(folder, servers)
    of_each = [requests_of(wrk) for wrk in [
        start_wrk(port, "tests/tools/bench/observations.lua", connections, SECONDS, str(MONITORS)) for port in ports]]
    n = sum(n for n, _ in of_each)
    return n, sum(rate for _, rate in of_each), *((b - a) / n for a, b in zip(before, costs(folder, servers)))


def check(port, acknowledged):
    """All that was acknowledged is counted, and no more than was on its way when a round ended."""
    values = sum(json.loads(BODY)["counts"])
    found = sum(call(port, "GET", f"/monitors/bench/m{i}/windows")["windows"][0]["n"] for i in range(MONITORS)) / values
    in_flight = ROUNDS * sum(SERVERS) * sum(CONNECTIONS)
    assert acknowledged <= found <= acknowledged + in_flight, f"{found} observations of {acknowledged} are counted"


def main():
    cases = [(connections, n) for connections in CONNECTIONS for n in SERVERS]
    found = {case: [] for case in cases}
    with cluster() as (folder, started):
        ports = [start_server(KLDIVD, store_of(folder), started) for _ in SERVERS]
        for i in range(MONITORS):
            put_monitor(ports[0], f"/monitors/bench/m{i}")
        for _ in range(ROUNDS):
            for connections, n in cases:
                found[connections, n].append(measure(folder, started, ports[:n], connections))
        for port in ports:
            check(port, sum(result[0] for results in found.values() for result in results))
    print(f"\nObservations of 20 counts, {MONITORS} monitors of hours, servers on one PostgreSQL, clients on the same "
          f"machine of {os.cpu_count()} processors, medians of {ROUNDS} in turn\n\n"
          "| connections to each | servers | a second | beside one | PostgreSQL's processor, µs each | servers' | WAL, bytes each |\n"
          "|---|---|---|---|---|---|---|")
    medians = {case: [statistics.median(column) for column in zip(*results)] for case, results in found.items()}
    for (connections, n), (_, rate, *each) in medians.items():
        print(f"| {connections} | {n} | {rate:.0f} | {rate / medians[connections, 1][1]:.2f} | "
              + " | ".join(f"{cost:.0f}" for cost in each) + " |")


main()
