"""Dask: each block or file gives a partial result, or counts, where it is; these merge, and kilobytes travel. A part whose
worker is lost is computed again, to the same bits. The workers need the package: its wheel has the library."""
from __future__ import annotations

from typing import Any, Sequence

import dask
import numpy as np

from ._partial import Partial
from .counts import TableCounts, count
from .group import Group
from .loss import partial as partial_of
from .results import Results

FAN_IN = 16  # parts that are added at once


def _block(input: Any, target: Any, options: dict[str, Any]) -> Any:
    """The partial result of a block, as an array of one object."""
    result = np.empty((1,) * input.ndim, object)
    result.flat[0] = partial_of(input, target, **options)
    return result


def _file(path: str, input: str, target: str, options: dict[str, Any]) -> Partial:
    with np.load(path) as arrays:
        return partial_of(arrays[input], arrays[target], **options)


def _sum(parts: Sequence[Any]) -> Any:
    return sum(part.flat[0] if isinstance(part, np.ndarray) else part for part in parts)


def _tree(parts: list[Any]) -> Any:
    """The sum of delayed parts, FAN_IN at a time."""
    while len(parts) > 1:
        parts = [dask.delayed(_sum)(parts[i:i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


def partial(input: Any, target: Any, **options: Any) -> Any:
    """The partial result of Dask arrays, after .compute(). Blocks divide the first axis alone, at multiples of kldiv.step
    of their numpy arrays."""
    import dask.array as da
    blocks = da.map_blocks(_block, input, target, options, dtype=object,
                           chunks=((1,) * input.numblocks[0],) + ((1,),) * (input.ndim - 1))
    return dask.delayed(_sum)([_tree(blocks.to_delayed().ravel().tolist())])


def partial_files(paths: Sequence[str], input: str = "input", target: str = "target", **options: Any) -> Any:
    """The same of .npz files that hold two arrays of these names, which the workers can read."""
    return _tree([dask.delayed(_file)(path, input, target, options) for path in paths])


def observe(group: Group, data: Any, timestamp: Any = None, **arguments: Any) -> Results:
    """group.observe of a Dask DataFrame, or of a list of delayed tables or paths, which the workers can read."""
    parts = data.to_delayed() if hasattr(data, "to_delayed") else list(data)
    configs = dask.delayed(group.monitors())
    counts: TableCounts = _tree([dask.delayed(count)(configs, part) for part in parts]).compute()
    return group.observe(counts, timestamp, **arguments)
