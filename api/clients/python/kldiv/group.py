"""A group of monitors: a table's columns, watched for drift."""
from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import math
import warnings
from pathlib import Path
from typing import Any, Iterator

import numpy as np

from . import _wire
from ._transport import PIECE, Body
from .client import Client, segment
from .columns import Column, Columns, is_numeric, size
from .counts import Counts, TableCounts
from .results import Result, Results, as_frame
from .sources import Progress, Sample, batches, is_path

MAX_REQUEST = 256 << 20  # bytes of a file that is sent as it stands, and of a table that is sent as numbers
MAX_TEXT_ROWS = 100_000  # rows of a table with texts that is sent whole
TABLE_TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bool": "BOOL", "int8": "I8", "int16": "I16",
               "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64"}


def as_list(column: Column) -> list[Any]:
    values = column.tolist() if isinstance(column, np.ndarray) else column
    return [None if isinstance(v, float) and math.isnan(v) else "Infinity" if v == math.inf else
            "-Infinity" if v == -math.inf else v for v in values]


def encode(columns: Columns) -> tuple[str, Body]:
    """The media type and body of a table: safetensors of the arrays where they lie, or JSON if there are texts."""
    if not all(is_numeric(column) for column in columns.values()):
        return "application/json", [json.dumps({"columns": {name: as_list(c) for name, c in columns.items()}}).encode()]
    header, parts, end = dict[str, Any](), list[memoryview](), 0
    for name, column in columns.items():
        array = np.asarray(column)
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": TABLE_TYPES[array.dtype.name], "shape": [len(array)], "data_offsets": [begin, end]}
        parts.append(array.view(np.uint8).data)
    return _wire.SAFETENSORS, [_wire.safetensors_header(header), *parts]


def encode_csv(columns: Columns) -> tuple[str, Body]:
    """Fields of a CSV file, for the service to read as that file's."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values()))
    return "text/csv", [file.getvalue().encode()]


def content_key(path: str, timestamp: Any, body: Body) -> str:
    """An Idempotency-Key of the content: the same observations again count once."""
    digest = hashlib.sha256(f"{path}\n{timestamp}\n".encode())
    if isinstance(body, Path):
        with body.open("rb") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
    else:
        for part in body:
            digest.update(part)
    return f"sha256-{digest.hexdigest()}"


def time_text(value: Any) -> Any:
    """A time as the service takes it: RFC 3339, or seconds since 1970; of Python or pandas, without a zone UTC."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, np.datetime64):
        return f"{np.datetime_as_string(value, 'us')}Z"
    text: str = value.isoformat()
    return text if getattr(value, "tzinfo", True) else f"{text}Z"


