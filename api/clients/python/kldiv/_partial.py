"""Partial results, which merge over processes."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from . import _arrays, _library
from ._call import word


class Partial:
    """What shards of a call add up to, by + or sum(), in any order and exactly. Partial() is that of nothing, and has no dtype
    of its own: None.

    It may be pickled, and sent to processes with the same library."""

    def __init__(self, state: bytes | None = None, dtype: str | None = None) -> None:
        size = _library.struct_size(_library.PARTIAL)
        if state is not None and (not isinstance(state, bytes) or len(state) != size):
            raise ValueError("a partial result of another version of libkldiv, or none")
        self.state, self.dtype = state or bytes(size), dtype

    def _buffer(self) -> Any:
        return ctypes.create_string_buffer(self.state, len(self.state))

    def __add__(self, other: object) -> Partial:
        if isinstance(other, int) and other == 0:  # sum() begins with it
            return self
        if not isinstance(other, Partial):
            return NotImplemented
        kl, state = _library.load(), self._buffer()
        kl.kl_partial_merge(state, other._buffer())
        codes = [_library.DTYPES[p.dtype] for p in (self, other) if p.dtype]
        return Partial(state.raw, _library.DTYPE_NAMES[kl.kl_dtype_promote(codes[0], codes[-1])] if codes else None)

    __radd__ = __add__

    def merge(self, *others: Partial) -> Partial:
        """This and the others together."""
        merged = self
        for other in others:
            merged = merged + other
        return merged

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partial) and (self.state, self.dtype) == (other.state, other.dtype)

    def __hash__(self) -> int:
        return hash(self.state)

    def __reduce__(self) -> tuple[type[Partial], tuple[bytes, str | None]]:
        return Partial, (self.state, self.dtype)

    def __repr__(self) -> str:
        return f"<kldiv.Partial of {self.divisor('mean')[0]:g} losses, sum {self.sum()[0]:g}>"

    def loss(self, reduction: str = "mean", dtype: str | None = None) -> Any:
        """The loss of all that was added, in its dtype or another. bfloat16, which numpy lacks, comes as float32."""
        name = np.dtype(dtype).name if dtype and dtype != "bfloat16" else dtype or self.dtype or "float16"
        if name not in _library.DTYPES:
            raise _arrays.unsupported(name)
        loss = _library.load().kl_partial_loss(self._buffer(), self._reduction(reduction), _library.DTYPES[name])
        return np.dtype("float32" if name == "bfloat16" else name).type(loss)

    def _pair(self, of: Any, *arguments: int) -> tuple[float, float]:
        pair = (ctypes.c_double * 2)()
        of(self._buffer(), *arguments, pair)
        return pair[0], pair[1]

    def sum(self) -> tuple[float, float]:
        """The sum as two numbers, as partial=true of the service gives it; so does divisor()."""
        return self._pair(_library.load().kl_partial_sum)

    def divisor(self, reduction: str = "mean") -> tuple[float, float]:
        return self._pair(_library.load().kl_partial_divisor, self._reduction(reduction))

    @staticmethod
    def _reduction(name: str) -> int:
        if name == "none":
            raise ValueError("a partial result has no losses of single rows: reduction is mean, batchmean or sum")
        return word(_library.REDUCTIONS, "reduction", name)
