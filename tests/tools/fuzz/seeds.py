"""Seeds for the fuzzers of monitors and of shared memory: seeds.py DIRECTORY. Needs numpy, for arrays."""
import io
import os
import struct
import sys

import numpy as np


def npz():
    to = io.BytesIO()
    np.savez(to, a=np.array([0.5, np.nan, 9]), b=np.array(["x", "", "y"]))
    return to.getvalue()


def npy(array):
    return (b"{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n"
            % (array.dtype.str.encode(), str(array.shape).encode()) + array.tobytes())


ARRAYS = [np.array(["x", "", "1"], ">U1"), np.array([], "<U1"), np.array([True, False]),
          np.array([0.5, np.inf, np.nan], ">f8"), np.arange(5, dtype="i2")]
# Entries of which the fuzzers make archives: one, or two of the same length.
ENTRIES = ([b"\xff" + npy(array) for array in ARRAYS] + [b"\x7f" + 2 * npy(ARRAYS[0])]
           + [b"\xff" + struct.pack("<BQ", dtype, 1) + bytes(size)
              for dtype, size in ((1, 4), (4, 1), (5, 8))])


def safetensors():
    header = b'{"values":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    return struct.pack("<Q", len(header)) + header + np.array([1, 2], "<f4").tobytes()


CONFIGS = [
    (0, "window=60s,5s&warning=0.2", b'{"reference": {"values": [1, 2, 2.5, null, "x"]}}'),
    (0, "compare=previous:2", b'{"bins": {"edges": [0, 1, 2]}, "fire_after": 2}'),
    (0, "method=width&bins=3", b"values\n1\n2\nNaN\n8\n"),
    (0, "", b'{"bins": {"labels": ["a", ""]}, "reference": {"counts": [1, 2], "other": 3},'
            b' "thresholds": {"critical": 1}, "annotations": {"x": [1]}}'),
    (0, "", b'{"bins": {"edges": [0, 1]}, "reference": {"probabilities": [0.75],'
            b' "missing": 0.25, "n": 8}, "pseudocount": 0}'),
    (1, "retention_days=3", b'a;b;"c"\n1,5;x;\n2;y;1\n'),
    (1, "", b'{"columns": {"a": [1, 2], "b": ["x", null]}, "window": {"count": 10}}'),
    (1, "", b'{"rows": [{"a": 1}, {"a": true}], "compare": {"previous": 3}}'),
    (1, "", npz()),
    (0, "", safetensors()),
] + [(select, "", entry) for entry in ENTRIES for select in (6, 7)]
OBSERVATIONS = [
    (0, b"a,b,c,d,e\n1,x,0,1,2\n-9,1.0,1,x,\n,,2,NA,\n"),
    (0, b'{"columns": {"a": [1, 2], "b": ["x", true]}, "timestamp": 1000000000}'),
    (32, b'{"rows": [{"a": 1, "d": "x"}, {"c": 1}]}'),
    (1, b'{"values": [0.5, 1e999, null], "timestamp": "2001-09-09T01:46:40Z"}'),
    (64 + 2, b'{"counts": [1, 2, 3, 4], "other": 5, "missing": 6}'),
    (3, b'{"probabilities": [0.5, 0.5], "n": 8}'),
    (5, b'{"counts": [1, 2, 3], "underflow": 1}'),
    (6, b"x\nx\n1\n"),
    (0, b'{"a": 1, "b": true}\n{"a": 2, "d": "x"}\n'),
    (0, b'[{"a": 1}, {"b": "True"}]'),
    (0, b"sep=;\na;b\n1,5;x.y\n"),
    (0, npz()),
    (1, safetensors()),
] + [(select, entry) for entry in ENTRIES for select in (24, 26)]
TABLES = [
    (16, b'{"a": 1, "b": true}\n\n{"a": 2}\n'),
    (17, b"a\tb\n1,5\tx\n"),
    (18, b'--X\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n'
         b'Content-Type: text/csv\r\n\r\na,b\n1,2\r\n--X--'),
    (19, b'[{"a": 1}, {"b": null}]'),
    (0, b'{"columns": {"a": [1, "NaN"], "b": ["x", true]}}'),
    (4, b'{"values": [0.5, 1e999, null]}'),
    (1, npz()),
    (2, safetensors()),
] + [(select, entry) for entry in ENTRIES for select in (8, 12)]


def place(offset, size):
    return (b'"parameters":{"shared_memory_region":"a","shared_memory_byte_size":%d,'
            b'"shared_memory_offset":%d}' % (size, offset))


def shared(n, size, output, reduction):
    inputs = b",".join(b'{"name":"%s","datatype":"FP%d","shape":[%d],%s}'
                       % (name, 8 * size, n, place(i * n * size, n * size))
                       for i, name in enumerate((b"input", b"target")))
    return (b'{"inputs":[%s],"outputs":[{"name":"loss",%s}],"parameters":{"reduction":"%s"}}'
            % (inputs, output, reduction))


SHARED_MEMORY = [
    b"\0" + shared(3, 4, place(100, 12), b"none"),
    b"\0" + shared(8000, 4, b'"parameters":{"binary_data":true}', b"sum"),
    b"\0" + shared(1000, 8, place(16001, 8), b"mean"),
    b'\1{"key":"/kldiv_fuzz_1","offset":1,"byte_size":2}',
    b"\2" + shared(2, 4, place(7, 8), b"none"),
]


def write(folder, seeds):
    os.makedirs(folder, exist_ok=True)
    for i, seed in enumerate(seeds):
        with open(os.path.join(folder, str(i)), "wb") as file:
            file.write(seed)


write(os.path.join(sys.argv[1], "settings"),
      [bytes([select]) + query.encode() + b"\0" + body for select, query, body in CONFIGS])
write(os.path.join(sys.argv[1], "observations"),
      [bytes([select]) + body for select, body in OBSERVATIONS])
write(os.path.join(sys.argv[1], "table"), [bytes([select]) + body for select, body in TABLES])
write(os.path.join(sys.argv[1], "shared_memory"), SHARED_MEMORY)
write(os.path.join(sys.argv[1], "notify"), [
    b'[{"name": "ops", "url": "https://h/x?y", "format": "json", "groups": ["a*"], "states": ["ok", "stale"], '
    b'"secret_file": "/s", "ca_file": "/c", "header": {"A": "b"}}]',
    b'[{"name": "a", "url": "http://h", "format": "slack"}, {"name": "b", "url": "http://h", "format": "alertmanager"}]'])