class Group:
    """Client.group makes it."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name
        self._path = f"/monitors/{segment(name)}"

    def __repr__(self) -> str:
        return f"<kldiv.Group {self.name!r} at {self.client.transport.url}>"

    def reference(self, data: Any, *, sample: int = 1_000_000, seed: int = 0, progress: bool | None = None,
                  **settings: Any) -> list[dict[str, Any]]:
        """Creates or replaces a monitor for each column; the service's configs. Settings are those of api/README.md.

        Of more than `sample` rows a uniform sample is the reference, and a warning says so."""
        media_type, body = self._reference_body(data, sample, seed, progress)
        answer = self.client.transport.request("PUT", self._path, settings, {"Content-Type": media_type}, body).json()
        self._warn(answer["warnings"])
        monitors: list[dict[str, Any]] = answer["monitors"]
        return monitors

    def _reference_body(self, data: Any, sample: int, seed: int, progress: bool | None) -> tuple[str, Body]:
        whole = self._whole_file(data)
        if whole:
            return whole
        shown, kept = Progress(progress), Sample(sample, seed)
        for batch in batches(data, shown):
            kept.add(batch)
        shown.end()
        if kept.seen > sample:
            warnings.warn(f"the reference is a sample of {sample:,} of {kept.seen:,} rows", UserWarning, 3)
        return encode_csv(kept.columns()) if is_csv(data) else encode(kept.columns())

    @staticmethod
    def _whole_file(data: Any) -> tuple[str, Body] | None:
        """A file that the service reads itself."""
        if is_csv(data) and Path(data).stat().st_size <= MAX_REQUEST:
            kind = "text/tab-separated-values" if Path(data).suffix == ".tsv" else "text/csv"
            return kind, Path(data)
        return None

    def observe(self, data: Any, timestamp: Any = None, *, key: str | None = "content",
                progress: bool | None = None) -> Results:
        """Adds a table to the monitors of its columns: one window, or part of one, whatever the table's size.

        A table that is large, or comes in batches, is counted here, in the bins of the monitors, and counts travel:
        a request for each monitor. The same content at the same timestamp counts once in 24 hours, so that a notebook
        may run again; another `key` is used as it is, None for none."""
        when = time_text(timestamp)
        if isinstance(data, TableCounts):
            return self._post_counts(self._checked(data, 3), when, key)
        whole, shown = self._whole_file(data), Progress(progress)
        source = iter(()) if whole else batches(data, shown)
        heads = list(itertools.islice(source, 2))
        if whole or (len(heads) < 2 and not is_large(heads[0] if heads else {})):
            shown.end()
            answered = self._post_table(*(whole or encode(heads[0] if heads else {})), when, key)
            self._warn(answered.warnings)
            return answered
        counted = self._count(given_back(heads, source))
        shown.end()
        return self._post_counts(counted, when, key)

    def _post_counts(self, counted: list[Counts], when: Any, key: str | None) -> Results:
        results = []
        for counts in counted:
            path, body = f"{self._path}/{segment(counts.name)}/observations", [json.dumps(counts.body()).encode()]
            results.append(self._post(path, "application/json", body, when, key))
        return Results(results)

    def _post_table(self, media_type: str, body: Body, when: Any, key: str | None) -> Results:
        answer = self._post(f"{self._path}/observations", media_type, body, when, key)
        return Results(answer["monitors"], answer["warnings"])

    def _post(self, path: str, media_type: str, body: Body, when: Any, key: str | None) -> Any:
        headers = {"Content-Type": media_type}
        if key is not None:
            headers["Idempotency-Key"] = content_key(path, when, body) if key == "content" else key
        return self.client.transport.request("POST", path, {"timestamp": when}, headers, body,
                                             repeatable=key is not None).json()

    def _count(self, source: Iterator[Columns]) -> list[Counts]:
        """Counts for the monitors of all columns that come."""
        counts = TableCounts(self.monitors())
        for batch in source:
            counts.add(batch)
        return self._checked(counts, 4)

    @staticmethod
    def _checked(counts: TableCounts, stacklevel: int) -> list[Counts]:
        if counts.unknown:
            warnings.warn(f"the group has no monitor for {', '.join(sorted(counts.unknown))}", UserWarning, stacklevel)
        for each in counts.found():
            if each.unreadable:
                warnings.warn(f"{each.unreadable:,} values of {each.name} are no numbers: they count as missing",
                              UserWarning, stacklevel)
        if not counts.found():
            raise ValueError("no column of the table has a monitor, or it has no rows")
        return counts.found()

    def evaluate(self, data: Any, *, progress: bool | None = None) -> Results:
        """Scores a table alone, counted here, and stores nothing."""
        shown = Progress(progress)
        counted = self._count(batches(data, shown))
        shown.end()
        return Results(self.client.request("POST", f"{self._path}/{segment(counts.name)}/evaluate",
                                           json_body=counts.body(), repeatable=True) for counts in counted)

    def monitors(self) -> list[dict[str, Any]]:
        """The configs of all monitors."""
        monitors: list[dict[str, Any]] = self.client.request("GET", self._path)["monitors"]
        return monitors

    def _pages(self, path: str, member: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        cursor = None
        while True:
            page = self.client.request("GET", path, {**query, "cursor": cursor})
            yield from page[member]
            cursor = page["next"]
            if cursor is None:
                return

    def windows(self, name: str | None = None, start: Any = None, end: Any = None) -> Any:
        """The windows of a monitor, or of all, that start in [start, end), newest first: a DataFrame, or where there is
        no pandas a list of dicts."""
        names = [name] if name is not None else [config["name"] for config in self.monitors()]
        query = {"from": time_text(start), "to": time_text(end), "limit": 1000}
        return as_frame([window_row(each, window) for each in names
                         for window in self._pages(f"{self._path}/{segment(each)}/windows", "windows", query)])

    def latest(self, name: str) -> Result:
        """The last closed window of a monitor, with its bins."""
        return Result(self.client.request("GET", f"{self._path}/{segment(name)}/windows/latest"))

    def events(self, since: Any = None) -> Any:
        """Changes of states, newest first: a DataFrame, or a list of dicts."""
        return as_frame(list(self._pages("/events", "events", {"group": self.name, "since": time_text(since),
                                                               "limit": 1000})))

    def summary(self) -> dict[str, Any]:
        """The group's state, what drifts in it, since when, and its history."""
        answer: dict[str, Any] = self.client.request("GET", f"/groups/{segment(self.name)}")
        return answer

    def settings(self, monitor: str | None = None, **changes: Any) -> Any:
        """Changes settings of a monitor, or of all, by a merge patch; None sets the default. Bins, reference and
        history stay."""
        path = self._path if monitor is None else f"{self._path}/{segment(monitor)}"
        return self.client.request("PATCH", path, json_body=changes)

    def mute(self, monitor: str | None = None, *, seconds: float | None = None, until: Any = None,
             reason: str = "") -> Any:
        """Sends nothing about the group, or one monitor, for a time. Page, state and events go on."""
        given = {"seconds": seconds, "until": time_text(until), "reason": reason}
        return self.client.request("POST", self._path_of("mute", monitor),
                                   json_body={name: value for name, value in given.items() if value not in (None, "")})

    def unmute(self, monitor: str | None = None) -> None:
        self.client.request("DELETE", self._path_of("mute", monitor))

    def note(self, text: str, monitor: str | None = None, *, start: Any = None, end: Any = None) -> dict[str, Any]:
        """Writes a note on a period of the group, or of one monitor, which the page shows: by default on now, and
        without an end on the time `start`."""
        given = {"text": text, "from": time_text(start), "to": time_text(end)}
        note: dict[str, Any] = self.client.request(
            "POST", self._path_of("notes", monitor),
            json_body={name: value for name, value in given.items() if value is not None})
        return note

    def notes(self, monitor: str | None = None, start: Any = None, end: Any = None) -> list[dict[str, Any]]:
        """The notes of the group and its monitors, or of one monitor and the group, of [start, end), newest first."""
        query = {"from": time_text(start), "to": time_text(end), "limit": 1000}
        return list(self._pages(self._path_of("notes", monitor), "notes", query))

    def delete_note(self, note: dict[str, Any]) -> None:
        self.client.request("DELETE", f"{self._path_of('notes', note['name'])}/{note['id']}")

    def _path_of(self, what: str, monitor: str | None) -> str:
        return f"{self._path}/{segment(monitor)}/{what}" if monitor else f"/groups/{segment(self.name)}/{what}"

    def delete(self) -> None:
        """Deletes the group's monitors with their history."""
        self.client.request("DELETE", self._path)

    @staticmethod
    def _warn(given: list[dict[str, Any]]) -> None:
        for warning in given:
            warnings.warn(f"{warning['code']}: {warning['message']}", UserWarning, 3)


def given_back(heads: list[Columns], rest: Iterator[Columns]) -> Iterator[Columns]:
    """All batches; those that were looked at are dropped one by one."""
    while heads:
        yield heads.pop(0)
    yield from rest


def is_csv(data: Any) -> bool:
    return is_path(data) and Path(data).suffix in (".csv", ".tsv")


def is_large(columns: Columns) -> bool:
    if all(is_numeric(column) for column in columns.values()):
        return sum(np.asarray(column).nbytes for column in columns.values()) > MAX_REQUEST
    return size(columns) > MAX_TEXT_ROWS


def window_row(name: str, window: dict[str, Any]) -> dict[str, Any]:
    """A window with its bins left out, and infinite scores as numbers."""
    row: dict[str, Any] = {"name": name, **window.get("window", {})}
    for key in ("revision", "n", "kl", "kl_reverse", "js", "psi", "verdict", "state"):
        if key in window:
            missing = math.inf if window.get("infinite") else math.nan
            row[key] = missing if window[key] is None and key in ("kl", "kl_reverse", "psi") else window[key]
    row["p_value"] = (window.get("g_test") or {}).get("p_value")
    return row
