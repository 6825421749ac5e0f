"""Valid and malformed bodies of every format but plain JSON, with the expected answers.

    bodies.py > bodies.jsonl     the table of tests/suites/formats/bodies.c
    bodies.py DIRECTORY          the bodies as files, one folder per format: seeds for the fuzzers

Needs numpy, which writes the valid arrays.
"""
import base64
import gzip
import io
import json
import os
import struct
import sys
import zipfile
import zlib

import numpy as np

ROWS = []
X = np.array([[-1.0, -0.5], [-2.0, -0.25]])
T = np.array([[0.4, 0.6], [0.1, 0.9]])
LOSS = float((T * (np.log(T) - X)).sum())
MASK, WEIGHT = np.array([[True, False], [True, True]]), np.array([0.5, 2.0])
NAN_X = np.where(MASK, X, np.nan)  # what the mask hides is not seen
WEIGHED = float((MASK * WEIGHT * (T * (np.log(T) - X))).sum())
# A sparse target of T: it names the second element of the first row and the first of the second; the other is the rest.
NAMED, VALUES = np.array([[1], [0]]), np.array([[0.6], [0.1]])
SAFE = "application/x-safetensors"
NPZ = "application/x-npz"
BOUNDARY = "XyZ"
FORM = "multipart/form-data; boundary=" + BOUNDARY


def add(format, name, body, status=200, code="", detail="", loss=LOSS, content_type=None,
        query="reduction=sum", coding="", path="/kl_div", json_size=None):
    types = {"safetensors": SAFE, "npz": NPZ, "multipart": FORM, "npy": FORM, "inference": ""}
    ROWS.append(dict(format=format, name=name, path=path,
                     content_type=types[format] if content_type is None else content_type,
                     coding=coding, query=query, json_size=json_size, status=status, code=code,
                     detail=detail, loss=loss if status == 200 else None,
                     body=base64.b64encode(body).decode()))


# ---- safetensors

