"""Counts of columns in the bins of monitors, as the service counts: what a table of any size becomes before it travels."""
from __future__ import annotations

import collections
import copy
import math
from typing import Any

import numpy as np

from . import _library
from .columns import Column, Columns
from .sources import Progress, batches

MISSING = ("", "NaN", "NA", "null", "None")
INFINITIES = {"Infinity": "Infinity", "Inf": "Infinity", "-Infinity": "-Infinity", "-Inf": "-Infinity"}
SPELLINGS = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))
DTYPES = {"float64": 0, "float32": 1, "float16": 2}


def decimal_text(number: float) -> str:
    """A number as a label: the shortest decimal, whole numbers without a point."""
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    text = repr(float(number)).replace("e+", "e").replace("e-0", "e-")
    return "0" if number == 0 else text[:-2] if text.endswith(".0") else text


def parse_number(text: str) -> float:
    """A field of CSV as a number; NaN if it is none."""
    try:
        return float(text) if "_" not in text else math.nan
    except ValueError:
        return math.nan


class Counts:
    """Counts of one monitor, given its config."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.name: str = config["name"]
        self.bins = bins = config["bins"]
        self.labels: list[str] | None = bins.get("labels")
        self.edges = None if self.labels is not None else np.array(bins["edges"], np.float64)
        n = len(self.labels) if self.labels is not None else len(bins["edges"]) + 2
        # Intervals: underflow, the intervals, overflow, missing. Labels: they, other, missing.
        self.counts = np.zeros(n + 2 if self.labels is not None else n, np.uint64)
        self.index = {label: i for i, label in enumerate(self.labels or [])}
        self.booleans = self._booleans()
        self.unreadable = 0  # texts for a monitor of numbers, which count as missing

    def _booleans(self) -> tuple[int | None, int | None]:
        """The labels that booleans have: true and false in one of three spellings."""
        for spelling in SPELLINGS:
            found = self.index.get(spelling[0]), self.index.get(spelling[1])
            if sum(i is not None for i in found) == (2 if len(self.index) > 1 else 1):
                return found
        return None, None

    def add(self, column: Column) -> None:
        if self.edges is not None:
            self._add_numbers(column)
        elif isinstance(column, np.ndarray):
            values, n = np.unique(column[~np.isnan(column)] if column.dtype.kind == "f" else column, return_counts=True)
            for value, count in zip(values.tolist(), n.tolist()):
                self.counts[self._bin(value)] += np.uint64(count)
            self.counts[-1] += np.uint64(len(column) - int(n.sum()))
        else:
            for value, count in collections.Counter((type(v), v) for v in column).items():
                self.counts[self._bin(value[1])] += np.uint64(count)

    def _add_numbers(self, column: Column) -> None:
        assert self.edges is not None
        if not isinstance(column, np.ndarray):
            numbers = np.array([math.nan if v is None else parse_number(v) if isinstance(v, str) else float(v)
                                for v in column])
            self.unreadable += sum(isinstance(column[i], str) and column[i] not in MISSING
                                   for i in np.flatnonzero(np.isnan(numbers)))
            column = numbers
        if column.dtype.name not in DTYPES:
            column = column.astype(np.float64)
        column = np.ascontiguousarray(column)
        _library.load().kl_bin_counts(self.edges.ctypes.data, len(self.edges) - 1, DTYPES[column.dtype.name],
                                         column.ctypes.data, len(column), self.counts.ctypes.data)

    def _bin(self, value: Any) -> int:
        """The bin of a value of a monitor of labels."""
        other, missing = len(self.index), len(self.index) + 1
        if isinstance(value, str):
            if value in self.index:
                return self.index[value]
            if value in MISSING:
                return missing
            if value.lower() in ("true", "false"):
                return self._boolean(value.lower() == "true", other)
            value = parse_number(value) if value not in INFINITIES else float(value)
        if value is None:
            return missing
        if isinstance(value, bool):
            exact = self.index.get("true" if value else "false")
            return exact if exact is not None else self._boolean(value, other)
        return other if math.isnan(value) else self.index.get(decimal_text(value), other)

    def _boolean(self, value: bool, other: int) -> int:
        found = self.booleans[value]
        return other if found is None else found

    def merge(self, other: Counts) -> None:
        if (self.name, self.bins) != (other.name, other.bins):
            raise ValueError(f"counts of {self.name} and {other.name} are in other bins")
        self.counts += other.counts
        self.unreadable += other.unreadable

    def total(self) -> int:
        return int(self.counts.sum())

    def body(self) -> dict[str, Any]:
        """Observations, as the service takes them."""
        counts = [int(count) for count in self.counts]
        if self.edges is None:
            return {"counts": counts[:-2], "other": counts[-2], "missing": counts[-1]}
        return {"underflow": counts[0], "counts": counts[1:-2], "overflow": counts[-2], "missing": counts[-1]}


class TableCounts:
    """Counts of a table, or a part of one, for the monitors of a group, given their configs. They may be pickled, and
    add up by +: group.observe() takes what they come to. No more than kilobytes travel, whatever the table's size."""

    def __init__(self, configs: list[dict[str, Any]]) -> None:
        self.monitors = {config["name"]: Counts(config) for config in configs}
        self.unknown: set[str] = set()

    def add(self, columns: Columns) -> None:
        for name, column in columns.items():
            if name in self.monitors:
                self.monitors[name].add(column)
            else:
                self.unknown.add(name)

    def __add__(self, other: TableCounts) -> TableCounts:
        if isinstance(other, int) and other == 0:  # sum() begins with it
            return self
        merged = copy.deepcopy(self)
        for name, counts in other.monitors.items():
            merged.monitors[name].merge(counts)
        merged.unknown |= other.unknown
        return merged

    __radd__ = __add__

    def found(self) -> list[Counts]:
        """Those of monitors that have observations."""
        return [counts for counts in self.monitors.values() if counts.total()]


def count(configs: list[dict[str, Any]], *parts: Any) -> TableCounts:
    """The counts of parts of a table, each whatever group.observe() takes: for workers of an engine, which get
    group.monitors()."""
    counts = TableCounts(configs)
    for part in parts:
        for columns in batches(part, Progress(False)):
            counts.add(columns)
    return counts
