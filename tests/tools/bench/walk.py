"""How far a reader walks who follows one small JSON request through the source: the files that it visits, the calls
from one file to another (hops), the calls.

Builds the server without optimization and with a hook at each function (build/walk), sends it requests, and prints the
way of the last. Functions of headers count as part of the file that calls them; the log is left out, and so are the
kernels of lib/simd.

Usage: python3 tests/tools/bench/walk.py [--calls]     in the root of a checkout; --calls prints each call"""

import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

BODY = b'{"input": [[-1, -0.5], [-2, -0.2]], "target": [[0.4, 0.6], [0.1, 0.9]]}'
WARM_UP = 20
HEADER, RECORD = struct.Struct("QQ"), struct.Struct("QII")
HOOKS = pathlib.Path(__file__).resolve().parent / "walk" / "hooks.c"


def make(*arguments, **more):
    subprocess.run(["make", f"-j{os.cpu_count()}", *arguments], stdout=subprocess.DEVNULL, check=True, **more)


def build():
    """Takes the objects of lib/simd from the release: without optimization gcc takes many minutes for them."""
    make("build/release/kldivd")
    os.makedirs("build/walk/lib/simd", exist_ok=True)
    for kernel in pathlib.Path("build/release/lib/simd").glob("*.o"):
        shutil.copy(kernel, "build/walk/lib/simd")
    hooks = os.path.abspath("build/walk/hooks.o")
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-c", HOOKS, "-o", hooks], check=True)
    flags = "-O0 -g -finstrument-functions -finstrument-functions-exclude-file-list=.h"
    make("VARIANT=walk", f"OPTIMIZE_walk={flags}", "build/walk/kldivd", env={**os.environ, "LDFLAGS": hooks})


def ask(s, port):
    head = (f"POST /kl_div HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(BODY)}\r\n\r\n")
    s.sendall(head.encode() + BODY)
    reply = b""
    while not reply.endswith(b"}\n"):
        reply += s.recv(65536)
    assert reply.startswith(b"HTTP/1.1 200"), reply


def count(log):
    return HEADER.unpack_from(log.read_bytes()[:HEADER.size])[0]


def record():
    """[(thread, function's offset, is a return)] of one request"""
    with tempfile.TemporaryDirectory() as folder:
        log, ports = pathlib.Path(folder, "log"), pathlib.Path(folder, "port")
        log.touch()
        process = subprocess.Popen(["build/walk/kldivd", "--listen", "127.0.0.1:0", "--port-file", ports],
                                   env={**os.environ, "KLDIV_WALK": str(log)}, stderr=subprocess.DEVNULL)
        try:
            while not ports.exists() or not ports.read_text().strip():
                time.sleep(0.1)
            port = int(ports.read_text())
            with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
                for _ in range(WARM_UP):
                    ask(s, port)
                time.sleep(0.3)
                begin = count(log)
                ask(s, port)
                time.sleep(0.3)
                end = count(log)
            data = log.read_bytes()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    records = (RECORD.unpack_from(data, HEADER.size + i * RECORD.size) for i in range(begin, end))
    return [(thread, function, is_return) for function, thread, is_return in records]


def places(offsets):
    """{offset: (function, file)}"""
    command = ["addr2line", "-f", "-e", "build/walk/kldivd", *(hex(o) for o in offsets)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    root = os.getcwd() + "/"
    return {o: (lines[2 * i], os.path.normpath(lines[2 * i + 1].split(":")[0]).replace(root, ""))
            for i, o in enumerate(offsets)}


def main():
    build()
    records = record()
    where = places(sorted({function for _, function, _ in records}))
    threads = {thread for thread, function, _ in records if where[function][0] == "api_begin"}
    calls, hops, files, stacks = 0, 0, set(), {thread: [] for thread in threads}
    for thread, function, is_return in records:
        name, file = where[function]
        if thread not in threads or file.endswith(".h"):
            continue
        stack = stacks[thread]
        if "" in stack or file.startswith("server/log"):
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
    print(f"{len(files)} files, {hops} hops, {calls} calls")
    for file in sorted(files):
        print(f"    {file}")


main()
