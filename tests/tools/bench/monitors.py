"""A store of many monitors, as large as --max-monitors takes: how long it takes to list, export, start
and check. Not part of make bench: it takes minutes. Arguments: the server's program, a folder for the
store, and, if given, the numbers of groups, of columns in each, and of windows of each column."""
import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROWS, CLIENTS = 50, 4


class Server:
    def __init__(self, program, folder):
        self.port_file = os.path.join(folder, "port")
        if os.path.exists(self.port_file):
            os.remove(self.port_file)
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [program, "--listen", "127.0.0.1:0", "--port-file", self.port_file, "--store",
             "sqlite:" + os.path.join(folder, "store.db"), "--log-level", "warning"])
        while not (os.path.exists(self.port_file) and os.path.getsize(self.port_file)):
            if self.process.poll() is not None:
                sys.exit("the server ended")
            time.sleep(0.001)
        self.connection = http.client.HTTPConnection(
            "127.0.0.1", int(open(self.port_file).read()))
        self.get("/readyz")
        self.seconds = time.perf_counter() - start

    def get(self, target):
        return ask(self.connection, "GET", target)

    def reconnect(self):  # the server has closed what was idle for long
        self.connection.close()

    def timed(self, target, runs=9):
        seconds = []
        for _ in range(runs):
            start = time.perf_counter()
            body = self.get(target)
            seconds.append(time.perf_counter() - start)
        return 1e3 * statistics.median(seconds), body

    def memory(self):
        with open("/proc/%d/status" % self.process.pid) as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def stop(self):
        start = time.perf_counter()
        self.process.terminate()
        self.process.wait()
        return time.perf_counter() - start


def ask(connection, method, target, body=None):
    connection.request(method, target, body, {"Content-Type": "text/csv"} if body else {})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        sys.exit("%s %s: %d %s" % (method, target, answer.status, text[:300]))
    return text


def table(names, generator, rows, shift):
    lines = [",".join(names)]
    for _ in range(rows):
        lines.append(",".join("%.3f" % generator.gauss(shift, 1) for _ in names))
    return "\n".join(lines) + "\n"


def post_all(port, groups, names, windows, seed):
    generator = random.Random(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    bodies = [table(names, generator, ROWS, shift / 20) for shift in range(5)]
    for window in range(windows):
        for group in groups:
            ask(connection, "POST", "/monitors/group%d/observations?timestamp=%d" %
                (group, 1700000000 + 3600 * window), generator.choice(bodies))


def fill(server, groups, names, windows):
    generator = random.Random(1)
    start = time.perf_counter()
    for group in range(groups):
        ask(server.connection, "PUT", "/monitors/group%d" % group, table(names, generator, 500, 0))
    defined = time.perf_counter() - start
    threads = [threading.Thread(target=post_all, args=(
        server.connection.port, range(groups)[i::CLIENTS], names, windows, i))
        for i in range(CLIENTS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.reconnect()
    return defined, time.perf_counter() - start


def walk(server):
    pages, cursor, start = 0, "", time.perf_counter()
    while cursor is not None:
        page = json.loads(server.get("/monitors?limit=1000&cursor=" + cursor))
        pages, cursor = pages + 1, page["next"]
    return 1e3 * (time.perf_counter() - start), pages


def measure(server):
    first, _ = server.timed("/monitors")
    walked, pages = walk(server)
    metrics, text = server.timed("/metrics")
    window, _ = server.timed("/monitors/group0/c0/windows/latest")
    history, _ = server.timed("/monitors/group0/c0/windows?limit=100")
    group, _ = server.timed("/monitors/group0")
    print("| GET /monitors, first page | %.1f ms |" % first)
    print("| GET /monitors, %d pages of 1000 | %.1f ms |" % (pages, walked))
    print("| GET /metrics, %.1f MB | %.1f ms |" % (len(text) / 1e6, metrics))
    print("| GET /monitors/group0 | %.1f ms |" % group)
    print("| GET of a window, of a hundred | %.2f ms, %.2f ms |" % (window, history))
    print("| resident | %.0f MiB |" % server.memory())


def main(program, folder, groups=100, columns=100, windows=100):
    folder = tempfile.mkdtemp(dir=folder)
    names = ["c%d" % i for i in range(columns)]
    server = Server(program, folder)
    print("\n%d monitors of %d windows\n\n| | |\n|---|---|" % (groups * columns, windows))
    defined, filled = fill(server, groups, names, windows)
    print("| PUT of %d tables | %.1f s |" % (groups, defined))
    print("| POST of %d tables of %d rows | %.1f s, %.0f windows a second |" %
          (groups * windows, ROWS, filled, groups * columns * windows / filled))
    measure(server)
    print("| stop | %.2f s |" % server.stop())
    print("| file | %.0f MB |" % (os.path.getsize(os.path.join(folder, "store.db")) / 1e6))
    server = Server(program, folder)
    print("| start | %.2f s |" % server.seconds)
    measure(server)
    server.process.kill()
    server.process.wait()
    server = Server(program, folder)
    print("| start after a kill | %.2f s |" % server.seconds)
    server.stop()
    if os.environ.get("KEEP") is None:
        shutil.rmtree(folder)


main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
