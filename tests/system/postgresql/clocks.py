"""Two servers on one PostgreSQL whose clocks are seconds apart, as docker/README.md has it: each observation counts once,
windows that the one ahead has closed are restated by the other, and with a `grace` above the difference none is.

usage: clocks.py KLDIVD CLUSTER FAULTS     CLUSTER: folder of cluster.sh, started; FAULTS: the library of tests/tools/preload"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

from backup import BASKET, CLUSTER, Server

AHEAD, SIZE, SECONDS = 2, 4, 9
# struct faults of tests/tools/preload/faults.h, whose last member is the seconds that the clock is ahead.
PAGE = struct.pack("=ii6qq", *[0] * 8, AHEAD)


def windows(server, name):
    return json.loads(server.ask("GET", f"/monitors/load/{name}/windows")[1])["windows"]


def try_clocks(name, grace, a, b):
    """Posts to both by turns, without timestamps; gives the observations, and how many windows were restated."""
    monitor = dict(BASKET, window={"seconds": SIZE, "grace": grace})
    assert a.ask("PUT", f"/monitors/load/{name}", monitor)[0] == 201
    n, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        for server in (a, b):
            status, said = server.ask("POST", f"/monitors/load/{name}/observations", {"counts": [1, 1, 1]})
            assert status == 200, said
            n += 3
        time.sleep(0.02)
    end = time.monotonic() + 30
    while not all(one["window"]["closed"] for one in windows(a, name)) and time.monotonic() < end:
        time.sleep(0.2)
    found = windows(a, name)
    assert all(one["window"]["closed"] for one in found), found
    assert sum(one["n"] for one in found) == n, (n, found)
    return n, sum(one["window"]["restated"] for one in found)


def main():
    store = f"postgresql://kldiv@/clocks?host={CLUSTER}"
    subprocess.run(["createdb", "-h", CLUSTER, "-U", "kldiv", "clocks"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "page")
        with open(page, "wb") as file:
            file.write(PAGE)
        servers = []
        try:
            servers.append(Server(folder, store))
            servers.append(Server(folder, store, LD_PRELOAD=os.path.abspath(sys.argv[3]), FAULTS_PAGE=page))
            n, restated = try_clocks("plain", 0, *servers)
            assert restated > 0
            m, none = try_clocks("graceful", AHEAD + 1, *servers)
            assert none == 0
            for server in servers:
                server.end()
        finally:
            for server in servers:
                server.process.kill()
    print(f"clocks {AHEAD} s apart: {n} and {m} observations counted once; {restated} windows restated, none with a grace")


main()
