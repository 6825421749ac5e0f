"""The server in containers of 64 to 512 MiB, by real cgroups, with everything that takes memory at once.

Whatever clients do, it refuses and goes on: nothing is killed, what was accepted is there after a start, health
answers within a second, and memory goes back to the system. Needs the right to make a cgroup with a memory limit: root,
on a machine that lets it.

Usage: run.py BINARY SECONDS [MIB[:MAX_MEMORY]]...     floods take so many seconds in each container"""

import collections
import concurrent.futures
import http.client
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import floods

MIB = 1 << 20
# The container in MiB; --max-memory, or what the server finds. 64 MiB less than the container is what the manual says.
CASES = ["64", "128", "128:64M", "256", "512"]
FLOODERS = 8
HEALTH_SECONDS = 1  # but for one in a thousand whose connection waits for a second SYN, which is sent after 1 s
GIVEN_BACK = 1.3  # resident after a flood, of what was resident before
PINNED = 8 * MIB  # pages on which malloc keeps small blocks for each thread, if 1.3 of little is less
GOOD = {200, 201, 400, 408, 413, 422, 431, 503}


class Group:
    """A cgroup of v1 or v2 with a limit in bytes; None if none can be made."""

    FILES = {  # limit, peak, events
        "memory.limit_in_bytes": ("memory.max_usage_in_bytes", "memory.oom_control"),
        "memory.max": ("memory.peak", "memory.events"),
    }

    def __init__(self, folder, limit, names):
        self.folder, (self.peak_file, self.events_file) = folder, names
        self.limit = limit

    @classmethod
    def make(cls, limit):
        for top in "/sys/fs/cgroup/memory", "/sys/fs/cgroup":
            folder = f"{top}/kldiv-memory-{os.getpid()}"
            try:
                os.mkdir(folder)
            except OSError:
                continue
            for file, names in cls.FILES.items():
                if os.path.exists(f"{folder}/{file}"):
                    with open(f"{folder}/{file}", "w") as f:
                        f.write(str(limit))
                    return cls(folder, limit, names)
            os.rmdir(folder)
        return None

    def enter(self):
        with open(f"{self.folder}/cgroup.procs", "w") as f:
            f.write("0")

    def read(self, file):
        try:
            with open(f"{self.folder}/{file}") as f:
                return f.read()
        except FileNotFoundError:  # memory.peak came with Linux 5.19
            return "0"

    def kills(self):
        return sum(int(line.split()[1]) for line in self.read(self.events_file).splitlines()
                   if line.startswith("oom_kill "))

    def peak(self):
        return int(self.read(self.peak_file))

    def remove(self):
        for _ in range(50):
            try:
                return os.rmdir(self.folder)
            except OSError:
                time.sleep(0.1)


