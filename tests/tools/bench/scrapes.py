"""Health beside scrapers of many monitors: 32 clients that ask /metrics in a loop, and one that asks /livez, on one address.

usage: scrapes.py KLDIVD"""
import http.client
import json
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import threading
import time

MONITORS, SCRAPERS, SECONDS = 10000, 32, 10


def start(folder):
    port = f"{folder}/port"
    process = subprocess.Popen([sys.argv[1], "--listen", "127.0.0.1:0", "--port-file", port, "--log-level", "error"])
    while True:
        try:
            return process, int(open(port).read())
        except (OSError, ValueError):
            time.sleep(0.01)


def fill(port):
    """Groups of 500 monitors that have a closed window."""
    body = json.dumps({"columns": {f"column_{i}": [k * 7 % 100 for k in range(100)] for i in range(500)}})
    for group in range(MONITORS // 500):
        for method, path in ("PUT", ""), ("POST", "/observations"):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request(method, f"/monitors/group_{group}{path}", body, {"Content-Type": "application/json"})
            assert connection.getresponse().status in (200, 201)


def scrape(port, end, done):
    into = bytearray(1 << 20)
    while time.time() < end:
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            while s.recv_into(into):
                pass
        done.append(1)


def scrape_all(port, end, total, n):
    done = []
    threads = [threading.Thread(target=scrape, args=(port, end, done)) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with total.get_lock():
        total.value += len(done)


def probe(port, end):
    """Milliseconds of health checks, sorted."""
    times, connection = [], http.client.HTTPConnection("127.0.0.1", port)
    while time.time() < end:
        begin = time.perf_counter()
        connection.request("GET", "/livez")
        connection.getresponse().read()
        times.append((time.perf_counter() - begin) * 1e3)
        time.sleep(0.002)
    return sorted(times)


def main():
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(folder)
        fill(port)
        print("| scrapers | scrapes a second | health p50, ms | p99 | greatest |\n|---|---|---|---|---|")
        for n in 0, SCRAPERS:
            end, total = time.time() + SECONDS, multiprocessing.Value("i", 0)
            scrapers = [multiprocessing.Process(target=scrape_all, args=(port, end, total, n // 2)) for _ in range(2)]
            for process in scrapers:
                process.start()
            times = probe(port, end)
            for process in scrapers:
                process.join()
            print(f"| {n} | {total.value / SECONDS:.0f} | {times[len(times) // 2]:.2f} | {times[len(times) * 99 // 100]:.2f} "
                  f"| {times[-1]:.2f} |", flush=True)
        server.terminate()
        server.wait()


main()
