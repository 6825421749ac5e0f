"""Tables in memory as they travel."""
from __future__ import annotations

import io
import json
import math
import zipfile
from typing import Any, Collection

import numpy as np

from . import _wire
from ._transport import Body, Buffer
from .columns import Column, Columns, as_texts, is_numeric

MAX_ENTRY = 1000  # bytes of a name in an archive
TABLE_TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bool": "BOOL", "int8": "I8", "int16": "I16",
               "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64"}


def as_list(column: Column) -> list[Any]:
    values = column.tolist() if isinstance(column, np.ndarray) else column
    return [None if isinstance(v, float) and math.isnan(v) else "Infinity" if v == math.inf else
            "-Infinity" if v == -math.inf else v for v in values]


def as_json(columns: Columns) -> tuple[str, Body]:
    """The media type and body of any table."""
    return "application/json", [json.dumps({"columns": {name: as_list(c) for name, c in columns.items()}}).encode()]


def compact(columns: Columns, labels: Collection[str] | None) -> tuple[str, Body] | None:
    """Safetensors of the arrays where they lie, or .npz if there are texts. None if there are values of several types,
    missing texts where the empty one is among the monitors' labels, or names that archives cannot have. In a reference,
    without labels, booleans may be texts."""
    if all(is_numeric(column) for column in columns.values()):
        return _wire.SAFETENSORS, encode_arrays(columns)
    texts = {name: column if is_numeric(column) else as_texts(column, labels is None) for name, column in columns.items()}
    if "" in (labels or ()) or any(column is None or not 0 < len(name.encode(errors="replace")) < MAX_ENTRY or "\0" in name
                                   for name, column in texts.items()):
        return None
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, column in texts.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, column, allow_pickle=False)  # type: ignore[no-untyped-call]
    return "application/x-npz", [file.getbuffer()]


def encode_reference(columns: Columns) -> tuple[str, Body]:
    return compact(columns, None) or as_json(columns)


def encode_arrays(columns: Columns) -> list[Buffer]:
    header, parts, end = dict[str, Any](), list[Buffer](), 0
    for name, column in columns.items():
        array = np.asarray(column)
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": TABLE_TYPES[array.dtype.name], "shape": [len(array)], "data_offsets": [begin, end]}
        parts.append(array.view(np.uint8).data)
    return [_wire.safetensors_header(header), *parts]
