"""Memory that one request takes, by format, that idle connections take, and that monitors take. A server of its own for
each: the greatest resident memory less that of the idle server, and the greatest of what /metrics says is reserved, over
the body.

usage: sizing.py KLDIVD"""
import io
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import numpy

N = 1 << 23
CONNECTIONS = 900


def tensors(dtype):
    random = numpy.random.default_rng(1)
    target = random.random(N).astype(dtype)
    return {"input": numpy.log(target[::-1].copy()), "target": target}


def safetensors(arrays):
    names, data, header, at = {"f4": "F32", "f8": "F64"}, b"", {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": names[array.dtype.str[1:]], "shape": list(array.shape),
                        "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(a.tobytes() for a in arrays.values())


def npz(arrays, save):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


def multipart(arrays):
    out = b""
    for name, array in arrays.items():
        part = io.BytesIO()
        numpy.save(part, array)
        out += (b'--x\r\nContent-Disposition: form-data; name="%s"; filename="%s.npy"\r\n\r\n' %
                (name.encode(), name.encode())) + part.getvalue() + b"\r\n"
    return out + b"--x--\r\n"


def text(arrays, digits):
    return ("{" + ", ".join(f'"{name}": [' + ",".join(f"%.{digits}g" % x for x in array[:N // 8]) + "]"
                            for name, array in arrays.items()) + "}").encode()


def cases():
    f32, f64 = tensors("f4"), tensors("f8")
    safe, zipped = "application/vnd.safetensors", "application/x-npz"
    yield "safetensors, float32", safe, "sum", safetensors(f32)
    yield "the same, `none`: half as many come back", safe, "none", safetensors(f32)
    yield "the same, both gradients: as many come back", safe, "sum&gradient=input,target", safetensors(f32)
    yield "the same, both gradients, as JSON", safe, "sum&gradient=input,target", safetensors(f32), "application/json"
    yield ".npz, stored", zipped, "sum", npz(f32, numpy.savez)
    yield ".npz, deflated", zipped, "sum", npz(f32, numpy.savez_compressed)
    yield "multipart, .npy", "multipart/form-data; boundary=x", "sum", multipart(f32)
    yield "JSON, 17 digits", "application/json", "sum", text(f64, 17)
    yield "JSON, 4 digits", "application/json", "sum", text(f64, 4)


def memory_of(pid, field):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(field):
            return int(line.split()[1]) * 1024


class Server:
    def __init__(self, folder, *flags):
        port = os.path.join(folder, f"port{time.monotonic_ns()}")
        self.process = subprocess.Popen([sys.argv[1], "--listen", "127.0.0.1:0", "--port-file", port,
                                         "--log-level", "error", *flags])
        while not os.path.exists(port) or not open(port).read().strip():
            time.sleep(0.01)
        self.port = int(open(port).read())

    def ask(self, path, body=None, kind="", accept="*/*"):
        headers = {"Content-Type": kind, "Accept": accept}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers)
        return urllib.request.urlopen(request).read()

    def reserved(self, name="reserved"):
        for line in self.ask("/metrics").decode().splitlines():
            if line.startswith(f"kldiv_memory_{name}_bytes "):
                return int(line.split()[1])

    def stop(self):
        self.process.terminate()
        self.process.wait()


def measure(server, kind, options, body, accept="application/vnd.safetensors"):
    """Greatest resident memory beyond the idle server's, and greatest reserved memory seen."""
    idle, most, done = memory_of(server.process.pid, "VmRSS"), 0, threading.Event()

    def ask():
        server.ask(f"/kl_div?reduction={options}", body, kind, accept)
        done.set()

    client = threading.Thread(target=ask)
    client.start()
    while not done.is_set():
        most = max(most, server.reserved())
    client.join()
    return memory_of(server.process.pid, "VmHWM") - idle, most


def connections(server):
    """Resident memory of a connection that is kept after a request."""
    before, kept = memory_of(server.process.pid, "VmRSS"), []
    for _ in range(CONNECTIONS):
        kept.append(socket.create_connection(("127.0.0.1", server.port)))
        kept[-1].sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        kept[-1].recv(4096)
    return (memory_of(server.process.pid, "VmRSS") - before) / CONNECTIONS


def monitors(server, bins, n=200):
    """Memory of a monitor of so many bins with an open window: resident, and as it is counted."""
    group = {"columns": {f"column_{i}": [i + 0.5 for i in range(10 * bins)] for i in range(n)}}
    before = memory_of(server.process.pid, "RssAnon")
    for path, method in (f"/monitors/g?window=86400s&bins={bins}", "PUT"), ("/monitors/g/observations", "POST"):
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", json.dumps(group).encode(),
                                         {"Content-Type": "application/json"}, method=method)
        urllib.request.urlopen(request).read()
    time.sleep(12)  # until what requests have used is returned
    return (memory_of(server.process.pid, "RssAnon") - before) / n, server.reserved("retained") / n


def main():
    with tempfile.TemporaryDirectory() as folder:
        print("| body | MiB | resident / body | reserved / body |\n|---|---|---|---|")
        for name, kind, options, body, *accept in cases():
            server = Server(folder)
            resident, reserved = measure(server, kind, options, body, *accept)
            server.stop()
            print(f"| {name} | {len(body) / 2**20:.0f} | {resident / len(body):.2f} | {reserved / len(body):.2f} |",
                  flush=True)
        server = Server(folder, "--max-connections", "2000")
        print(f"\nA kept connection: {connections(server) / 1024:.1f} KiB")
        server.stop()
        print("\n| bins of a monitor | KiB resident | KiB counted |\n|---|---|---|")
        for bins in 10, 100, 1000:
            server = Server(folder, "--store", f"sqlite:{folder}/{bins}.db")
            resident, counted = monitors(server, bins)
            server.stop()
            print(f"| {bins} | {resident / 1024:.1f} | {counted / 1024:.1f} |", flush=True)


main()