def header(text, data=b"", length=None):
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def safetensors(tensors, metadata=None, dtypes=None, gap=b""):
    """tensors: name -> array, in the order of their data."""
    names = {"f8": "F64", "f4": "F32", "f2": "F16", "b1": "BOOL", "u1": "U8", "u2": "U16", "i4": "I32", "i8": "I64"}
    entries, data = {}, b""
    if metadata is not None:
        entries["__metadata__"] = metadata
    for name, array in tensors.items():
        data += gap if data else b""
        raw = array.tobytes()
        entries[name] = {"dtype": (dtypes or {}).get(name) or names[array.dtype.str[1:]],
                         "shape": list(array.shape),
                         "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return header(json.dumps(entries), data)


def entry(dtype="F64", shape=(2,), begin=0, end=16, **more):
    return dict(dtype=dtype, shape=list(shape), data_offsets=[begin, end], **more)


def entries(input=None, target=None, **more):
    return json.dumps(dict(input=input or entry(), target=target or entry(begin=16, end=32),
                           **more))


def add_safetensors():
    def good(name, body, **more):
        add("safetensors", name, body, **more)

    def bad(name, body, detail, code="safetensors_malformed", status=400, **more):
        add("safetensors", name, body, status, code, detail, **more)

    good("two float64 tensors", safetensors({"input": X, "target": T}))
    good("in the other order", safetensors({"target": T, "input": X}))
    good("float32 and float64", safetensors({"input": X.astype("f4"), "target": T}))
    good("float16 and float64", safetensors({"input": X.astype("f2"), "target": T}))
    bf16 = (X.astype("<f4").view("<u4") >> 16).astype("<u2")
    good("bfloat16 and float64",
         safetensors({"input": bf16, "target": T}, dtypes={"input": "BF16"}))
    good("options in metadata", query="",
         body=safetensors({"input": X, "target": T}, {"reduction": "sum", "format": "pt"}))
    good("metadata of other programs", safetensors({"input": X, "target": T}, {
        "format": "pt", "name": "x", "date": "2026-01-31", "n": 7, "nested": {"a": [1, None]}, "long": "x" * 5000,
        "y" * 3000: "z", **{"ss_%d" % i: "v" for i in range(100)}}))
    good("the same option in metadata and query",
         safetensors({"input": X, "target": T}, {"reduction": "sum"}))
    good("log_target", query="reduction=sum&log_target=1",
         body=safetensors({"input": X, "target": np.log(T)}))
    good("under its registered name", safetensors({"input": X, "target": T}),
         content_type="application/vnd.safetensors")
    good("under its third name", safetensors({"input": X, "target": T}),
         content_type="application/safetensors")
    text = json.dumps({"input": entry(shape=(2, 2), end=32),
                       "target": entry(shape=(2, 2), begin=32, end=64)})
    for pad in range(8):
        good(f"unaligned, header padded by {pad}",
             header(text + " " * pad, X.tobytes() + T.tobytes()))
    good("scalars", safetensors({"input": X[0, 0], "target": T[0, 0]}),
         loss=float(T[0, 0] * (np.log(T[0, 0]) - X[0, 0])))
    good("empty tensors", safetensors({"input": np.zeros((0, 3)), "target": np.zeros((0, 3))}),
         loss=0.0)
    good("members of an entry that mean nothing here",
         header(json.dumps({"input": entry(note="x"), "target": entry(begin=16, end=32)}),
                X[0].tobytes() + T[0].tobytes()),
         loss=float((T[0] * (np.log(T[0]) - X[0])).sum()))
    whole = safetensors({"input": X, "target": T})
    good("gzip", gzip.compress(whole, mtime=0), coding="gzip")
    good("two gzip members", gzip.compress(whole[:50], mtime=0) + gzip.compress(whole[50:], mtime=0),
         coding="x-gzip")
    good("deflate", zlib.compress(whole), coding="deflate")
    raw = zlib.compressobj(wbits=-15)
    good("deflate without its wrapper", raw.compress(whole) + raw.flush(), coding="Deflate")

    weighed = {"input": NAN_X, "target": T, "mask": MASK, "weight": WEIGHT}
    good("a mask of BOOL and weights", safetensors(weighed), loss=WEIGHED)
    good("a mask of U8", safetensors(dict(weighed, mask=MASK.astype("u1"))), loss=WEIGHED)

    bad("a mask of F32", safetensors(dict(weighed, mask=MASK.astype("f4"))),
        "mask: dtype F32 is not one of BOOL, U8", "dtype_unsupported", 422)
    bad("a mask of more than 0 and 1", safetensors(dict(weighed, mask=MASK.astype("u1") * 255)),
        "mask holds 255", "element_invalid", 422)
    bad("a mask of another shape", safetensors(dict(weighed, mask=MASK[:, :0])),
        "mask has shape [2, 0], which does not broadcast to that of the losses, [2, 2]", "shape_mismatch", 422)
    bad("weights of U8", safetensors(dict(weighed, weight=MASK.astype("u1"))),
        "weight: dtype U8", "dtype_unsupported", 422)
    sparse = {"input": X, "target": VALUES, "indices": NAMED}
    good("indices of I64", safetensors(sparse))
    good("indices of I32, with options", safetensors(dict(sparse, indices=NAMED.astype("i4")), {"tail": "bin"}))
    good("log_normalizer", safetensors(dict(sparse, target=np.log(VALUES) + 7, log_normalizer=np.array([7.0, 7.0]))),
         query="reduction=sum&target_space=logit")
    bad("indices of U16", safetensors(dict(sparse, indices=NAMED.astype("u2"))),
        "indices: dtype U16 is not one of I32, I64", "dtype_unsupported", 422)
    bad("indices of F64", safetensors(dict(sparse, indices=NAMED.astype("f8"))),
        "indices: dtype F64 is not one of I32, I64", "dtype_unsupported", 422)
    bad("a log_normalizer of I64", safetensors(dict(sparse, log_normalizer=NAMED[:, 0])),
        "log_normalizer: dtype I64 is not one of F64", "dtype_unsupported", 422)
    bad("an index out of range", safetensors(dict(sparse, indices=NAMED * 2)), "the index 2", "indices_invalid", 422)
    bad("an index below 0", safetensors(dict(sparse, indices=-2 * NAMED)), "the index -2", "indices_invalid", 422)
    bad("nothing", b"", "0 bytes")
    bad("seven bytes", b"\2\0\0\0\0\0\0", "7 bytes")
    bad("no header", header(""), "begin with '{'")
    bad("a header longer than the body", header("{}", length=3), "more than the body")
    bad("a header of 2^64-1 bytes", header("{}", length=2**64 - 1), "more than the body")
    bad("a header of 2^63 bytes", header("{}", length=2**63), "more than the body")
    bad("a huge header", header("{" + " " * 70000 + "}"), "65536", "members_too_large", 422)
    bad("space before the header", header(" {}"), "begin with '{'")
    bad("an array", header("[]"), "begin with '{'")
    bad("broken JSON", header('{"input": '), "not JSON")
    bad("something after the object", header("{} x"), "not JSON")
    bad("a NUL in the header", header('{"__metadata__": {}\0}'), "not JSON")
    bad("not UTF-8", header(b'{"\xff": {}}'), "not JSON")
    bad("nested 5000 deep", header('{"input":' + "[" * 5000), "not JSON")
    bad("nothing in it", header("{}"), "no tensor 'input'", "tensor_missing", 422)
    bad("target missing", safetensors({"input": X}), "'target'", "tensor_missing", 422)
    bad("input twice", header('{"input": %s, "input": %s}' % ((json.dumps(entry()),) * 2), bytes(16)),
        "not JSON")
    bad("a tensor of another name", safetensors({"inptu": X, "target": T}),
        "did you mean 'input'", "tensor_unknown", 422)
    bad("an entry that is no object", header('{"input": 1}'), "input: its entry")
    data = bytes(32)
    bad("no dtype", header(entries({"shape": [2], "data_offsets": [0, 16]}), data), "input: it has")
    bad("dtype not a string", header(entries(entry(3)), data), "input: it has no dtype")
    for dtype in ("I64", "U8", "BOOL", "F8_E4M3", "C64", "f64"):
        bad("dtype " + dtype, header(entries(target=entry(dtype, begin=16, end=32)), data),
            "target: dtype " + dtype, "dtype_unsupported", 422)
    for name, shape in {"missing": None, "not an array": 2, "negative": [-2], "of reals": [2.0],
                        "of strings": ["2"], "of 65 sizes": [1] * 65, "null": [None]}.items():
        info = entry()
        info["shape"] = shape
        if shape is None:
            del info["shape"]
        bad("shape " + name, header(entries(info), data), "input: shape")
    for name, offsets in {"missing": None, "three": [0, 8, 16], "one": [16], "negative": [-1, 15],
                          "reals": [0.0, 16.0], "a string": "0,16"}.items():
        info = entry()
        info["data_offsets"] = offsets
        bad("data_offsets " + name, header(entries(info), data), "input: data_offsets must")
    bad("offsets backwards", header(entries(entry(begin=16, end=0)), data), "input: data_offsets [16, 0]")
    bad("offsets past the end", header(entries(target=entry(begin=16, end=40, shape=(3,))), data),
        "target: data_offsets [16, 40]")
    bad("shape smaller than its bytes", header(entries(entry(shape=(1,))), data), "input: shape")
    bad("shape larger than its bytes", header(entries(entry(shape=(3,))), data), "input: shape")
    bad("shape whose product overflows",
        header(entries(entry(shape=(2**32, 2**32, 2))), data), "input: shape")
    bad("shape whose bytes overflow", header(entries(entry(shape=(2**61, 1))), data), "input: shape")
    bad("shape of zero with bytes", header(entries(entry(shape=(0, 2))), data), "input: shape")
    bad("overlapping tensors", header(entries(target=entry(begin=8, end=24)), bytes(24)),
        "target: data_offsets begin at 8, not at 16")
    bad("a hole between tensors", safetensors({"input": X, "target": T}, gap=bytes(8)),
        "target: data_offsets begin at 40, not at 32")
    bad("a hole before the first", header(entries(entry(begin=8, end=24),
                                                  entry(begin=24, end=40)), bytes(40)),
        "input: data_offsets begin at 8, not at 0")
    bad("bytes after the last", safetensors({"input": X, "target": T}) + bytes(3),
        "end at byte 64 of the data, but the data has 67 bytes")
    bad("a byte missing", safetensors({"input": X, "target": T})[:-1], "target: data_offsets")
    bad("metadata not an object", header('{"__metadata__": []}'), "__metadata__ must")
    bad("metadata not strings", safetensors({"input": X, "target": T}, {"log_target": True}),
        "'log_target' is not a string")
    bad("an unknown option in metadata", safetensors({"input": X, "target": T}, {"reducton": "sum"}),
        "did you mean 'reduction'", "option_unknown", 422)
    bad("an option in metadata without room", safetensors({"input": X, "target": T}, {"reduction": "s" * 2000}),
        "'reduction' is not a string")
    bad("a misspelt option in metadata", safetensors({"input": X, "target": T}, {"log-target": "true"}),
        "did you mean 'log_target'", "option_unknown", 422)
    bad("metadata against the query", safetensors({"input": X, "target": T}, {"reduction": "mean"}),
        "reduction is given twice", "option_conflict")
    bad("a dtype that no tensor has", safetensors({"input": X, "target": T}),
        "input: it is float64", "option_invalid", 422, query="dtype=float32")
    bad("shapes that differ", safetensors({"input": X, "target": T[0]}), "[2, 2]",
        "shape_mismatch", 422)
    bad("gzip cut off", gzip.compress(whole, mtime=0)[:-9], "cut off", "content_malformed",
        coding="gzip")
    bad("gzip of nothing", b"", "cut off", "content_malformed", coding="gzip")
    bad("gzip with a wrong checksum", gzip.compress(whole, mtime=0)[:-8] + bytes(8),
        "incorrect data check", "content_malformed", coding="gzip")
    bad("not gzip", whole, "does not match its Content-Encoding", "content_malformed", coding="gzip")
    bad("not deflate", b"\xff" * 40, "does not match its Content-Encoding", "content_malformed",
        coding="deflate")
    bad("bytes after deflate", zlib.compress(whole) + b"xyz", "3 bytes follow",
        "content_malformed", coding="deflate")
    bad("2^40 empty rows", header(
        entries(entry(shape=(2**40, 0), end=0), entry(shape=(2**40, 0), begin=0, end=0))),
        "empty rows", "shape_invalid", 422, query="reduction=none")
    bad("gzip that inflates past the limit", gzip.compress(bytes(3 << 20), mtime=0), "inflates",
        "body_too_large", 413, coding="gzip")


# ---- .npy, as parts of forms

def npy(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asanyarray(array), version, allow_pickle=False)
    return out.getvalue()


def npy_of(text, data=X.tobytes(), version=b"\1\0"):
    text = text.encode("latin1")
    length = struct.pack("<H" if version == b"\1\0" else "<I", len(text))
    return b"\x93NUMPY" + version + length + text + data


def form(*parts, end=True):
    """parts: (name, content, extra header lines)."""
    out = b""
    for name, content, *lines in parts:
        out += b"--" + BOUNDARY.encode() + b"\r\n"
        out += b'Content-Disposition: form-data; name="%s"\r\n' % name.encode()
        for line in lines:
            out += line.encode() + b"\r\n"
        out += b"\r\n" + content + b"\r\n"
    return out + b"--" + BOUNDARY.encode() + (b"--\r\n" if end else b"\r\n")


def add_npy():
    def good(name, body, target=None, **more):
        add("npy", name, form(("input", body), ("target", npy(T) if target is None else target)),
            **more)

    def bad(name, body, detail, code="npy_malformed", status=400):
        add("npy", name, form(("target", npy(T)), ("input", body)), status, code, detail)

    good("C order", npy(X))
    good("Fortran order", npy(np.asfortranarray(X)))
    good("both in Fortran order", npy(np.asfortranarray(X)), npy(np.asfortranarray(T)))
    good("big-endian", npy(X.astype(">f8")))
    good("big-endian float32 in Fortran order", npy(np.asfortranarray(X).astype(">f4")))
    good("float16", npy(X.astype("f2")))
    for version in ((1, 0), (2, 0), (3, 0)):
        good("version %d.%d" % version, npy(X, version))
    a = np.log(np.arange(1, 25).reshape(2, 3, 4) / 30)
    b = np.arange(1, 25).reshape(2, 3, 4) / 300
    good("three axes in Fortran order", npy(np.asfortranarray(a)), npy(b),
         loss=float((b * (np.log(b) - a)).sum()))
    good("a scalar", npy(X[0, 0]), npy(T[0, 0]),
         loss=float(T[0, 0] * (np.log(T[0, 0]) - X[0, 0])))
    good("empty", npy(np.zeros((0, 2))), npy(np.zeros((0, 2))), loss=0.0)
    order = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}"
    good("an unpadded header", npy_of(order))
    good("a long header", npy_of(order + " " * 5000))
    good("axes of size 1 in Fortran order", npy(np.asfortranarray(X.reshape(2, 1, 1, 2))),
         npy(T.reshape(2, 1, 1, 2)))
    good("sizes as Python 2 wrote them",
         npy_of("{\"shape\": (2L, 2L,), 'fortran_order':False,'descr': \"=f8\", }\n"))

    bad("cut after the magic", b"\x93NUMPY\1\0", "does not begin")
    bad("version 4", npy_of(order, version=b"\4\0"), "version 4.0")
    bad("version 1.1", npy_of(order, version=b"\1\1"), "version 1.1")
    bad("a header longer than the file", npy(X)[:30], "ends within")
    bad("a header of 2^32-1 bytes", b"\x93NUMPY\2\0\xff\xff\xff\xff{}", "ends within")
    bad("a header too long", npy_of("{" + " " * 12000 + "}"), "10000")
    bad("a NUL in the header", npy_of(order + "\0"), "NUL")
    for name, text, expected in (
            ("not a dictionary", "[]", "expected '{'"), ("nothing", "", "expected '{'"),
            ("unclosed", order[:-1], "expected ',' or '}'"),
            ("more after it", order + "x", "expected nothing more"),
            ("an empty dictionary", "{}", "lacks"),
            ("without shape", "{'descr': '<f8', 'fortran_order': False}", "lacks"),
            ("an unknown member", order[:-1] + ", 'x': 1}", "unknown member"),
            ("a member twice", order[:-1] + ", 'descr': '<f8'}", "unknown member"),
            ("an unquoted key", "{descr: '<f8'}", "expected a string"),
            ("an unclosed string", "{'descr", "expected a string"),
            ("a key without value", "{'descr'}", "expected ':'"),
            ("an order that is no truth", order.replace("False", "Falsch"), "expected True"),
            ("a shape that is no tuple", order.replace("(2, 2)", "[2, 2]"), "expected '('"),
            ("a shape that is a number", order.replace("(2, 2)", "(4)"), "expected ','"),
            ("a negative size", order.replace("(2, 2)", "(-2, 2)"), "expected a size"),
            ("a size too large", order.replace("(2, 2)", "(99999999999999999999,)"), "a size"),
            ("a shape whose product overflows",
             order.replace("(2, 2)", "(4294967296, 4294967296)"), "do not fit"),
            ("too few bytes", order.replace("(2, 2)", "(2, 3)"), "do not fit the 32 bytes"),
            ("too many bytes", order.replace("(2, 2)", "(2,)"), "do not fit the 32 bytes")):
        bad("header: " + name, npy_of(text), expected)
    bad("65 axes", npy_of(order.replace("(2, 2)", "(" + "1, " * 65 + ")")), "64 dimensions",
        "tensor_too_deep", 422)
    for descr, reason in (("|O", "objects are not supported"), ("<i8", "Integral"), ("|b1", "Integral"),
                          ("<c16", "Complex"), ("|V2", "'|V2'"), ("<U3", "'<U3'"), ("<f16", "'<f16'"),
                          ("<M8[ns]", "'<M8[ns]'"), ("", "''"), ("f8", "'f8'")):
        bad("descr " + descr, npy_of(order.replace("<f8", descr)), reason, "dtype_unsupported", 422)
    bad("structured", npy(np.zeros(2, [("a", "<f8"), ("b", "<f4")])), "structured",
        "dtype_unsupported", 422)


