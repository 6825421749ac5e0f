"""The same requests to kldivd and to tests/tools/bench/fastapi_server.py, interleaved, each on one kept
connection: medians in ms. Arguments: the two ports."""
import http.client
import json
import statistics
import struct
import sys
import time

import numpy


def safetensors(**tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        raw = array.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    header = json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def post(connection, path, body, content_type):
    start = time.perf_counter()
    connection.request("POST", path + "?reduction=sum", body, {"Content-Type": content_type})
    answer = connection.getresponse()
    loss = json.loads(answer.read())
    if answer.status != 200:
        sys.exit("%s: %s" % (path, loss))
    return time.perf_counter() - start, loss["loss"]


ours, theirs = (http.client.HTTPConnection("127.0.0.1", int(port)) for port in sys.argv[1:3])
print("\nThe same requests to a FastAPI, uvicorn and PyTorch service, sum, milliseconds\n")
print("| elements | format | kldivd | FastAPI | ratio |\n|---|---|---|---|---|")
random = numpy.random.default_rng(1)
for n, runs in ((6, 301), (10_000, 101), (1_000_000, 9)):
    input, target = numpy.log(random.random(n) + 1e-9), random.random(n)
    text = json.dumps({"input": input.tolist(), "target": target.tolist()}).encode()
    binary = safetensors(input=input, target=target)
    for name, body, content_type, path in (
            ("JSON, float64", text, "application/json", "/json"),
            ("safetensors, float32", binary, "application/vnd.safetensors", "/safetensors")):
        times = [[], []]
        for _ in range(runs):
            a, loss = post(ours, "/kl_div", body, content_type)
            b, their_loss = post(theirs, path, body, content_type)
            if abs(loss - their_loss) > 1e-4 * abs(loss):
                sys.exit("%r is not %r" % (loss, their_loss))
            times[0].append(a * 1e3)
            times[1].append(b * 1e3)
        a, b = map(statistics.median, times)
        print("| %s | %s | %.3f | %.3f | %.0f |" % (format(n, ","), name, a, b, b / a), flush=True)
