"""Observations a second of two servers on one PostgreSQL behind docker/haproxy.cfg: each group to one server, beside any
request to any. Usage: routing.py KLDIVD"""

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

KLDIVD = os.path.abspath(sys.argv[1])
GROUPS, ROUNDS, SECONDS = 32, 5, 4
CLUSTER = "tests/postgresql/cluster.sh"
BODY = '{"counts":[5,3,8,1,4,6,7,2,9,5,3,4,8,1,2,6,7,5,4,3]}'
LUA = """local at = 0
wrk.headers["Content-Type"] = "application/json"
function request()
    at = (at + 1) %% %d
    return wrk.format("POST", "/monitors/g" .. at .. "/m/observations", nil, '%s')
end
""" % (GROUPS, BODY)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def call(port, method, target, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{target}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"}, method=method)
    urllib.request.urlopen(request).read()


def start_server(folder, ports):
    port = free_port()
    server = subprocess.Popen([KLDIVD, "--listen", f"127.0.0.1:{port}", "--log-level", "warning",
                               "--store", f"postgresql://kldiv@/bench?host={folder}"])
    ports.append(port)
    return server


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


def per_second(script, port):
    printed = subprocess.run(["wrk", "-t1", "-c64", f"-d{SECONDS}", "-s", script, f"http://127.0.0.1:{port}"],
                             capture_output=True, text=True).stdout
    assert "Non-2xx" not in printed, printed
    return float(re.search(r"Requests/sec:\s+([\d.]+)", printed)[1])


def measure(folder, started):
    ports, fronts = [], {name: free_port() for name in ("groups", "any")}
    subprocess.run(["createdb", "-h", folder, "-U", "kldiv", "bench"], check=True)
    for _ in range(2):
        started.append(start_server(folder, ports))
        time.sleep(1)
    for name, port in fronts.items():
        started.append(start_haproxy(folder, name, "    use_backend groups if { path_beg /monitors/ /groups/ }\n",
                                     ports, port))
    script = os.path.join(folder, "wrk.lua")
    with open(script, "w") as file:
        file.write(LUA)
    time.sleep(2)
    for i in range(GROUPS):
        call(fronts["groups"], "PUT", f"/monitors/g{i}/m",
             {"bins": {"edges": list(range(21))}, "reference": {"counts": [5] * 20}, "window": {"seconds": 3600}})
    found = {name: [] for name in fronts}
    for _ in range(ROUNDS):
        for name, port in fronts.items():
            found[name].append(per_second(script, port))
    print(f"Observations of 20 counts, {GROUPS} groups, two servers on one PostgreSQL behind HAProxy, 64 connections, "
          f"a second, medians of {ROUNDS} in turn\n\n| each group to one server | any to any |\n|---|---|")
    print("| {:.0f} | {:.0f} |".format(*(statistics.median(found[name]) for name in fronts)))


def main():
    with tempfile.TemporaryDirectory(prefix="kldiv-bench-") as folder:
        started = []
        subprocess.run([CLUSTER, "start", folder], check=True)
        try:
            measure(folder, started)
        finally:
            for process in started:
                process.kill()
                process.wait()
            subprocess.run([CLUSTER, "stop", folder], check=False)


main()