# ---- .npz

def npz(save=np.savez, **arrays):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


class Unseekable(io.RawIOBase):
    """An unseekable file, for which zipfile writes data descriptors."""

    def __init__(self):
        self.bytes = b""

    def writable(self):
        return True

    def write(self, data):
        self.bytes += bytes(data)
        return len(data)


def zipped(*entries, method=zipfile.ZIP_STORED, stream=False, force_zip64=False, comment=b""):
    out = Unseekable() if stream else io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.comment = comment
        for name, content in entries:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=force_zip64) as file:
                file.write(content)
    return out.bytes if stream else out.getvalue()


def add_npz():
    both = (("input.npy", npy(X)), ("target.npy", npy(T)))

    def good(name, body, **more):
        add("npz", name, body, **more)

    def bad(name, body, detail, code="npz_malformed", status=400):
        add("npz", name, body, status, code, detail)

    good("numpy.savez", npz(input=X, target=T))
    good("numpy.savez_compressed", npz(np.savez_compressed, input=X, target=T))
    good("float32 big-endian and Fortran order", npz(input=X.astype(">f4"),
                                                     target=np.asfortranarray(T)))
    good("scalars", npz(input=X[0, 0], target=T[0, 0]),
         loss=float(T[0, 0] * (np.log(T[0, 0]) - X[0, 0])))
    good("empty", npz(input=np.zeros((3, 0)), target=np.zeros((3, 0))), loss=0.0)
    good("data descriptors", zipped(*both, stream=True))
    good("deflated, with data descriptors",
         zipped(*both, stream=True, method=zipfile.ZIP_DEFLATED))
    good("zip64", zipped(*both, force_zip64=True))
    good("indices in Fortran order, in the other byte order",
         npz(input=X, target=VALUES, indices=np.asfortranarray(NAMED.astype(">i4"))))
    good("a mask of bool and weights", npz(input=NAN_X, target=T, mask=MASK, weight=WEIGHT),
         loss=WEIGHED)
    good("a mask of uint8, in Fortran order",
         npz(input=NAN_X, target=T, mask=np.asfortranarray(MASK.astype("u1")), weight=WEIGHT),
         loss=WEIGHED)
    good("zip64, with data descriptors", zipped(*both, stream=True, force_zip64=True))
    good("a comment", zipped(*both, comment=b"made by hand"))

    whole = zipped(*both)
    bad("nothing", b"", "empty")
    bad("text", b"hello", "zip")
    bad("cut off", whole[:-30], "valid")
    bad("no directory", whole[:whole.index(b"PK\1\2")], "valid")
    broken = bytearray(whole)
    broken[whole.index(X.tobytes()) + 3] ^= 1
    bad("a wrong checksum", bytes(broken), "input.npy cannot be read")
    bad("only input", zipped(both[0]), "'target'", "tensor_missing", 422)
    bad("a mask of int64", npz(input=X, target=T, mask=MASK.astype("i8")),
        "mask: numpy's dtype '<i8' is not one of bool, uint8", "dtype_unsupported", 422)
    bad("an empty archive", zipped(), "'input'", "tensor_missing", 422)
    bad("another entry", zipped(*both, ("weights.npy", npy(T))), "'weights'", "tensor_unknown", 422)
    bad("an entry that is no .npy", zipped(("input.txt", b"x")), "'input.txt'", "tensor_unknown",
        422)
    bad("positional arrays", npz(arr_0=X),
        "'arr_0'", "tensor_unknown", 422)
    bad("a broken array", zipped(("input.npy", npy(X)[:-1]), both[1]), "input: the .npy header",
        "npy_malformed")
    bad("an entry of text", zipped(("input.npy", b"[1, 2]"), both[1]), "input: it does not begin",
        "npy_malformed")
    bad("an array of objects", zipped(("input.npy", npy_of(
        "{'descr': '|O', 'fortran_order': False, 'shape': ()}")), both[1]), "objects",
        "dtype_unsupported", 422)
    bad("seventeen entries", zipped(*(("a%d.npy" % i, b"") for i in range(17))), "too large")
    end = whole.rindex(b"PK\5\6")
    bad("a directory that claims 65,535 entries",
        whole[:end + 8] + b"\xff\xff\xff\xff" + whole[end + 12:], "too large")
    bad("a locator that leads nowhere",
        whole[:end] + b"PK\6\7" + struct.pack("<IQI", 0, 2**62, 1) + whole[end:], "too large")
    bomb = zipped(("input.npy", npy(np.zeros(3 << 17))), both[1], method=zipfile.ZIP_DEFLATED)
    bad("an entry that inflates past the limit", bomb, "larger than this server", "body_too_large",
        413)
    size = whole.index(b"PK\1\2") + 24
    bad("an entry that claims to be larger than it is",
        whole[:size] + struct.pack("<I", 900000) + whole[size + 4:], "valid")
    secret = bytearray(whole)
    for magic, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        secret[whole.index(magic) + at] |= 1
    bad("an encrypted entry", bytes(secret), "input.npy is encrypted")
    bad("an entry by another method", zipped(*both, method=zipfile.ZIP_BZIP2), "by method 12")
    bad("an entry twice", zipped(both[0], *both), "same name", "tensor_repeated")
    bad("an entry without .npy", zipped(("input", npy(X)), both[1]), "'input' is not the .npy",
        "tensor_unknown", 422)


