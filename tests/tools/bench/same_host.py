"""64 MiB of tensors to a server on the same host: through shared memory, a unix socket and TCP, in turn with
libkldiv and PyTorch in this process: medians in ms. Arguments: the port, the unix socket, libkldiv.so."""
import http.client
import json
import os
import socket
import statistics
import sys
import time
from multiprocessing import shared_memory

import numpy
import torch

from libkldiv import Library

N, RUNS = 1 << 23, 100
SIZE = 4 * N  # bytes of a float32 tensor


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def post(connection, path, body, headers={}):
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        sys.exit("%s: %s" % (path, content[:300]))
    return content


def tensors(place):
    return [{"name": name, "datatype": "FP32", "shape": [N], "parameters": place(i)}
            for i, name in enumerate(("input", "target"))]


def place_in_region(i):
    return {"shared_memory_region": region, "shared_memory_offset": i * SIZE,
            "shared_memory_byte_size": SIZE}


def by_region(connection, reduction):
    request = {"inputs": tensors(place_in_region), "parameters": {"reduction": reduction}}
    if reduction == "none":
        request["outputs"] = [{"name": "loss", "parameters": place_in_region(2)}]
    return post(connection, INFER, json.dumps(request))


def by_body(connection, reduction):
    head = json.dumps({"inputs": tensors(lambda i: {"binary_data_size": SIZE}),
                       "parameters": {"reduction": reduction, "binary_data_output": True}}).encode()
    parts = [head, memoryview(x).cast("B"), memoryview(t).cast("B")]
    connection.putrequest("POST", INFER)
    connection.putheader("Content-Length", str(len(head) + 2 * SIZE))
    connection.putheader("Inference-Header-Content-Length", str(len(head)))
    connection.endheaders()
    for part in parts:
        connection.sock.sendall(part)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        sys.exit("%s: %s" % (INFER, content[:300]))
    return content


def in_turn(ways, runs):
    times = {name: [] for name in ways}
    for _ in range(runs):
        for name, run in ways.items():
            start = time.perf_counter()
            run()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(of) for name, of in times.items()}


INFER = "/v2/models/kl_div/infer"
port, path, library = sys.argv[1:4]
tcp, unix, control = (http.client.HTTPConnection("127.0.0.1", int(port)), UnixConnection(path),
                      UnixConnection(path))
kl = Library(library)
pool = kl.pool(len(os.sched_getaffinity(0)))
region = "kldiv_bench_%d" % os.getpid()
memory = shared_memory.SharedMemory(region, create=True, size=3 * SIZE)
shared = numpy.ndarray((3, N), numpy.float32, memory.buf)
random = numpy.random.default_rng(1)
x = numpy.log(random.random(N, numpy.float32) + numpy.float32(1e-9))
t = random.random(N, numpy.float32)
shared[0], shared[1], shared[2] = x, t, 0
register = {"key": region, "offset": 0, "byte_size": 3 * SIZE}
post(control, "/v2/systemsharedmemory/region/%s/register" % region, json.dumps(register))

print("\n64 MiB of tensors on the same host, float32, milliseconds, medians of %d in turn\n" % RUNS)
print("| reduction | libkldiv, in process | shared memory | ratio | unix socket | TCP | PyTorch, in process |")
print("|---|---|---|---|---|---|---|")
tx, tt = torch.from_numpy(x), torch.from_numpy(t)
for reduction in "sum", "none":
    ways = {"libkldiv": kl.prepare(tx, tt, reduction, pool=pool),
            "region": lambda: by_region(control, reduction),
            "unix": lambda: by_body(unix, reduction),
            "tcp": lambda: by_body(tcp, reduction)}
    median = in_turn(ways, RUNS)
    torch_ms = in_turn({"torch": lambda: torch.nn.functional.kl_div(tx, tt, reduction=reduction)}, 15)
    if reduction == "none":
        expected = ways["libkldiv"]()[0].numpy()
        if not numpy.array_equal(shared[2], expected):
            sys.exit("losses in shared memory differ")
    print("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |"
          % (reduction, median["libkldiv"], median["region"],
             median["region"] / median["libkldiv"], median["unix"], median["tcp"],
             torch_ms["torch"]), flush=True)
post(control, "/v2/systemsharedmemory/unregister", "")
del shared
memory.close()
memory.unlink()

try:
    import tritonclient.http as triton
    import tritonclient.utils.shared_memory as shm
except ImportError:
    print("\n(tritonclient is not installed: its own cost is not measured)")
    sys.exit(0)


def triton_inputs(fill):
    inputs = [triton.InferInput(name, [N], "FP32") for name in ("input", "target")]
    for i, array in enumerate((x, t)):
        fill(i, inputs[i], array)
    return triton.InferenceServerClient.generate_request_body(
        inputs, outputs=[triton.InferRequestedOutput("loss")])


def as_bytes(i, tensor, array):
    tensor.set_data_from_numpy(array)


def in_region(i, tensor, array):
    shm.set_shared_memory_region(handle, [array], i * SIZE)
    tensor.set_shared_memory(region, SIZE, offset=i * SIZE)


handle = shm.create_shared_memory_region(region, "/" + region, 2 * SIZE)
median = in_turn({"bytes": lambda: triton_inputs(as_bytes),
                  "region": lambda: triton_inputs(in_region)}, 15)
shm.destroy_shared_memory_region(handle)
print("\ntritonclient alone, without a server: %.1f ms to make a body of 64 MiB, %.1f ms to copy them to a region"
      % (median["bytes"], median["region"]))
