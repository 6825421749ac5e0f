"""The commands of docker/README.md that back a store up and restore it, run as they are written, while clients post:
each post is answered, and what is restored has all that was answered before the backup began, and nothing from after
its end. In SQLite, and on PostgreSQL with two servers.

usage: backup.py KLDIVD CLUSTER     CLUSTER: folder of cluster.sh, started"""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../tools"))
from documents import indented_blocks, section

BINARY, CLUSTER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MONITORS = ["a", "b", "c"]
BASKET = {"bins": {"edges": [0, 1, 2, 3]}, "reference": {"counts": [300, 300, 300]}, "window": {"count": 500}}


def blocks():
    """The indented blocks of the section: backup and restore of a file, of PostgreSQL."""
    found = indented_blocks(section("docker/README.md", "## Backup and restore"))
    assert len(found) == 4, found
    return found


def run(block, **variables):
    path = os.path.dirname(BINARY) + ":" + os.environ["PATH"]
    done = subprocess.run(["sh", "-eux", "-c", block], env={**os.environ, "PATH": path, **variables}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"exit status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


class Server:
    def __init__(self, folder, store, **environment):
        port_file = tempfile.mktemp(dir=folder)
        self.log = open(port_file + ".log", "w+")
        self.process = subprocess.Popen([BINARY, "--listen", "127.0.0.1:0", "--port-file", port_file, "--log-level", "warning",
                                         "--store", store], stderr=self.log, env={**os.environ, **environment})
        for _ in range(300):
            if os.path.exists(port_file) and os.path.getsize(port_file):
                break
            time.sleep(0.05)
        with open(port_file) as file:
            self.port = int(file.read())

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def total(self):
        """What all monitors have counted, of the store: a server knows it of /metrics."""
        text = self.ask("GET", "/metrics")[1]
        counts = re.findall(r"^kldiv_monitor_observations_total{.*} (\d+)$", text, re.M)
        assert len(counts) == len(MONITORS), text
        return sum(map(int, counts))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0


class Posts:
    """Threads that post three observations at a time until they are stopped."""

    def __init__(self, servers):
        self.begun = self.answered = 0
        self.wrong, self.lock, self.stopping = [], threading.Lock(), False
        self.threads = [threading.Thread(target=self.post, args=(servers[i % len(servers)], i)) for i in range(8)]
        for thread in self.threads:
            thread.start()

    def post(self, server, i):
        while not self.stopping and not self.wrong:
            with self.lock:
                self.begun += 3
            status, said = server.ask("POST", f"/monitors/load/{MONITORS[i % 3]}/observations", {"counts": [1, 1, 1]})
            with self.lock:
                self.answered += 3
                self.wrong += [said] if status != 200 else []

    def end(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()
        assert not self.wrong, self.wrong


def try_store(name, folder, store, n, backup, restore, **variables):
    servers = [Server(folder, store) for _ in range(n)]
    try:
        for monitor in MONITORS:
            assert servers[0].ask("PUT", "/monitors/load/" + monitor, BASKET)[0] == 201
        posts = Posts(servers)
        time.sleep(2)
        before = posts.answered
        began = time.monotonic()
        run(backup, **variables)
        took, after = time.monotonic() - began, posts.begun
        time.sleep(1)
        posts.end()
        for _ in range(50):  # what another server stored is known within a second
            last = servers[0].total()
            if last == posts.answered:
                break
            time.sleep(0.1)
        assert last == posts.answered > after, (last, posts.answered, after)
        for server in servers:
            server.end()
        run(restore, **variables)
        servers = [Server(folder, store)]
        restored = servers[0].total()
        assert 0 < before <= restored <= after, (before, restored, after)
        assert servers[0].ask("POST", "/monitors/load/a/observations", {"counts": [1, 1, 1]})[0] == 200
        assert servers[0].total() == restored + 3
        servers[0].end()
    finally:
        for server in servers:
            server.process.kill()
    print(f"{name}: of {last} observations, {before} before the backup and {after} after {took:.2f} s, {restored} restored")


def main():
    backup_file, restore_file, dump, restore_dump = blocks()
    with tempfile.TemporaryDirectory() as folder:
        data, backup = os.path.join(folder, "data"), os.path.join(folder, "backup")
        os.mkdir(data)
        os.mkdir(backup)
        file = os.path.join(data, "kldiv.db")
        try_store("SQLite", folder, "sqlite:" + file, 1, backup_file, restore_file, DB=file, BACKUP=backup)
        store = f"postgresql://kldiv@/backup?host={CLUSTER}"
        subprocess.run(["createdb", "-h", CLUSTER, "-U", "kldiv", "backup"], check=True)
        try_store("PostgreSQL", folder, store, 2, dump, restore_dump, KLDIV_STORE=store, BACKUP=backup)


if __name__ == "__main__":
    main()