# ---- multipart/form-data

def add_multipart():
    x, t = json.dumps(X.tolist()).encode(), json.dumps(T.tolist()).encode()
    both = (("input", x), ("target", t))

    def good(name, body, **more):
        add("multipart", name, body, **more)

    def bad(name, body, detail, code="multipart_malformed", status=400, **more):
        add("multipart", name, body, status, code, detail, **more)

    good("JSON", form(*both))
    good("JSON and .npy", form(both[0], ("target", npy(T))))
    good("options in parts", form(("reduction", b"sum"), *both), query="")
    good("a dtype after the tensors", form(*both, ("dtype", b"float64")))
    good("a mask and weights", form(*both, ("mask", npy(MASK)), ("weight", b"[0.5, 2]")),
         loss=WEIGHED)
    good("indices of JSON", form(both[0], ("target", npy(VALUES)), ("indices", b"[[1], [0.0]]"), ("tail", b"bin")))
    good("indices of .npy", form(both[0], ("target", b"[[0.6], [0.1]]"), ("indices", npy(NAMED))))
    good("a mask of JSON", form(*both, ("mask", b"[[true, 0], [1, 1]]"),
                                ("weight", npy(WEIGHT))), loss=WEIGHED)
    good("files with types", form(
        ("input", npy(X), "Content-Type: application/octet-stream"),
        ("target", t, "content-type: application/json", "Content-Transfer-Encoding: binary")))
    good("space around JSON", form(("input", b"\n" + x + b" \r\n"), both[1]))
    good("text before and after", b"preamble\r\n" + form(*both) + b"epilogue")
    good("space after a boundary", form(*both).replace(b"XyZ\r\n", b"XyZ \t\r\n"))
    good("a quoted boundary", form(*both).replace(b"XyZ", b"a b;c"),
         content_type='multipart/form-data; charset=utf-8; Boundary="a b;c"')
    good("a file name that looks like a parameter", form(*both).replace(
        b'form-data; name="input"', b'form-data; filename="a; name=\\"b\\""; name=input'))
    good("a boundary inside a part's bytes", form(("input", npy(X)), ("target", npy(T))).replace(
        b"XyZ", b"descr"), content_type="multipart/form-data; boundary=descr")

    bad("no boundary", form(*both), "no boundary", content_type="multipart/form-data")
    bad("an empty boundary", form(*both), "no boundary",
        content_type='multipart/form-data; boundary=""')
    bad("a boundary too long", form(*both), "no boundary",
        content_type="multipart/form-data; boundary=" + "x" * 71)
    bad("another boundary", form(*both), "not in the body",
        content_type="multipart/form-data; boundary=other")
    bad("nothing", b"", "not in the body")
    bad("no end", form(*both, end=False), "header of a part")
    bad("cut in a part", form(*both)[:-12], "no boundary ends")
    bad("cut in a header", form(*both)[:30], "header of a part")
    bad("cut in the first boundary", b"--Xy", "not in the body")
    bad("cut after the boundary", b"--XyZ", "expected a line end")
    bad("a part without a name", form(*both).replace(b'; name="input"', b""), "no name")
    bad("a part without Content-Disposition",
        form(*both).replace(b"Content-Disposition", b"Content-Position"), "no Content-Disposition")
    bad("a name that does not end", form(*both).replace(b'name="input"', b'name="input'), "no name")
    bad("base64", form(("input", x, "Content-Transfer-Encoding: base64"), both[1]),
        "Content-Transfer-Encoding")
    bad("BASE64", form(("input", npy(X), "Content-Transfer-Encoding: BASE64 "), both[1]),
        "Content-Transfer-Encoding")
    bad("an empty tensor part", form(("input", b""), both[1]), "input: the part is empty")
    bad("broken JSON", form(("input", b"[1, 2"), both[1]), "part input, line 1, column 6", "json_malformed")
    bad("JSON and more", form(("input", x + b"]"), both[1]), "follow", "json_malformed")
    bad("JSON with a NUL", form(("input", b"[1\0, 2]"), both[1]), "expected", "json_malformed")
    bad("ragged JSON", form(("input", b"[[1, 2], [3]]"), both[1]), "expected 2 elements",
        "tensor_ragged", 422)
    bad("a .npy cut off", form(("input", npy(X)[:-8]), both[1]), "input: the .npy header",
        "npy_malformed")
    bad("target missing", form(both[0]), "'target'", "tensor_missing", 422)
    bad("input twice", form(both[0], *both), "input: it is given twice", "tensor_repeated")
    bad("an unknown part that is a file", form(*both, ("inptu", npy(X))), "did you mean 'input'",
        "tensor_unknown", 422)
    bad("a name with a NUL", form(*both).replace(b'"input"', b'"input\0x"'), "no name")
    bad("an unknown part", form(*both, ("redution", b"sum")), "did you mean 'reduction'",
        "option_unknown", 422)
    bad("an option's value", form(*both, ("log_target", b"maybe")), "true or false",
        "option_invalid", 422)
    bad("an option twice", form(*both, ("reduction", b"mean")), "given twice", "option_conflict")
    bad("a long option", form(*both, ("reduction", b"s" * 2000)), "1024")
    bad("an option with a NUL", form(*both, ("reduction", b"sum\0")), "NUL")
    bad("a dtype that .npy contradicts", form(("input", npy(X)), both[1], ("dtype", b"float32")),
        "input: it is float64", "option_invalid", 422)


