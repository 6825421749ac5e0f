"""Counts of columns in the bins of monitors: what a table of any size becomes before it travels.

Numbers are counted by the library, as in the service. Values of other columns are those that JSON would carry. Records of
CSV files are read by the service itself, which counts them without storing anything."""
from __future__ import annotations

import collections
import copy
import hashlib
import math
import re
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Iterable

import numpy as np

from . import _library
from .columns import Column, Columns
from .errors import ServiceError
from .sources import Batch, Piece, Progress, batches

MISSING = frozenset(("", "NaN", "nan", "NA", "N/A", "n/a", "null", "NULL", "None", "\\N", "-NaN", "-nan", "#N/A", "#N/A N/A", "#NA",
                     "<NA>", "-1.#IND", "1.#IND", "-1.#QNAN", "1.#QNAN"))
INFINITIES = {"Infinity": math.inf, "Inf": math.inf, "-Infinity": -math.inf, "-Inf": -math.inf}
WORDS = ("false", "true"), ("False", "True"), ("FALSE", "TRUE")
PAIRS = ("f", "t"), ("F", "T"), ("no", "yes"), ("No", "Yes"), ("NO", "YES"), ("n", "y"), ("N", "Y"), ("0", "1")
SPELLINGS = {text: bool(i % 2) for i, text in enumerate("f t no yes n y 0 1".split())}  # beside false and true
LOOSE = re.compile(r"[+-]?(?:(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)")
MAX_LABEL = 1024  # bytes
DTYPES = {"float64": 0, "float32": 1, "float16": 2}
NARROW = "float32", "float16"  # whose decimals are shorter
DIGEST_BITS = 256
READERS = 2  # pieces of CSV that the service reads at once


def decimal_text(number: float | np.floating[Any]) -> str:
    """A number as a label: the shortest decimal of its type, whole numbers without a point."""
    value = float(number)
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if 0 <= value < 1e15 and value == int(value):
        return str(int(value))
    text = str(number).replace("e+", "e").replace("e-0", "e-")
    return text[:-2] if text.endswith(".0") else text


def text_number(text: str) -> float | None:
    """The number that a text is as a label, by the service's rules: "+1", "007", ".5" and "1,5" are some."""
    text = text if len(text.encode(errors="surrogatepass")) <= MAX_LABEL else ""
    return float(text.replace(",", ".")) if LOOSE.fullmatch(text := text.strip(" \t")) else None


def digest(batch: Batch) -> int:
    """A number of a batch's names and rows. Those of batches add up to one of the table."""
    state = hashlib.sha256()
    if isinstance(batch, Piece):
        state.update(batch.header)
        state.update(batch.records)
        return int.from_bytes(state.digest(), "little")
    for name, column in batch.items():
        array = isinstance(column, np.ndarray)
        state.update(repr((name, column.dtype.str if isinstance(column, np.ndarray) else "", len(column))).encode())
        state.update(np.ascontiguousarray(column).view(np.uint8).data if array else
                     repr(column).encode("utf-8", "surrogatepass"))
    return int.from_bytes(state.digest(), "little")


