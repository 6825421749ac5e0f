"""Bodies that take memory beside their bytes: wide tables, long rows, long texts, in every format, plain and compressed;
and clients that send them one after another."""

import collections
import gzip
import http.client
import io
import json
import random
import threading
import time
import zlib

import numpy

CSV, JSON, LINES, NPZ = "text/csv", "application/json", "application/x-ndjson", "application/x-npz"
SAFETENSORS = "application/vnd.safetensors"


def names(n):
    return [f"a_column_whose_name_is_long_{i}" for i in range(n)]


def cell(random_, i):
    """Values of all kinds: numbers, decimals, texts that repeat, texts that do not, missing ones."""
    return (str(i % 7), f"{random_.random():.6f}", f"label {random_.randrange(30)}", f"text {random_.random()}", "")[i % 5]


def csv(columns, rows, text=None):
    random_ = random.Random(7)
    lines = [",".join(names(columns))]
    lines += [",".join(text or cell(random_, i) for i in range(columns)) for _ in range(rows)]
    return "\n".join(lines).encode()


def csv_of_texts(columns, distinct, size, repeats):
    """Texts of so many bytes, each in so many rows."""
    texts = [f"{i:05}" + "x" * (size - 5) for i in range(distinct)]
    return "\n".join([",".join(names(columns))] + [",".join([t] * columns) for t in texts] * repeats).encode()


def json_columns(columns, rows):
    random_ = random.Random(7)
    return json.dumps({"columns": {name: [cell(random_, i) for _ in range(rows)]
                                   for i, name in enumerate(names(columns))}}).encode()


def json_rows(columns, rows, lines=False):
    random_ = random.Random(7)
    table = [{name: cell(random_, i) for i, name in enumerate(names(columns))} for _ in range(rows)]
    return "\n".join(map(json.dumps, table)).encode() if lines else json.dumps(table).encode()


def npz(columns, rows, compressed=False):
    file = io.BytesIO()
    (numpy.savez_compressed if compressed else numpy.savez)(
        file, **{name: numpy.arange(rows) % 9 + i / 7 for i, name in enumerate(names(columns))})
    return file.getvalue()


def safetensors(tensors):
    header, parts, at = {}, [], 0
    for name, array in tensors.items():
        parts.append(array.astype("<f8").tobytes())
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + b"".join(parts)


def losses():
    """Losses, some of which are refused only when all has been read."""
    large = numpy.full((1000, 400), -6.0)
    file = io.BytesIO()
    numpy.savez_compressed(file, input=large, target=numpy.exp(large)[:, :399])
    listed = large[:200].tolist()
    return [
        ("/kl_div", NPZ, file.getvalue()),
        ("/kl_div?gradient=input,target", SAFETENSORS, safetensors({"input": large, "target": numpy.exp(large)})),
        ("/kl_div?reduction=none", JSON, json.dumps({"input": listed, "target": listed}).encode()),
        ("/kl_div", JSON, json.dumps({"input": listed, "target": listed[:-1]}).encode()),
    ]


def tables():
    """Tables of every format, of some MB each."""
    return [
        (CSV, csv(10000, 40)), (CSV, csv(10000, 300, "1.25")), (CSV, csv(3, 100000)), (CSV, csv(200, 1000)),
        (CSV, csv_of_texts(10, 60, 1000, 10)), (CSV, csv_of_texts(1, 4000, 900, 1)), (CSV, csv_of_texts(60, 60, 100, 12)),
        (JSON, json_columns(10000, 20)), (JSON, json_columns(3, 100000)), (JSON, json_rows(2000, 50)),
        (LINES, json_rows(2000, 50, True)), (NPZ, npz(5000, 40)), (NPZ, npz(3, 200000)), (NPZ, npz(300, 2000, True)),
        (SAFETENSORS, safetensors({name: numpy.arange(40) % 9 + i for i, name in enumerate(names(10000))})),
    ]


def make():
    """All requests of a flood: method, target, type, coding, body. Half of the texts come compressed."""
    requests = [("POST", target, kind, None, body) for target, kind, body in losses()]
    for i, (kind, body) in enumerate(tables()):
        coding = (None, "gzip", None, "deflate")[i % 4] if kind in (CSV, JSON, LINES) else None
        packed = gzip.compress(body, 1) if coding == "gzip" else zlib.compress(body, 1) if coding else body
        requests += [("PUT", f"/monitors/flood_{i % 3}", kind, coding, packed),
                     ("POST", f"/monitors/flood_{i % 3}/observations", kind, coding, packed)]
    return requests


def headers(kind, coding):
    return {"Content-Type": kind, **({"Content-Encoding": coding} if coding else {})}


def send_without_an_end(port, requests, seed, until, statuses):
    random_, connection = random.Random(seed), None
    while time.monotonic() < until:
        method, target, kind, coding, body = random_.choice(requests)
        try:
            connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(method, target, body, headers(kind, coding))
            response = connection.getresponse()
            response.read()
            statuses[response.status] += 1
        except (OSError, http.client.HTTPException):  # the connection ended while a refused body was sent
            statuses[0] += 1
            connection.close()
            connection = None


def flood(port, requests, clients, seconds):
    """Counts of the statuses that so many clients got."""
    until, counts = time.monotonic() + seconds, [collections.Counter() for _ in range(clients)]
    threads = [threading.Thread(target=send_without_an_end, args=(port, requests, i, until, counts[i]))
               for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts, collections.Counter())
