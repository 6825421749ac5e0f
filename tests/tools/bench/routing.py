"""Observations a second of two servers on one PostgreSQL behind docker/haproxy.cfg: each group to one server, beside any
request to any. Usage: routing.py KLDIVD"""

import os
import statistics
import subprocess
import sys
import time

from cluster import BODY, cluster, free_port, put_monitor, requests_of, start_server, start_wrk, store_of

KLDIVD = os.path.abspath(sys.argv[1])
GROUPS, ROUNDS, SECONDS, CONNECTIONS = 32, 5, 4, 64
LUA = """local at = 0
wrk.headers["Content-Type"] = "application/json"
function request()
    at = (at + 1) %% %d
    return wrk.format("POST", "/monitors/g" .. at .. "/m/observations", nil, '%s')
end
""" % (GROUPS, BODY)


def start_haproxy(folder, name, change, ports, port):
    """docker/haproxy.cfg, changed."""
    path = os.path.join(folder, name)
    text = open("docker/haproxy.cfg").read()
    assert change in text
    with open(path, "w") as file:
        file.write(text if name == "groups" else text.replace(change, ""))
    environment = {**os.environ, "FRONT": f"127.0.0.1:{port}", "STATS": f"127.0.0.1:{free_port()}",
                   "REPLICA_1": f"127.0.0.1:{ports[0]}", "REPLICA_2": f"127.0.0.1:{ports[1]}"}
    return subprocess.Popen(["haproxy", "-f", path], env=environment, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def measure(folder, started):
    ports = [start_server(KLDIVD, store_of(folder), started) for _ in range(2)]
    fronts = {name: free_port() for name in ("groups", "any")}
    for name, port in fronts.items():
        started.append(start_haproxy(folder, name, "    use_backend groups if { path_beg /monitors/ /groups/ }\n",
                                     ports, port))
    script = os.path.join(folder, "wrk.lua")
    with open(script, "w") as file:
        file.write(LUA)
    time.sleep(2)
    for i in range(GROUPS):
        put_monitor(fronts["groups"], f"/monitors/g{i}/m")
    found = {name: [] for name in fronts}
    for _ in range(ROUNDS):
        for name, port in fronts.items():
            found[name].append(requests_of(start_wrk(port, script, CONNECTIONS, SECONDS))[1])
    print(f"Observations of 20 counts, {GROUPS} groups, two servers on one PostgreSQL behind HAProxy, {CONNECTIONS} "
          f"connections, a second, medians of {ROUNDS} in turn\n\n| each group to one server | any to any |\n|---|---|")
    print("| {:.0f} | {:.0f} |".format(*(statistics.median(found[name]) for name in fronts)))


with cluster() as (folder, started):
    measure(folder, started)
