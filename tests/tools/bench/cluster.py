"""Servers on a PostgreSQL of their own, for the programs beside this one."""

import contextlib
import json
import re
import socket
import subprocess
import tempfile
import time
import urllib.request

CLUSTER = "tests/system/postgresql/cluster.sh"
BODY = '{"counts":[5,3,8,1,4,6,7,2,9,5,3,4,8,1,2,6,7,5,4,3]}'


@contextlib.contextmanager
def cluster():
    """A folder with a cluster that has an empty database `bench`, and a list of processes, which are killed."""
    with tempfile.TemporaryDirectory(prefix="kldiv-bench-") as folder:
        started = []
        subprocess.run([CLUSTER, "start", folder], check=True)
        try:
            subprocess.run(["createdb", "-h", folder, "-U", "kldiv", "bench"], check=True)
            yield folder, started
        finally:
            for process in started:
                process.kill()
                process.wait()
            subprocess.run([CLUSTER, "stop", folder], check=False)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def store_of(folder):
    return f"postgresql://kldiv@/bench?host={folder}"


def start_server(kldivd, store, started, *flags):
    """Starts a server and returns its port, once it answers."""
    port = free_port()
    started.append(subprocess.Popen([kldivd, "--listen", f"127.0.0.1:{port}", "--log-level", "error",
                                     "--store", store, *flags]))
    for _ in range(100):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz").read()
            return port
        time.sleep(0.1)
    raise SystemExit("the server does not start")


def psql(folder, statement):
    return subprocess.run(["psql", "-qtAX", "-h", folder, "-U", "kldiv", "-d", "bench", "-c", statement], check=True,
                          capture_output=True, text=True).stdout


def call(port, method, target, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{target}", body and json.dumps(body).encode(),
                                     {"Content-Type": "application/json"}, method=method)
    return json.load(urllib.request.urlopen(request))


def put_monitor(port, path):
    call(port, "PUT", path, {"bins": {"edges": list(range(21))}, "reference": {"counts": [5] * 20},
                             "window": {"seconds": 3600}})


def start_wrk(port, script, connections, seconds, *arguments):
    return subprocess.Popen(["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "-s", script,
                             f"http://127.0.0.1:{port}", "--", *arguments], stdout=subprocess.PIPE, text=True)


def requests_of(wrk):
    """Requests, and requests a second, of a wrk that ends."""
    printed = wrk.communicate()[0]
    assert "Non-2xx" not in printed, printed
    return int(re.search(r"(\d+) requests in", printed)[1]), float(re.search(r"Requests/sec:\s+([\d.]+)", printed)[1])