class Server:
    def __init__(self, binary, group, store, max_memory):
        self.port_file = f"{store}.port"
        if os.path.exists(self.port_file):
            os.unlink(self.port_file)
        self.log = open(f"{store}.log", "ab")
        self.process = subprocess.Popen(
            [binary, "--listen", "127.0.0.1:0", "--port-file", self.port_file, "--store",
             f"sqlite:{store}", "--drain-delay", "0", "--drain-timeout", "5", "--log-level", "warning", "--max-memory", max_memory],
            preexec_fn=group.enter, stderr=self.log)
        for _ in range(300):
            if os.path.exists(self.port_file) and os.path.getsize(self.port_file):
                break
            if self.process.poll() is not None:
                raise SystemExit(f"memory: the server ended at its start: {self.process.returncode}")
            time.sleep(0.1)
        self.port = int(open(self.port_file).read())

    def ask(self, method, target, body=None, headers={}, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            return 0, b""  # the connection ended: that request was refused while it was sent
        finally:
            connection.close()

    def resident(self, now="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(now)) << 10

    def most_resident(self):
        return self.resident("VmHWM")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def at_once(calls):
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [f.result() for f in [pool.submit(call) for call in calls]]


def zeros_npz(size):
    import numpy
    file = io.BytesIO()
    half = numpy.zeros(size // 8)
    numpy.savez(file, input=half, target=half[:1])
    return file.getvalue()


# ---- What takes memory

def fill_with_monitors(server, most):
    """Tables of 500 columns until one is refused; the number of monitors that were accepted."""
    columns = {f"column_{i}": [float(k * 7 % 100) for k in range(100)] for i in range(500)}
    body, made = json.dumps({"columns": columns}), 0
    while made < most:
        status, answer = server.ask("PUT", f"/monitors/table_{made}", body, {"Content-Type": "application/json"})
        assert status in (201, 503), (status, answer[:300])
        if status == 503:
            break
        made += 500
        status, answer = server.ask("POST", f"/monitors/table_{made - 500}/observations", body,
                                    {"Content-Type": "application/json"})
        assert status in (200, 503), (status, answer[:300])
    return made


def fill_with_large_monitors(server):
    """1,000 monitors of 60 labels of a kilobyte each, with annotations of 16 kB: 75 MB of store."""
    body = json.dumps({"bins": {"labels": [f"{i:03}" + "y" * 997 for i in range(60)]},
                       "reference": {"counts": [10] * 60}, "annotations": {"a": "z" * 16000}})
    for made in range(1000):
        status, answer = server.ask("PUT", f"/monitors/full/{made}", body, {"Content-Type": "application/json"})
        assert status == 201, (status, answer[:300])


def long_labels(server, n):
    """Free texts of 60 to 600 characters."""
    for length in 60, 600:
        rows = "\n".join(f"{i:04}" + "x" * length for i in range(1000))
        status, answer = server.ask("PUT", f"/monitors/texts_{length}_{n}", f"text\n{rows}\n", {"Content-Type": "text/csv"})
        assert status in GOOD, (status, answer[:300])


def unread(server, target, n, seconds, padding=0):
    """Clients that ask and do not read, with headers that are longer by the padding, and half of a next request."""
    head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Padding: {'x' * padding}\r\n"
    request = (head + "\r\n" + head * (padding > 0)).encode()
    sockets = []
    for _ in range(n):
        s = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(request)
        sockets.append(s)
        time.sleep(seconds / n / 2)
    time.sleep(seconds / 2)
    for s in sockets:
        s.close()


def large_bodies(server, group):
    """Bodies of two thirds and of an eighth of the container at once, with tables beside them."""
    calls = []
    for size in group.limit // 3 * 2, group.limit // 8:
        npz = zeros_npz(size)
        text = b'{"input": [' + b"0.25," * (size // 5) + b'0.25], "target": [1]}'
        calls += [lambda b=b, t=t: server.ask("POST", "/kl_div", b, {"Content-Type": t})[0]
                  for b, t in ((npz, "application/x-npz"), (text, "application/json")) for _ in range(3)]
    table = "\n".join(["a,b,c"] + ["1.5,2.5,x"] * (group.limit // 60)).encode()
    calls += [lambda i=i: server.ask("PUT", f"/monitors/large_{i}", table, {"Content-Type": "text/csv"})[0]
              for i in range(10)]
    calls += [lambda: server.ask("GET", "/metrics")[0]] * 2
    return at_once(calls)


# ---- A container

def check_alive(server, group):
    assert server.process.poll() is None, f"the server ended: {server.process.returncode}"
    assert group.kills() == 0, "the kernel killed in this cgroup"
    deadline = time.time() + 40  # answers that are not read are ended by then
    body = json.dumps({"input": [-1, -0.5], "target": [0.4, 0.6]})
    while True:
        status, _ = server.ask("GET", "/readyz")
        loss, _ = server.ask("POST", "/kl_div", body, {"Content-Type": "application/json"})
        if (status, loss) == (200, 200):
            return
        assert time.time() < deadline, f"/readyz {status}, a loss {loss}"
        time.sleep(0.5)


def count_monitors(server):
    names, cursor = 0, ""
    while True:
        status, answer = server.ask("GET", f"/monitors?limit=500{cursor}")
        assert status == 200, (status, answer[:300])
        page = json.loads(answer)
        names += len(page["monitors"])
        if not page["next"]:
            return names
        cursor = f"&cursor={page['next']}"


def remove_groups(server, prefix=""):
    """Removes all groups whose names begin so."""
    while True:
        status, answer = server.ask("GET", "/monitors?limit=500" + (f"&q={prefix}" if prefix else ""))
        assert status == 200, (status, answer[:300])
        groups = {monitor["group"] for monitor in json.loads(answer)["monitors"] if monitor["group"].startswith(prefix)}
        if not groups:
            return
        for group in groups:
            status, answer = server.ask("DELETE", f"/monitors/{group}")
            assert status in (204, 503), (status, answer[:300])


def flood(server, group, requests, seconds):
    """All kinds of requests at once; then memory goes back to the system. The statuses, and the ratio of resident memory
    after the flood to that before it, of a server that has had each request once."""
    for method, target, kind, coding, body in requests:
        server.ask(method, target, body, floods.headers(kind, coding))
    remove_groups(server, "flood_")
    time.sleep(22)  # what is kept for reuse is freed after 10 s, and the store's pages 10 s after its last change
    before = server.resident()
    statuses = floods.flood(server.port, requests, FLOODERS, seconds)
    check_alive(server, group)
    remove_groups(server, "flood_")
    deadline = time.time() + 30
    allowed = max(GIVEN_BACK * before, before + PINNED)
    while server.resident() > allowed and time.time() < deadline:
        time.sleep(0.5)
    after = server.resident()
    assert after <= allowed, f"{after / MIB:.1f} of {before / MIB:.1f} MiB are resident after a flood"
    return statuses, after / before


def watch_health(server, lates, stop):
    while not stop.is_set():
        began = time.time()
        status, _ = server.ask("GET", "/livez")
        lates.append((time.time() - began, status))
        time.sleep(0.02)


def drill(binary, case, folder, requests, seconds):
    mib, _, max_memory = case.partition(":")
    group = Group.make(int(mib) * MIB)
    if not group:
        return None
    store, stop, lates, ratios = f"{folder}/{mib}{max_memory}.db", threading.Event(), [], []
    try:
        server = Server(binary, group, store, max_memory or "0")
        watcher = threading.Thread(target=watch_health, args=(server, lates, stop))
        watcher.start()
        flooded, ratio = flood(server, group, requests, seconds / 2)
        ratios.append(ratio)
        remove_groups(server)
        made = fill_with_monitors(server, 10000)
        check_alive(server, group)
        for i in range(3):
            long_labels(server, i)
        unread(server, "/metrics", 200, 4)
        check_alive(server, group)
        unread(server, "/monitors?limit=1000", 384, 2, 15900)
        check_alive(server, group)
        statuses = large_bodies(server, group)
        assert not set(statuses) - GOOD - {0}, statuses
        check_alive(server, group)
        there = count_monitors(server)
        assert there >= made, (there, made)
        assert made >= 500, "no table of 500 columns fits"
        remove_groups(server)
        fill_with_large_monitors(server)
        more, ratio = flood(server, group, requests, seconds / 2)
        flooded, ratios = flooded + more, [*ratios, ratio]
        assert not set(flooded) - GOOD - {0, 404}, flooded
        there = count_monitors(server)
        peak = server.most_resident()
        stop.set()
        watcher.join()
        refused, slowest = sum(status != 200 for _, status in lates), max(late for late, _ in lates)
        assert len(lates) >= 100 and refused == 0, f"{refused} of {len(lates)} health checks had no 200"
        late = sum(late > HEALTH_SECONDS for late, _ in lates)
        assert late <= len(lates) / 1000 and slowest < HEALTH_SECONDS + 1, f"{late} health checks late, one by {slowest:.2f} s"
        assert flooded[200] + flooded[201] >= 50, f"hardly anything was served in floods: {flooded}"
        assert server.stop() == 0
        server = Server(binary, group, store, max_memory or "0")
        assert count_monitors(server) == there, "monitors are lost after a start"
        check_alive(server, group)
        peak = max(peak, server.most_resident())
        assert server.stop() == 0
        kills = group.kills()
    finally:
        stop.set()
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
    return {"monitors": made, "statuses": statuses, "flooded": flooded, "resident": peak / MIB, "ratio": max(ratios),
            "group": group.peak() / MIB, "kills": kills, "slowest": slowest,
            "unanswered": refused, "probes": len(lates), "remove": group.remove()}


def told(statuses):
    return ", ".join(f"{n:,} × {status or 'cut off'}" for status, n in sorted(collections.Counter(statuses).items()))


def main():
    binary, seconds, folder = sys.argv[1], float(sys.argv[2]), tempfile.mkdtemp(prefix="kldiv-memory-")
    cases, requests = sys.argv[3:] or CASES, floods.make()
    print("| container, MiB | monitors | resident at most, MiB | left after floods | killed | health without 200 | slowest, s |"
          " large requests | floods |\n|---|---|---|---|---|---|---|---|---|")
    try:
        for case in cases:
            r = drill(binary, case, folder, requests, seconds)
            if r is None:
                print("NOT RUN: no cgroup with a memory limit can be made here; it takes root")
                return
            print(f"| {case} | {r['monitors']:,} | {r['resident']:.0f} | {r['ratio']:.2f} | {r['kills']} "
                  f"| {r['unanswered']} of {r['probes']:,} | {r['slowest']:.2f} | {told(r['statuses'])} "
                  f"| {told(r['flooded'])} |", flush=True)
    finally:
        shutil.rmtree(folder)
    print(f"memory: {len(cases)} containers, none killed")


if __name__ == "__main__":
    main()