# ---- The Open Inference Protocol

def tensor(name, array=None, datatype=None, **more):
    """An input of a request; its data is JSON unless it is in the binary part."""
    names = {"f8": "FP64", "f4": "FP32", "f2": "FP16"}
    entry = {"name": name, "shape": list(array.shape),
             "datatype": datatype or names[array.dtype.str[1:]]}
    entry.update(more)
    return entry


def inference(*tensors, raw=b"", **members):
    text = json.dumps(dict(inputs=tensors, **members)).encode()
    return dict(body=text + raw, json_size=str(len(text)))


def add_inference():
    infer = "/v2/models/kl_div/infer"
    sizes = {"parameters": {"binary_data_size": 32}}
    x, t = tensor("input", X, data=X.ravel().tolist()), tensor("target", T, data=T.tolist())
    raw_x, raw_t = tensor("input", X, **sizes), tensor("target", T, **sizes)
    raw = X.tobytes() + T.tobytes()

    def good(name, request, **more):
        add("inference", name, path=more.pop("path", infer), **{**request, **more})

    def bad(name, request, detail, code="inference_malformed", status=400, **more):
        add("inference", name, status=status, code=code, detail=detail, path=infer,
            **{**request, **more})

    good("JSON, flat and nested", inference(x, t), json_size=None)
    good("JSON, of a length that says so", inference(x, t))
    good("JSON as octets", inference(x, t), json_size=None, content_type="application/octet-stream")
    good("a version in the path", inference(x, t), path="/v2/models/kl_div/versions/1/infer")
    good("binary", inference(raw_x, raw_t, raw=raw))
    good("binary, target first", inference(raw_t, raw_x, raw=T.tobytes() + X.tobytes()))
    good("binary without sizes",
         inference(tensor("input", X), tensor("target", T), raw=raw))
    good("binary and JSON", inference(x, raw_t, raw=T.tobytes()))
    good("unaligned", inference(raw_x, raw_t, raw=raw, id="1" * 3))
    good("at /kl_div", inference(raw_x, raw_t, raw=raw), path="/kl_div",
         content_type="application/octet-stream")
    bits = (X.astype("<f4").view("<u4") >> 16).astype("<u2")
    good("BF16", inference(tensor("input", X, "BF16"), raw_t, raw=bits.tobytes() + T.tobytes()))
    good("FP16", inference(tensor("input", X.astype("f2")), raw_t,
                           raw=X.astype("f2").tobytes() + T.tobytes()))
    good("gzip", inference(raw_x, raw_t, raw=raw), coding="gzip",
         body=gzip.compress(inference(raw_x, raw_t, raw=raw)["body"], mtime=0))
    good("null parameters, an empty id, a model's name",
         inference(x, t, parameters=None, id="", model_name="kl_div", outputs=None))
    good("what clients send beside", inference(x, t, parameters={
        "sequence_id": 1, "sequence_start": True, "sequence_end": False, "priority": 1,
        "timeout": 5, "binary_data_output": False}))
    good("options", inference(x, t, parameters={"reduction": "sum"}), query="")
    for value in ("input", "input,target", '["target"]', "[]"):
        good("gradient as '%s'" % value, inference(x, t, parameters={"gradient": value}))
    for value in ([0, 1], [ -1 , 0 ], "0,1", "[0, 1]"):
        good("dim as %r" % (value,), inference(x, t, parameters={
            "reduction": "none", "dim": value}), query="")
    good("lists as lists", inference(x, t, parameters={"gradient": ["input", "target"], "dim": []}))
    good("null parameters", inference(x, t, parameters={"gradient": None, "dim": None}))
    good("a gradient among the outputs", inference(x, t, outputs=[
        {"name": "loss"}, {"name": "gradient.target", "parameters": {"binary_data": False}}]))
    good("an upstream gradient", inference(
        x, t, dict(name="grad_output", shape=[], datatype="FP32", data=[2.0]),
        parameters={"gradient": "input"}))
    for value in (False, 0, "false", "0"):
        good("log_target as %r" % value, inference(x, t, parameters={"log_target": value}))
    good("log_target as a string", inference(x, tensor("target", T, data=np.log(T).tolist()),
                                             parameters={"log_target": "true"}))
    good("an output asked for", inference(x, t, outputs=[
        {"name": "loss", "parameters": {"binary_data": False}}]))
    good("scalars", inference(tensor("input", X[0, 0], data=[-1.0]),
                              tensor("target", T[0, 0], data=[0.4])),
         loss=float(T[0, 0] * (np.log(T[0, 0]) - X[0, 0])))
    good("empty tensors", inference(tensor("input", np.zeros((0, 2)), data=[]),
                                    tensor("target", np.zeros((0, 2)))), loss=0.0)

    values = tensor("target", VALUES, data=[0.6, 0.1])
    for datatype in ("INT32", "INT64"):
        raw_indices = NAMED.astype(datatype.lower()).tobytes()
        good("indices of %s in JSON" % datatype, inference(
            x, values, tensor("indices", NAMED, datatype, data=[1, 0])))
        good("indices of %s in bytes" % datatype, inference(
            x, values, tensor("indices", NAMED, datatype), parameters={"tail": "bin"}, raw=raw_indices))
        bad("a wrong index of %s" % datatype, inference(x, values, tensor("indices", NAMED, datatype, data=[1, -3])),
            "the index -3", "indices_invalid", 422)
    bad("an index that INT32 has not", inference(x, values, tensor("indices", NAMED, "INT32", data=[1, 2**31])),
        "an index must be a whole number", "element_invalid", 422)
    bad("indices of FP32", inference(x, values, tensor("indices", NAMED, "FP32", data=[1, 0])),
        "indices: datatype FP32 is not one of INT32, INT64", "dtype_unsupported", 422)
    weight = tensor("weight", WEIGHT, data=[0.5, 2])
    for datatype in ("BOOL", "UINT8"):
        good("a mask of %s in JSON" % datatype, inference(
            x, t, weight, tensor("mask", MASK, datatype, data=[True, False, 1, True])), loss=WEIGHED)
        good("a mask of %s in bytes" % datatype, inference(
            tensor("input", NAN_X), raw_t, weight, tensor("mask", MASK, datatype),
            raw=NAN_X.tobytes() + T.tobytes() + MASK.tobytes()), loss=WEIGHED)
    good("logits", inference(
        tensor("input", X, data=[3.0, 4.0, 0.0, 1.0]), t, parameters={
            "input_space": "logit", "temperature": 0.5, "diagnose": True, "broadcast": "false"}),
        loss=float((T * (np.log(T) - np.log([0.1192029220221175, 0.8807970779778823]))).sum()))
    bad("a mask of FP32", inference(x, t, tensor("mask", T, data=[1, 1, 1, 1])),
        "mask: datatype FP64 is not one of BOOL, UINT8", "dtype_unsupported", 422)
    bad("a mask of 2", inference(x, t, tensor("mask", MASK, "UINT8", data=[0, 1, 2, 1])),
        "an element of mask must be", "element_invalid", 422)

    whole = inference(raw_x, raw_t, raw=raw)
    for length in ("0", "-1", "+5", "abc", "", "1e2", "99999", "99999999999999999999999"):
        bad("a JSON length of '%s'" % length, whole, "Inference-Header-Content-Length",
            json_size=length)
    bad("a JSON length that is one less", whole, "line 1", "json_malformed",
        json_size=str(int(whole["json_size"]) - 1))
    bad("a JSON length that is one more", whole, "line 1", "json_malformed",
        json_size=str(int(whole["json_size"]) + 1))
    bad("no JSON length", whole, "need Inference-Header-Content-Length: line 1", "json_malformed",
        json_size=None)
    bad("nothing", dict(body=b"", json_size=None), "line 1", "json_malformed")
    bad("a byte missing", inference(raw_x, raw_t, raw=raw[:-1]), "target: shape and datatype")
    bad("a byte too many", inference(raw_x, raw_t, raw=raw + b"x"), "1 bytes of binary data")
    bad("a size that is wrong", inference(
        tensor("input", X, parameters={"binary_data_size": 31}), raw_t, raw=raw),
        "input: binary_data_size")
    bad("a size that is no number", inference(
        tensor("input", X, parameters={"binary_data_size": "32"}), raw_t, raw=raw),
        "input: binary_data_size")
    bad("sizes that overflow", inference(
        dict(name="input", datatype="FP64", shape=[2**32, 2**32]), raw_t, raw=raw),
        "input: shape and datatype")
    bad("not an object", dict(body=b"[]", json_size=None), "must be a JSON object",
        "body_not_object", 422)
    bad("no inputs", dict(body=b"{}", json_size=None), "array of inputs")
    bad("inputs not an array", dict(body=b'{"inputs": {}}', json_size=None), "array of inputs")
    bad("an input without a name", dict(body=b'{"inputs": [{}]}', json_size=None), "no name")
    bad("another input", inference(tensor("inputs", X, data=[1])), "did you mean 'input'",
        "tensor_unknown", 422)
    bad("input twice", inference(raw_x, raw_x, raw=X.tobytes() * 2), "given twice",
        "tensor_repeated")
    bad("only input", inference(x), "'target'", "tensor_missing", 422)
    for datatype in ("INT64", "BYTES", "BOOL", "fp32"):
        bad("datatype " + datatype, inference(tensor("input", X, datatype, data=[1]), t),
            "datatype " + datatype, "dtype_unsupported", 422)
    bad("no datatype", inference(dict(name="input", shape=[2])), "datatype", "dtype_unsupported",
        422)
    bad("no shape", inference(dict(name="input", datatype="FP32", data=[1, 2])), "input: shape")
    bad("a negative size", inference(dict(name="input", datatype="FP32", shape=[-1], data=[1])),
        "input: shape")
    bad("a shape that data does not fit", inference(dict(x, shape=[3]), t), "input, which holds 4",
        "shape_invalid", 422)
    bad("nested another way", inference(x, dict(t, shape=[4, 1])), "target, which holds 4",
        "shape_invalid", 422)
    bad("data that is no array", inference(dict(x, data=1.5), t), "data must be an array")
    good("null, which is NaN, under a mask", inference(
        tensor("input", NAN_X, data=[-1, None, -2, -0.25]), t, weight,
        tensor("mask", MASK, "BOOL", data=[True, False, True, True])), loss=WEIGHED)
    bad("null in a mask", inference(x, t, tensor("mask", MASK, "BOOL", data=[None, True, True, True])),
        "an element of mask must be", "element_invalid", 422)
    bad("data cut off", dict(body=inference(x, t)["body"][:90], json_size=None), "expected ','",
        "json_malformed")
    bad("shared memory", inference(tensor("input", X, parameters={"shared_memory_region": "r"}), t),
        "shared memory", "shared_memory_off")
    bad("another output", inference(x, t, outputs=[{"name": "lss"}]), "no output 'lss'",
        "output_unknown", 422)
    bad("a long parameter", inference(x, t, parameters={"base": "2" * 1025}), "longer than 1024", "json_malformed")
    bad("a list that is too long", inference(x, t, parameters={"dim": [0] * 600}),
        "dim must be distinct integers from -64 to 63", "dim_invalid", 422)
    bad("an object as a parameter", inference(x, t, parameters={"base": {"a": 1}}), '{"a": 1}',
        "base_invalid", 422)
    bad("a gradient of something else", inference(x, t, parameters={"gradient": "loss"}),
        "gradient must be", "option_invalid", 422)
    bad("an upstream gradient for nothing", inference(
        x, t, dict(name="grad_output", shape=[], datatype="FP32", data=[2.0])),
        "no gradient is requested", "option_invalid", 422)
    bad("an upstream gradient of another shape", inference(
        x, t, dict(name="grad_output", shape=[1], datatype="FP32", data=[2.0]),
        parameters={"gradient": "input"}), "shape of the loss", "shape_mismatch", 422)
    bad("an unknown parameter", inference(x, t, parameters={"reducton": "sum"}),
        "did you mean 'reduction'", "option_unknown", 422)
    bad("an option beside the parameters", inference(x, t, reduction="sum"),
        "and options into parameters", "option_unknown", 422)
    bad("parameters that are no object", inference(x, t, parameters=[1]), "parameters must be")
    bad("an id that is no string", inference(x, t, id=7), "id must be a string")
    bad("shapes that differ", inference(tensor("input", X[0], data=[-1.0, -0.5]), t), "[2, 2]",
        "shape_mismatch", 422)

    good("names that the path has, too", inference(x, t, model_name="kl_div", model_version="1"))
    good("no id", inference(x, t, id=None))
    good("KServe's empty tensors", inference(
        *(dict(name=name, shape=[0, 2], datatype="FP64", data=None,
               parameters={"binary_data_size": 0}) for name in ("input", "target"))), loss=0.0)
    good("content types of MLServer", inference(
        dict(x, parameters={"content_type": "np"}), t, parameters={"content_type": "np"}))
    good("reserved parameters of Triton", inference(
        x, t, parameters={"triton_enable_empty_final_response": True}))
    good("a list of axes", inference(x, t, parameters={"dim": [0, -1]}))
    good("R's truth values", inference(x, t, parameters={"log_target": "FALSE", "broadcast": "T"}))
    bad("another model's name", inference(x, t, model_name="bert"),
        "unknown model 'bert': this server has kl_div (at #/model_name)")
    bad("another version", inference(x, t, model_version="2"), "(at #/model_version)")
    bad("an unknown member of an input", inference(dict(x, dtype="FP64"), t),
        "datatype, parameters and data (at #/inputs/0/dtype)")
    bad("a datatype in its place", inference(x, dict(t, datatype="INT32")),
        "(at #/inputs/1/datatype)", "dtype_unsupported", 422)
    bad("an element in its place", inference(x, dict(t, data=[0.4, 0.6, "x", 0.9])),
        "(at #/inputs/1/data/2)", "element_invalid", 422)
    bad("a name in its place", inference(x, dict(t, name="tarpet")),
        "(at #/inputs/1/name)", "tensor_unknown", 422)
    good("data by an escaped name", dict(json_size=None, body=inference(t, x)["body"].replace(
        b'"data"', b'"d\\u0061ta"')))
    good("arrays called data elsewhere", inference(
        t, x, parameters={"headers": [{"data": [-7]}, {"data": [0.5]}]}))
    for junk in (b"x", b"[2]", b" /* 2 */"):
        bad("%s after data" % junk.decode(), dict(json_size=None, body=inference(x, t)["body"].replace(
            b"-0.25]", b"-0.25]" + junk)), "expected ',' or '}'", "json_malformed")
    good("many arrays called data elsewhere", inference(t, x, parameters={"headers": [{"data": [-7]}] * 5}))
    bad("an index for data", inference(
        t, dict(x, data=None), parameters={"headers": [[0]]}), "neither data nor binary_data_size")
    bad("input twice, in its place", inference(x, x, t), "(at #/inputs/1/name)", "tensor_repeated")
    bad("an unknown member of an output", inference(x, t, outputs=[{"name": "loss", "foo": 1}]),
        "(at #/outputs/0/foo)")
    bad("gradient as ''", inference(x, t, parameters={"gradient": ""}),
        "gradient must be a list of operands, not ''; it takes input, target", "option_invalid", 422)
    bad("a classification", inference(
        x, t, outputs=[{"name": "loss", "parameters": {"classification": 3}}]),
        "(at #/outputs/0/parameters/classification)")
    bad("neither data nor a size", inference(x, tensor("target", T)),
        "target: it has neither data nor binary_data_size (at #/inputs/1)")


