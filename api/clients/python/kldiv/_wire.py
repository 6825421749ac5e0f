"""Tensors as bytes: safetensors, and the binary form of the Open Inference Protocol. Little-endian machines only."""
from __future__ import annotations

import ctypes
import json
from typing import Any, Mapping, Sequence

import numpy as np

from . import _arrays
from ._arrays import Array
from ._library import DTYPE_NAMES
from ._transport import Buffer

SAFETENSORS = "application/vnd.safetensors"
TYPES = ("F64", "F32", "F16", "BF16")  # in the order of the library's dtypes
SIZES = (8, 4, 2, 2)
INFERENCE_TYPES = ("FP64", "FP32", "FP16", "BF16")


def bytes_of(array: Array, size: int) -> memoryview:
    """The array's memory, which the array must outlive."""
    return memoryview((ctypes.c_ubyte * size).from_address(array.pointer)).cast("B") if size else memoryview(b"")


def element_size(name: str, array: Array) -> int:
    return 1 if name == "mask" else (8 if _arrays.is_wide(array) else 4) if name == "indices" else SIZES[array.dtype]


def type_name(name: str, array: Array, types: Sequence[str]) -> str:
    """The type of a tensor's elements, of which `types` are the numbers."""
    if name == "indices":
        return ("INT" if types is INFERENCE_TYPES else "I") + ("64" if _arrays.is_wide(array) else "32")
    return "BOOL" if name == "mask" else types[array.dtype]


def size_of(name: str, array: Array) -> int:
    return int(np.prod(array.shape, dtype=np.int64)) * element_size(name, array)


def safetensors(tensors: Mapping[str, Array]) -> list[Buffer]:
    """A file of these tensors: its header, then their memory as it is. `mask` is of booleans, `indices` of integers."""
    header, parts, end = dict[str, Any](), list[Buffer](), 0
    for name, array in tensors.items():
        begin, end = end, end + size_of(name, array)
        header[name] = {"dtype": type_name(name, array, TYPES), "shape": list(array.shape),
                        "data_offsets": [begin, end]}
        parts.append(bytes_of(array, end - begin))
    return [safetensors_header(header), *parts]


def safetensors_header(header: Mapping[str, Any]) -> bytes:
    """Padded, so that the data are aligned to 8 bytes."""
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def array_from(data: memoryview, dtype: int, shape: list[int], as_tensor: bool) -> Any:
    """An array of these bytes, its own; bfloat16 is float32 where there is no PyTorch."""
    if as_tensor:
        torch = _arrays.torch_module()
        kind = getattr(torch, DTYPE_NAMES[dtype])
        return torch.frombuffer(bytearray(data), dtype=kind).reshape(shape) if data else torch.empty(shape, dtype=kind)
    if dtype == _arrays.BFLOAT16:
        widened = np.frombuffer(data, "<u2").astype("<u4") << 16
        return widened.view("<f4").reshape(shape)
    return np.frombuffer(data, "<f" + str(SIZES[dtype])).reshape(shape).copy()


def read_safetensors(body: bytes, as_tensor: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """The tensors, and the metadata."""
    size = int.from_bytes(body[:8], "little")
    header = json.loads(body[8:8 + size])
    metadata: dict[str, str] = header.pop("__metadata__", {})
    data = memoryview(body)[8 + size:]
    return {name: array_from(data[slice(*entry["data_offsets"])], TYPES.index(entry["dtype"]), entry["shape"], as_tensor)
            for name, entry in header.items()}, metadata


def read_inference(body: bytes, json_size: int, as_tensor: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """The outputs of a binary inference response, and its parameters."""
    header, data, tensors = json.loads(body[:json_size]), memoryview(body)[json_size:], {}
    for output in header["outputs"]:
        size = output["parameters"]["binary_data_size"]
        tensors[output["name"]] = array_from(data[:size], INFERENCE_TYPES.index(output["datatype"]), output["shape"],
                                             as_tensor)
        data = data[size:]
    return tensors, header.get("parameters", {})
