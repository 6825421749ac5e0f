"""Spark: each partition of a DataFrame gives a partial result, or counts, by mapInPandas; these merge on the driver. The
executors need the package: its wheel has the library.

Spark is not in Debian: the functions that it is given are tested by its documented calling convention, an iterator of
pandas' DataFrames in, an iterator of them out."""
from __future__ import annotations

import pickle
from typing import Any, Callable, Iterator

import numpy as np

from ._partial import Partial
from .counts import count
from .group import Group
from .loss import partial as partial_of
from .results import Results

SCHEMA = "part binary"
MapFunction = Callable[[Iterator[Any]], Iterator[Any]]


def _row(part: Any) -> Any:
    import pandas
    return pandas.DataFrame({"part": [pickle.dumps(part)]})


def counter(configs: list[dict[str, Any]]) -> MapFunction:
    """What mapInPandas calls to count a partition for monitors of these configs."""
    def of_partition(frames: Iterator[Any]) -> Iterator[Any]:
        yield _row(count(configs, frames))
    return of_partition


def partial_of_rows(input: str, target: str, options: dict[str, Any]) -> MapFunction:
    """What mapInPandas calls for the partial result of a partition: rows hold arrays of equal length."""
    def of_partition(frames: Iterator[Any]) -> Iterator[Any]:
        total = Partial()
        for frame in frames:
            if len(frame):
                total = total + partial_of(np.stack(frame[input].to_list()), np.stack(frame[target].to_list()), **options)
        yield _row(total)
    return of_partition


def _collect(frame: Any, function: MapFunction) -> list[Any]:
    return [pickle.loads(row["part"]) for row in frame.mapInPandas(function, SCHEMA).collect()]


def observe(group: Group, frame: Any, timestamp: Any = None, **arguments: Any) -> Results:
    """group.observe of a DataFrame of Spark: a column for each monitor."""
    return group.observe(sum(_collect(frame, counter(group.monitors()))), timestamp, **arguments)


def partial(frame: Any, input: str = "input", target: str = "target", **options: Any) -> Partial:
    """The partial result of two columns of arrays; each row of the frame is one of the loss, so `dim` is -1 if nothing
    else is said."""
    return Partial().merge(*_collect(frame, partial_of_rows(input, target, {"dim": -1, **options})))
