"""How far a reader walks who follows one request through the source, a small loss in JSON and a small CSV for a monitor:
the files that it visits, the calls from one file to another (hops), the calls.

Builds the server without optimization and with a hook at each function (build/walk), sends it requests, and prints the
way of the last of each. Functions of headers count as part of the file that calls them; the log is left out, and so are the
kernels of lib/simd. Of the threads those count that handle the request: the network thread, and the store's from its
transaction to the end of the job.

Usage: python3 tests/tools/bench/walk.py [--files] [--calls]     in the root of a checkout; prints each file, each call"""

import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

LOSS = b'{"input": [[-1, -0.5], [-2, -0.2]], "target": [[0.4, 0.6], [0.1, 0.9]]}'
CSV = b"x,y\n" + b"1,a\n2,b\n3,a\n" * 4
REQUESTS = [("a small JSON to /kl_div", "POST", "/kl_div?reduction=batchmean", "application/json", LOSS),
            ("a CSV of two columns to a group", "POST", "/monitors/g/observations", "text/csv", CSV)]
REFERENCE = ("PUT", "/monitors/g?method=auto", "text/csv", CSV)
WARM_UP = 20
HEADER, RECORD = struct.Struct("QQ"), struct.Struct("QII")
HOOKS = pathlib.Path(__file__).resolve().parent / "walk" / "hooks.c"


def make(*arguments, **more):
    subprocess.run(["make", f"-j{os.cpu_count()}", *arguments], stdout=subprocess.DEVNULL, check=True, **more)


def build():
    os.makedirs("build/walk", exist_ok=True)
    hooks = os.path.abspath("build/walk/hooks.o")
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-c", HOOKS, "-o", hooks], check=True)
    flags = "-O0 -g -finstrument-functions -finstrument-functions-exclude-file-list=.h"
    make("VARIANT=walk", f"OPTIMIZE_walk={flags}", "build/walk/kldivd",
         env={**os.environ, "LDFLAGS": hooks, "CCACHE_HASHDIR": "1"})  # with the names of this folder's files


def ask(s, port, method, path, content_type, body):
    head = (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    s.sendall(head.encode() + body)
    reply = b""
    while not reply.endswith(b"}\n"):
        piece = s.recv(65536)
        assert piece, f"{method} {path}: the server ended the connection after {reply!r}"
        reply += piece
    assert reply.startswith(b"HTTP/1.1 20"), reply


def count(log):
    return HEADER.unpack_from(log.read_bytes()[:HEADER.size])[0]


def record():
    """For each request [(thread, function's offset, is a return)]"""
    with tempfile.TemporaryDirectory() as folder:
        log, ports = pathlib.Path(folder, "log"), pathlib.Path(folder, "port")
        log.touch()
        process = subprocess.Popen(["build/walk/kldivd", "--listen", "127.0.0.1:0", "--port-file", ports],
                                   env={**os.environ, "KLDIV_WALK": str(log)}, stderr=subprocess.DEVNULL)
        spans = []
        try:
            while not ports.exists() or not ports.read_text().strip():
                time.sleep(0.1)
            port = int(ports.read_text())
            with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
                ask(s, port, *REFERENCE)
                for _, *request in REQUESTS:
                    for _ in range(WARM_UP):
                        ask(s, port, *request)
                    time.sleep(0.3)
                    begin = count(log)
                    ask(s, port, *request)
                    time.sleep(0.3)
                    spans.append((begin, count(log)))
            data = log.read_bytes()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    return [[(thread, function, is_return)
             for function, thread, is_return in (RECORD.unpack_from(data, HEADER.size + i * RECORD.size)
                                                 for i in range(begin, end))]
            for begin, end in spans]


def places(offsets):
    """{offset: (function, file)}"""
    command = ["addr2line", "-f", "-e", "build/walk/kldivd", *(hex(o) for o in offsets)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    root = os.getcwd() + "/"
    return {o: (lines[2 * i], os.path.normpath(lines[2 * i + 1].split(":")[0]).replace(root, ""))
            for i, o in enumerate(offsets)}


def own(records, where):
    """The records of the threads of the request: of the store's thread, the function that runs jobs and what it calls."""
    network = {thread for thread, function, _ in records if where[function][0] == "api_begin"}
    depth = 0
    for record in records:
        thread, function, is_return = record
        if thread in network:
            yield record
        elif where[function][0] == "api_batch_run":
            depth += -1 if is_return else 1
            yield record
        elif depth > 0:
            yield record


def walk(title, records, where):
    calls, hops, files, stacks = 0, 0, set(), {}
    for thread, function, is_return in own(records, where):
        name, file = where[function]
        stack = stacks.setdefault(thread, [])
        if file.endswith(".h"):
            continue
        if "" in stack or file.endswith("/log.c"):
            file = ""  # of the log, or called by it
        if is_return:
            del stack[-1:]
            continue
        if not file:
            stack.append(file)
            continue
        calls += 1
        files.add(file)
        hops += bool(stack) and stack[-1] != file
        if "--calls" in sys.argv:
            print("  " * len(stack) + f"{name}  {file}")
        stack.append(file)
    rooms = {room: sum(file.startswith(room + "/") for file in files) for room in ("server", "api", "lib")}
    print(f"MEASURED: {title}: {len(files)} files ({', '.join(f'{room} {n}' for room, n in rooms.items())}), {hops} hops, {calls} calls")
    if "--files" in sys.argv:
        for file in sorted(files):
            print(f"    {file}")


def main():
    build()
    recorded = record()
    where = places(sorted({function for records in recorded for _, function, _ in records}))
    for (title, *_), records in zip(REQUESTS, recorded):
        walk(title, records, where)


main()
