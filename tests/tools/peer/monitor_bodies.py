"""Tables of values as the bodies that monitors read."""
import io
import json
import math
import struct

import numpy as np

from monitor_oracle import MISSING_TEXTS

INFINITIES = {math.inf: ["inf", "Inf", "Infinity", "1e999"],
              -math.inf: ["-inf", "-Infinity", "-1e999"]}


def json_value(value):
    """As json.dumps takes it: non-finite numbers become bare tokens there."""
    return bool(value) if isinstance(value, np.bool_) else value


def as_columns(rng, table):
    return json.dumps({"columns": {name: [json_value(v) for v in values]
                                   for name, values in table.items()}}), "application/json"


def as_rows(rng, table):
    rows = [dict(zip(table, map(json_value, row))) for row in zip(*table.values())]
    for row in rows:
        for name in [name for name, value in row.items() if value is None and rng.random() < 0.5]:
            if len(row) > 1 and row is not rows[0]:
                del row[name]
    return json.dumps({"rows": rows}), "application/json"


def field_of(rng, value, comma):
    if value is None or isinstance(value, float) and math.isnan(value):
        return rng.choice(MISSING_TEXTS)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if math.isinf(value):
        return rng.choice(INFINITIES[value])
    text = rng.choice([repr(value), f"{value:.17g}", f"{value:.17e}"])
    return text.replace(".", ",") if comma else text


def as_csv(rng, table):
    """Quoted where it must be and sometimes where it need not."""
    separator = rng.choice([",", ";", "\t"])
    texts = [v for values in table.values() for v in values if isinstance(v, str)]
    comma = len(table) > 1 and separator == ";" and rng.random() < 0.5
    comma = comma and not any("." in text for text in texts)
    end = rng.choice(["\n", "\r\n"])
    rows = [list(table)] + [[field_of(rng, v, comma) for v in row] for row in zip(*table.values())]
    lines = []
    for row in rows:
        fields = []
        for field in row:
            if any(c in field for c in ',;\t"\r\n') or field != field.strip() or rng.random() < 0.1:
                field = '"' + field.replace('"', '""') + '"'
            fields.append(field)
        lines.append(separator.join(fields))
    body = end.join(lines) + end * (len(table) == 1 and lines[-1] == "" or rng.random() < 0.8)
    return "\ufeff" * (rng.random() < 0.2) + body, rng.choice(["text/csv", None])


def array_of(rng, values):
    """An array of numbers, booleans or texts; None if numpy has none for them."""
    if all(isinstance(v, (bool, np.bool_)) for v in values):
        return np.array(values, dtype=bool)
    if all(isinstance(v, str) or v is None for v in values):
        return np.array([v or "" for v in values], dtype=str)
    if any(isinstance(v, (bool, np.bool_, str)) for v in values):
        return None
    array = np.array([math.nan if v is None else v for v in values], dtype=float)
    for dtype in rng.sample(["int64", "float32", ">f8", "<f2", "int8"], 5):
        with np.errstate(all="ignore"):
            other = array.astype(dtype)
            if np.array_equal(other.astype(float), array, equal_nan=True) and dtype != "int64":
                return other
            if dtype == "int64" and np.all(np.abs(array) < 2**52) and np.array_equal(other, array):
                return other
    return array


def arrays_of(rng, table):
    arrays = {name: array_of(rng, values) for name, values in table.items()}
    return None if any(a is None for a in arrays.values()) else arrays


def as_npz(rng, table):
    arrays = arrays_of(rng, table)
    if arrays is None:
        return None
    body = io.BytesIO()
    rng.choice([np.savez, np.savez_compressed])(body, **arrays)
    return body.getvalue(), "application/x-npz"


def as_safetensors(rng, table):
    arrays = arrays_of(rng, table)
    if arrays is None or any(a.dtype.kind == "U" for a in arrays.values()):
        return None
    names = {"b": "BOOL", "i": "I", "f": "F"}
    header, data = {}, b""
    for name, array in arrays.items():
        array = array.astype(array.dtype.newbyteorder("<"))
        dtype = names[array.dtype.kind] + str(8 * array.itemsize) * (array.dtype.kind != "b")
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data, "application/vnd.safetensors"


FORMATS = [as_columns, as_rows, as_csv, as_npz, as_safetensors]


def encode(rng, table):
    """A random body of a table, and its Content-Type."""
    while True:
        made = rng.choice(FORMATS)(rng, table)
        if made:
            body, content_type = made
            return body.encode() if isinstance(body, str) else body, content_type