# ---- Tables: seeds alone

def table_seeds():
    """Yields fuzzer and body. The first byte of those of `table` selects the format, 4 one column."""
    for text in ("a,b\n1,2\n3,x\n", "a;b\r\n1,5;\"x;\"\"y\"\r\n\r\n", "a\n1\n\n\"\"\n", "a\tb\n\"x\ny\"\t1e5\n",
                 "\ufeff\"a\",\u6c34\n+.5,007\n inf ,-1e-5\n", ",\n,\n", "a;b\n1.5;2\n"):
        yield "csv", text.encode()
    for text in ('{"columns": {"a": [1, NaN, null], "b": ["x", "\\u00e9", true]}, "window": "batch"}',
                 '{"rows": [{"a": 1, "b": -Infinity}, {"b": "\\ud83d\\ude00"}, {}]}',
                 '{"values": [1, 2.5e-3, "x"], "bins": {"edges": [0, 1]}}',
                 '{"reference": {"values": [1, 2], "n": 2}, "thresholds": {"warning": 0.1}}'):
        yield "table", b"\0" + text.encode()
        yield "table", b"\4" + text.encode()
    arrays = dict(a=np.arange(3.0), b=np.arange(3, dtype=">i2"), c=np.array(["x", "\u6c34", ""]),
                  d=np.array([True, False, True]))
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, **arrays)
        yield "table", b"\1" + file.getvalue()
    yield "table", b"\2" + safetensors(dict(a=np.arange(3.0), b=np.array([True, False, True])))


add_safetensors()
add_npy()
add_npz()
add_multipart()
add_inference()
if len(sys.argv) == 2:
    for i, row in enumerate(ROWS):
        body = base64.b64decode(row["body"])
        fuzzer = {"npy": "multipart"}.get(row["format"], row["format"])
        if row["format"] == "inference":
            body = min(int(row["json_size"] or len(body)), 65535).to_bytes(2, "little") + body \
                if (row["json_size"] or "0").isdigit() and len(body) < 65536 else b"\0\0" + body
        if row["coding"]:
            fuzzer = "inflate"
            body = (b"\1" if "gzip" in row["coding"] else b"\0") + body
        folder = os.path.join(sys.argv[1], fuzzer)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "%03d" % i), "wb") as file:
            file.write(body)
    for i, (fuzzer, body) in enumerate(table_seeds()):
        os.makedirs(os.path.join(sys.argv[1], fuzzer), exist_ok=True)
        with open(os.path.join(sys.argv[1], fuzzer, "%03d" % i), "wb") as file:
            file.write(body)
else:
    for row in ROWS:
        print(json.dumps(row))