class Counts:
    """Counts of one monitor, given its config."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.name: str = config["name"]
        self.revision = config.get("revision")
        self.bins = bins = config["bins"]
        self.is_presence: bool = bins.get("presence", False)  # one label, which any value has that is not missing
        self.labels: list[str] | None = ["present"] if self.is_presence else bins.get("labels")
        self.edges = None if self.labels is not None else np.array([float(edge) for edge in bins["edges"]])
        n = len(self.labels) if self.labels is not None else len(bins["edges"]) + 2
        # Intervals: underflow, the intervals, overflow, missing. Labels: they, other, missing.
        self.counts = np.zeros(n + 2 if self.labels is not None else n, np.uint64)
        self.index = {label: i for i, label in enumerate(self.labels or [])}
        self.takes_any_booleans, self.booleans = self._booleans()
        self.numbered = self._numbered()
        self.unreadable = 0  # fields of CSV for a monitor of numbers, which count as missing

    def _booleans(self) -> tuple[bool, list[int | None]]:
        """The labels that booleans have, and if they have them for certain: beside at most one other label."""
        found = [next((self.index[pair[i]] for pair in WORDS if pair[i] in self.index), None) for i in (0, 1)]
        if not 2 <= len(self.index) <= 3:
            return False, found
        pair = found if None not in found else next(
            ([self.index[text] for text in each] for each in PAIRS if all(text in self.index for text in each)), [])
        certain = bool(pair) and all(i in pair or text_number(label) is None for label, i in self.index.items())
        return certain, pair if certain else found

    def _numbered(self) -> dict[float, int | None]:
        """The labels that are numbers, but written otherwise than here; None if several are the same one."""
        numbered: dict[float, int | None] = {}
        for label, i in self.index.items():
            number = text_number(label)
            if number is not None and decimal_text(number) != label:
                numbered[number] = None if number in numbered else i
        return numbered

    def add(self, column: Column) -> None:
        if self.edges is not None:
            self._add_numbers(column if isinstance(column, np.ndarray) else np.array([self._number(v) for v in column]))
        elif isinstance(column, np.ndarray):
            values, n = np.unique(column[~np.isnan(column)] if column.dtype.kind == "f" else column, return_counts=True)
            for value, count in zip(values if values.dtype.name in NARROW else values.tolist(), n.tolist()):
                self.counts[self._bin(value)] += np.uint64(count)
            self.counts[-1] += np.uint64(len(column) - int(n.sum()))
        else:
            for (_, value), count in collections.Counter((type(v), v) for v in column).items():
                self.counts[self._bin(value)] += np.uint64(count)

    def _number(self, value: Any) -> float:
        if not isinstance(value, str):
            return math.nan if value is None else float(value)
        if value not in MISSING and value not in INFINITIES:
            raise ServiceError(422, "value_not_number", f"column {self.name!r}: the monitor expects numbers, but this is "
                               f"the text {value[:60]!r}")
        return INFINITIES.get(value, math.nan)

    def _add_numbers(self, column: np.ndarray[Any, Any]) -> None:
        assert self.edges is not None
        if column.dtype.name not in DTYPES:
            column = column.astype(np.float64)
        column = np.ascontiguousarray(column)
        _library.load().kl_bin_counts(self.edges.ctypes.data, len(self.edges) - 1, DTYPES[column.dtype.name],
                                         column.ctypes.data, len(column), self.counts.ctypes.data)

    def _bin(self, value: Any) -> int:
        """The bin of a value of a monitor of labels."""
        other, missing = len(self.index), len(self.index) + 1
        if self.is_presence:
            return missing if value is None or (isinstance(value, str) and value in MISSING) else 0
        if isinstance(value, str):
            if value in self.index:
                return self.index[value]
            if value in MISSING:
                return missing
            boolean = self._boolean_of(value.lower()) if value.isascii() else None
            if boolean is not None and (found := self.booleans[boolean]) is not None:
                return found
            number = text_number(value)
            return other if number is None else self._bin_of_number(number)
        if value is None:
            return missing
        if isinstance(value, bool):
            found = self.index.get("true" if value else "false", self.booleans[value])
            return other if found is None else found
        return self._bin_of_number(value if isinstance(value, np.floating) else float(value))

    def _boolean_of(self, text: str) -> bool | None:
        return text == "true" if text in ("true", "false") else SPELLINGS.get(text) if self.takes_any_booleans else None

    def _bin_of_number(self, number: float | np.floating[Any]) -> int:
        found = self.index.get(decimal_text(number))
        if found is None and self.takes_any_booleans and number in (0, 1):
            found = self.booleans[int(number)]
        if found is None:
            found = self.numbered.get(float(number))
        return len(self.index) if found is None else found

    def add_result(self, result: dict[str, Any]) -> None:
        """Adds the counts of an evaluation, whose bins have fractions of n."""
        if result["revision"] != self.revision:
            raise ValueError(f"the monitor {self.name!r} was replaced while a table was counted: observe it again")
        self.counts += np.array([round((each["current"] or 0) * result["n"]) for each in result["bins"]], np.uint64)

    def merge(self, other: Counts) -> None:
        if (self.name, self.revision, self.bins) != (other.name, other.revision, other.bins):
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
        self.seen: dict[str, None] = {}  # the table's columns that have a monitor, in order
        self.unknown: set[str] = set()
        self.others: dict[tuple[str, str | None], dict[str, Any]] = {}  # warnings of pieces, by code and column
        self.digest = 0  # of all rows

    def add(self, source: Iterable[Batch], evaluate: Callable[[Piece], dict[str, Any]] | None = None) -> None:
        """Adds batches. The service reads pieces of CSV files, by `evaluate`, some at once."""
        waiting = collections.deque[Future[dict[str, Any]]]()
        with ThreadPoolExecutor(READERS) as executor:
            for batch in source:
                self._add_digest(digest(batch))
                if not isinstance(batch, Piece):
                    self._add_columns(batch)
                    continue
                if evaluate is None:
                    raise ValueError("a CSV file is read by the service: give count() what group.monitors() returns")
                waiting.append(executor.submit(evaluate, batch))
                if len(waiting) > READERS:
                    self._add_evaluation(waiting.popleft().result())
            for future in waiting:
                self._add_evaluation(future.result())

    def _add_columns(self, columns: Columns) -> None:
        for name, column in columns.items():
            if name in self.monitors:
                self.seen[name] = None
                self.monitors[name].add(column)
            else:
                self.unknown.add(name)

    def _add_evaluation(self, answer: dict[str, Any]) -> None:
        for result in answer["monitors"]:
            if result["name"] in self.monitors:
                self.seen[result["name"]] = None
                self.monitors[result["name"]].add_result(result)
        for warning in answer["warnings"]:
            if warning["code"] == "column_unknown":
                self.unknown.add(warning["column"])
            elif warning["code"] == "values_unreadable":
                if each := self.monitors.get(warning["column"]):
                    each.unreadable += warning["count"]
            elif warning["code"] != "column_absent":  # which is known of the whole table alone
                self.others.setdefault((warning["code"], warning["column"]), warning)

    def _add_digest(self, number: int) -> None:
        self.digest = (self.digest + number) % (1 << DIGEST_BITS)

    def __add__(self, other: TableCounts) -> TableCounts:
        if isinstance(other, int) and other == 0:  # sum() begins with it
            return self
        if not isinstance(other, TableCounts):
            return NotImplemented
        if set(self.monitors) != set(other.monitors):
            raise ValueError("counts of tables for other monitors")
        merged = copy.deepcopy(self)
        for name, counts in other.monitors.items():
            merged.monitors[name].merge(counts)
        merged.unknown |= other.unknown
        merged.seen.update(other.seen)
        merged.others = {**other.others, **self.others}
        merged._add_digest(other.digest)
        return merged

    __radd__ = __add__

    def check(self, configs: Iterable[dict[str, Any]]) -> None:
        """ValueError if a monitor was replaced meanwhile: its bins are others."""
        now = {config["name"]: config.get("revision") for config in configs}
        for each in self.found():
            if now.get(each.name) != each.revision:
                raise ValueError(f"the monitor {each.name!r} was replaced after the table was counted: count it again")

    def found(self) -> list[Counts]:
        """Those of monitors that have observations, in the order of the table's columns."""
        return [self.monitors[name] for name in self.seen if self.monitors[name].total()]

    def warnings(self) -> list[dict[str, Any]]:
        """What the service would warn of, in its form."""
        given: list[tuple[str, str, int | None, str]] = [
            ("column_unknown", name, None, "the group has no monitor of this name, so the column is left out")
            for name in sorted(self.unknown)]
        for each in self.monitors.values():
            if not each.total():
                given.append(("column_absent", each.name, None,
                              "the table has no column for this monitor, which is left alone"))
            if each.unreadable:
                given.append(("values_unreadable", each.name, each.unreadable,
                              f"{each.unreadable:,} values are not numbers and count as missing"))
        return [*(dict(zip(("code", "column", "count", "message"), each)) for each in given), *self.others.values()]


def count(monitors: Iterable[dict[str, Any]], *parts: Any) -> TableCounts:
    """The counts of parts of a table, each whatever group.observe() takes: for workers of an engine, which get
    group.monitors(). CSV files go to the group's service."""
    configs = list(monitors)
    if not configs or not all(isinstance(config, dict) and {"name", "bins"} <= set(config) for config in configs):
        raise TypeError("monitors are what group.monitors() returns")
    counts = TableCounts(configs)
    for part in parts:
        group = getattr(monitors, "group", None)
        counts.add(batches(part, Progress(False)), group and group._evaluate_piece)
    return counts
