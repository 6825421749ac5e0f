"""Arrays as the library reads them: dense, row-major, in this machine's byte order. Those that are so already are read
where they lie: numpy's and memory maps, PyTorch's on the CPU, and whatever has the buffer protocol, __array__ or
__dlpack__. Others are copied."""
from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy as np

from ._library import DTYPE_NAMES, DTYPES

BFLOAT16 = DTYPES["bfloat16"]
INDEX_DTYPES = ("int32", "int64")


@dataclass(frozen=True)
class Array:
    """What the library is told of an array. `value` keeps its memory."""

    dtype: int
    shape: tuple[int, ...]
    pointer: int
    value: Any


def torch_module() -> Any:
    """PyTorch, if the program uses it: a tensor can only come from there."""
    return sys.modules.get("torch")


def is_tensor(value: object) -> bool:
    torch = torch_module()
    return torch is not None and isinstance(value, torch.Tensor)


def is_learned(value: object) -> bool:
    """Would a gradient by it be expected?"""
    if not is_tensor(value):
        return False
    torch: Any = torch_module()
    has_tangent = torch.autograd.forward_ad.unpack_dual(value).tangent is not None  # forward mode, which is refused
    return has_tangent or bool(value.requires_grad and torch.is_grad_enabled())  # type: ignore[attr-defined]


def refuse_learned(**values: object) -> None:
    for name, value in values.items():
        if is_learned(value):
            raise ValueError(f"{name} requires a gradient, which kldiv.kl_div gives and this call does not: take "
                             f"{name}.detach()")


def is_pandas(value: object) -> bool:
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, (pandas.DataFrame, pandas.Series))


def as_numpy(value: Any) -> np.ndarray[Any, Any]:
    value = resolved(value).numpy() if is_tensor(value) else value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("the mask of a numpy.ma array is not read: give array.data, and mask=~array.mask, where True counts")
    if is_pandas(value):
        dtypes = list(value.dtypes) if value.ndim == 2 else [value.dtype]
        if dtypes and all(getattr(dtype, "kind", "") == "f" for dtype in dtypes):  # also pandas' own, with NA
            dtypes = [getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype)) for dtype in dtypes]
            return np.asarray(value.to_numpy(dtype=np.result_type(*dtypes), na_value=np.nan))
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def unsupported(name: str) -> TypeError:
    kind = "Complex" if "complex" in name else "Integral"
    what = f"kl_div: {kind} inputs not supported. " if "complex" in name or "int" in name or "bool" in name else ""
    return TypeError(f"{what}The dtype is {name}; float64, float32, float16 and bfloat16 are taken")


def resolved(tensor: Any) -> Any:
    """Dense memory: what is the negative or the conjugate of it, or zeros without it, is written out."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return tensor.clone() if tensor.numel() and not tensor.data_ptr() else tensor


def read_tensor(tensor: Any, dtypes: Sequence[str]) -> Array:
    if tensor.device.type != "cpu":
        raise TypeError(f"the tensor is on {tensor.device}: kldiv computes on the CPU, take tensor.cpu()")
    name = str(tensor.dtype).replace("torch.", "")
    if name not in dtypes:
        raise unsupported(name)
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"the tensor's layout is {tensor.layout}: take tensor.to_dense()")
    try:
        tensor = resolved(tensor)
        return Array(DTYPES.get(name, 0), tuple(tensor.shape), tensor.data_ptr(), tensor)
    except RuntimeError as error:
        raise TypeError("the tensor has no memory of its own, as under vmap and other transforms of functions: call kl_div "
                        "outside of them, which takes any number of axes, or torch's") from error


def read(value: Any) -> Array:
    """An operand, weight or upstream gradient."""
    if is_tensor(value):
        return read_tensor(value, DTYPE_NAMES)
    array = as_numpy(value)
    if isinstance(value, (list, tuple, int)) and array.dtype.kind in "iu":  # as JSON, whose numbers are doubles
        array = array.astype(np.float64)
    if array.dtype.name not in DTYPES:
        raise unsupported(array.dtype.name)
    array = np.require(array, array.dtype.newbyteorder("="), "C")
    return Array(DTYPES[array.dtype.name], array.shape, array.ctypes.data, array)


def read_indices(value: Any) -> Array:
    """Positions of elements in their rows. int32 and int64 are read where they lie; other integers become int64. Those of
    uint64 from 2^63 on become negative, and are an error, but 2^64 - 1, which becomes -1 and is padding."""
    if is_tensor(value):
        name = str(value.dtype).replace("torch.", "")
        check_integers(name)
        return read_tensor(value if name in INDEX_DTYPES else value.to(torch_module().int64), INDEX_DTYPES)
    array = as_numpy(value)
    check_integers(array.dtype.name)
    array = np.require(array, array.dtype.newbyteorder("=") if array.dtype.name in INDEX_DTYPES else np.int64, "C")
    return Array(0, array.shape, array.ctypes.data, array)


def is_wide(indices: Array) -> bool:
    return "int64" in str(indices.value.dtype)


def check_integers(dtype: str) -> None:
    if not dtype.startswith(("int", "uint")):
        raise TypeError(f"indices are integers, not {dtype}: topk() gives values first, indices second")


def read_mask(value: Any) -> Array:
    """Booleans, or integers that are 0 and 1."""
    if is_tensor(value):
        torch = torch_module()
        if value.dtype != torch.bool:
            check_mask(str(value.dtype).replace("torch.", ""), lambda: (value != 0) & (value != 1), value)
        return read_tensor(value.to(torch.bool), ["bool"])
    array = as_numpy(value)
    if array.dtype != bool and array.size:
        check_mask(array.dtype.name, lambda: (array != 0) & (array != 1), array)
    array = np.require(array, np.bool_, "C")
    return Array(0, array.shape, array.ctypes.data, array)


def check_mask(dtype: str, find: Callable[[], Any], values: Any) -> None:
    wrong = find() if dtype.startswith(("int", "uint")) else None
    if wrong is None or bool(wrong.any()):
        held = dtype if wrong is None else f"the number {values[wrong].ravel()[0]}"
        raise TypeError(f"the mask holds {held}: it takes booleans, or integers that are 0 and 1, where 1 or True counts and 0 "
                        "or False is left out; for labels with an ignore_index it is labels != ignore_index")


def empty(shape: tuple[int, ...], dtype: int, like: Sequence[Array]) -> Array:
    """A new array: a tensor if one of `like` is."""
    if any(is_tensor(array.value) for array in like):
        torch = torch_module()
        tensor = torch.empty(shape, dtype=getattr(torch, DTYPE_NAMES[dtype]))
        return Array(dtype, shape, tensor.data_ptr(), tensor)
    # numpy has no bfloat16 of its own: it is that of the operand (ml_dtypes).
    kind = next(a.value.dtype for a in like if a.dtype == BFLOAT16) if dtype == BFLOAT16 else DTYPE_NAMES[dtype]
    array = np.empty(shape, kind)
    return Array(dtype, shape, array.ctypes.data, array)
