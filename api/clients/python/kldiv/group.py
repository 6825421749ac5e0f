"""A group of monitors: a table's columns, watched for drift."""
from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import math
import uuid
from pathlib import Path
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple

import numpy as np

from ._service import Service, segment
from ._tables import as_json, compact, encode_reference
from ._transport import PIECE, Body, Response, page_of
from .columns import Columns, Selection, integer_categories, is_scalar, nbytes, size, time_columns, time_texts
from .counts import TableCounts, digest
from .errors import ServiceError, warn
from .results import Result, Results, Summary, as_frame
from .sources import TEXT_TYPES, Batch, Piece, Progress, Sample, batches, is_path, suffix_of

MAX_REQUEST = 256 << 20  # bytes of a file that is sent as it stands, and of a table in memory that is sent whole
TIMES = {"values": "times"}  # an annotation, by which results show dates
MAX_CELLS = 200_000  # of a table that is sent as JSON
METHODS = {"labels": "labels", "numbers": "quantile"}


def idempotency_key(rows: int | Path, when: Any, revisions: list[tuple[str, Any]]) -> str:
    """A key of a table's rows, or of a file, the time, and the monitors' revisions."""
    state = hashlib.sha256(repr((rows if isinstance(rows, int) else "", when, sorted(revisions))).encode())
    if isinstance(rows, Path):
        with rows.open("rb") as file:
            while piece := file.read(PIECE):
                state.update(piece)
    return f"sha256-{state.hexdigest()}"


def time_text(value: Any) -> Any:
    """A time as the service takes it: RFC 3339, or seconds since 1970; of Python or pandas, without a zone UTC."""
    if isinstance(value, np.datetime64):
        return f"{np.datetime_as_string(value, 'us')}Z"
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool)):
        return value
    value = value.to_timestamp() if hasattr(value, "to_timestamp") else value  # a Period
    if not isinstance(value, datetime.date):
        raise TypeError(f"{value!r} is no time: texts of RFC 3339, seconds since 1970, dates and times are")
    text: str = value.isoformat()
    return text if getattr(value, "tzinfo", True) else f"{text}Z"


def names_of(value: Any) -> list[str] | None:
    """include or exclude: a text with commas, a name, or names."""
    if value is None or isinstance(value, str):
        return value.split(",") if value else None
    names = [value] if is_scalar(value) else list(value)
    if not all(isinstance(name, (str, int, np.integer)) for name in names):
        raise TypeError(f"{value!r} are no names of columns")
    return [str(name) for name in names]


# What answers have, as fits() takes it.
NUMBER, TEXT = (int, float, type(None)), (str, type(None))
WARNING = {"code": str, "column": TEXT, "message": str}
G_TEST = ({"p_value": (int, float)}, type(None))
WINDOW = {"window?": dict, "kl?": NUMBER, "g_test?": G_TEST}
CONFIG = {"name": str, "revision": int, "bins": ({"labels": list}, {"edges": [(int, float)]}, {"presence": bool}),
          "annotations?": dict, "warnings?": [WARNING]}
CONFIGS = {"monitors": [CONFIG], "warnings": [WARNING]}
RESULT = {"name": str, "verdict": str, "revision": int, "n": int, "kl": NUMBER, "state?": str,
          "bins?": [{"name": str, "reference": NUMBER, "current": NUMBER, "share?": NUMBER}], "g_test?": G_TEST}
RESULTS = {"monitors": [RESULT], "warnings": [WARNING]}
SUMMARY = {"group": str, "state": str, "monitors": int, "states": dict,
           "drifting": [{"name": str, "state": str, "since": TEXT, "top": [str]}],
           "history": [{"start": str, "end": str, "drifting": int, "monitors": int}]}


class Monitors(List[Dict[str, Any]]):
    """The configs of a group's monitors, for workers: they can be pickled, and know the group, which reads CSV files."""

    def __init__(self, configs: Iterable[dict[str, Any]], group: Group) -> None:
        super().__init__(configs)
        self.group = group

    def labels(self) -> set[str]:
        return {str(label) for config in self for label in config["bins"].get("labels", ())}

    def times(self) -> set[str]:
        return {config["name"] for config in self if config.get("annotations", {}).get("values") == "times"}


class Encoded(NamedTuple):
    """A table that is sent whole."""

    media_type: str
    body: Body
    rows: int | Path  # their digest, or the file
    names: Collection[str] | None = None  # of its columns, if it is not CSV


class Group:
    """Client.group makes it."""

    def __init__(self, client: Service, name: str) -> None:
        self.client, self.name = client, name
        self._path = f"/monitors/{segment(name)}"

    def __repr__(self) -> str:
        return f"<kldiv.Group {self.name!r} at {self.client.transport.url}>"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def reference(self, data: Any, *, sample: int = 1_000_000, seed: int = 0, progress: bool | None = None,
                  kinds: Mapping[str, str] | None = None, encoding: str | None = None, time: str | None = None,
                  **settings: Any) -> Monitors:
        """Creates or replaces a monitor for each column; the service's configs. Settings are those of api/monitors/README.md.

        `kinds` says what columns are, "labels" or "numbers", where their values do not: {"zip": "labels"}; categories of
        integers are labels. Of more than `sample` rows a uniform sample is the reference, and a warning says so. With
        `time`, a column of times, which gets no monitor, the rows are then observed, too, as observe() has it. `encoding` is
        that of a file of texts, as Python names it, if it is not UTF-8."""
        kinds = {**dict.fromkeys(integer_categories(data), "labels"), **(kinds or {})}
        unknown = {str(kind) for kind in kinds.values()} - set(METHODS)
        if unknown:
            raise ValueError(f"kinds are labels or numbers, not {', '.join(sorted(unknown))}")
        chosen = Selection(*(names_of(settings.get(name)) for name in ("include", "exclude")))
        read = chosen if time is None else Selection(chosen.include and [*chosen.include, time],
                                                     [name for name in chosen.exclude or () if name != time])
        whole = table = self._reference_table(data, sample, seed, progress, read, encoding)
        if time is not None and not isinstance(table, tuple):
            whole = {**table, **time_texts(data, time)}
            if time not in whole:
                raise ValueError(f"the table has no column {time!r}")
            if len({len(column) for column in whole.values()}) > 1:
                raise ValueError(f"a reference with times has at most {sample:,} rows, or more with sample=")
            table = {name: column for name, column in whole.items() if name != time}
        alone: dict[str, dict[str, Any]] = {str(name): {"method": METHODS[kind]} for name, kind in kinds.items()
                                            if chosen.has(str(name))}
        commas = [name for name in (*(chosen.include or ()), *(chosen.exclude or ()), *alone) if "," in name]
        if commas and isinstance(table, tuple):
            raise ValueError(f"the name {commas[0]!r} has a comma, so a column of a CSV file is not chosen by it: read the file "
                             "into a data frame")
        alone.update({name: {} for name in commas if chosen.has(name) and name not in alone})
        included = chosen.include and [name for name in chosen.include if name not in alone]
        own = {name: value for name, value in settings.items() if name not in ("include", "exclude")}
        is_file, tells_time = isinstance(table, tuple), time is not None and "," not in time
        exclude = [*(chosen.exclude or ()), *alone, *([] if time is None else [time])] if is_file else \
            [str(time)] if tells_time and included is None else None
        configs = [] if included == [] else self._put_others(
            whole if tells_time else table, {**own, "include": included, "exclude": exclude or None}, set(alone))
        for name, kind in alone.items():
            one = table if isinstance(table, tuple) else encode_reference({name: table[name]} if name in table else {})
            configs.append(self._put(f"{self._path}/{segment(name)}", {**own, **kind}, *one))
        times = time_columns(data)
        for config in configs:
            if config["name"] in times:
                config.update(self.settings(config["name"], annotations=TIMES))
        if time is not None and str(settings.get("dry_run")).lower() != "true":
            self._observe_rows(whole, time)
        return Monitors(configs, self)

    def _observe_rows(self, table: Columns | tuple[str, Body], time: str) -> None:
        """Sends the rows of a reference to the windows of their times. What columns get no monitor was told before."""
        media_type, body = table if isinstance(table, tuple) else encode_reference(table)
        answer = self._post(f"{self._path}/observations", media_type, body, {"time": time}, uuid.uuid4().hex).json(RESULTS)
        self._warn([warning for warning in answer["warnings"] if warning["code"] == "times_unreadable"])

    def renew(self, data: Any = None, *, start: Any = None, end: Any = None, sample: int = 1_000_000, seed: int = 0,
              progress: bool | None = None, encoding: str | None = None, **binning: Any) -> Monitors:
        """Gives the monitors of a table's columns new bins and references, or those of the group its windows that start in
        [start, end). Settings stay; `binning` is method or bins, as of reference(), or include, the monitors that are meant,
        all by default. The new configs."""
        if (data is None) == (start is None and end is None):
            raise ValueError("a new reference is a table, or the windows from start to end")
        period = {"from": time_text(start), "to": time_text(end)}
        table = ("application/json", [json.dumps(period).encode()]) if data is None else \
            self._reference_table(data, sample, seed, progress, Selection(None, None), encoding)
        media_type, body = table if isinstance(table, tuple) else encode_reference(table)
        answer: dict[str, Any] = self.client.transport.request("POST", f"{self._path}/reference", binning,
                                                               {"Content-Type": media_type}, body).json(CONFIGS)
        self._warn(answer["warnings"])
        return Monitors(answer["monitors"], self)

    def _put_others(self, table: Columns | tuple[str, Body], settings: dict[str, Any], alone: set[str]) -> list[dict[str, Any]]:
        """The monitors of all columns but some, which do not travel unless they are CSV."""
        others = {} if isinstance(table, tuple) else {name: column for name, column in table.items() if name not in alone}
        if alone and not others and not isinstance(table, tuple):
            return []
        try:
            monitors: list[dict[str, Any]] = self._put(
                self._path, settings, *(table if isinstance(table, tuple) else encode_reference(others)))["monitors"]
        except ServiceError as error:  # the file may have no other columns
            if error.code != "reference_empty" or not alone:
                raise
            return []
        return monitors

    def _put(self, path: str, settings: dict[str, Any], media_type: str, body: Body) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.transport.request("PUT", path, settings, {"Content-Type": media_type}, body).json(
            CONFIGS if path == self._path else CONFIG)
        self._warn(answer.pop("warnings", []))
        return answer

    def _reference_table(self, data: Any, sample: int, seed: int, progress: bool | None,
                         chosen: Selection, encoding: str | None) -> Columns | tuple[str, Body]:
        """The columns of a reference, or the media type and body of CSV."""
        whole = whole_file(data, encoding)
        if whole:
            return whole
        shown, kept = Progress(progress), Sample(sample, seed)
        for batch in batches(data, shown, chosen, encoding):
            kept.add(batch)
        shown.end()
        if kept.seen > sample:
            warn(f"the reference is a sample of {sample:,} of {kept.seen:,} rows")
        columns = kept.columns()
        if not kept.media_type:
            return columns
        (header, rows), = columns.items()
        return kept.media_type, [header.encode(errors="surrogateescape"), b"".join(rows)]

    def observe(self, data: Any, timestamp: Any = None, *, time: str | None = None, timezone: str | None = None,
                by: str | None = None, key: str | None = "content", progress: bool | None = None,
                encoding: str | None = None) -> Results:
        """Adds a table to the monitors of its columns: one window, or part of one, whatever the table's size.

        `time` names a column that has each row's time: rows go to the windows of their own times, which monitors must have
        (window="1d"). Times without a zone are of `timezone`, else of the monitors' own. `windows` of the results counts the
        windows by verdict. `by` names a column by whose values reference() has made segments, whose results are `segments` of
        the results, by group: {"orders[country=DE]": ...}. Such tables are sent in one request.

        A table that is large, or comes in batches, is counted first, in the bins of the monitors, and counts are added:
        a request for each monitor. The same rows at the same timestamp, for monitors of the same revision, count once in
        24 hours, so that a notebook may run again: `replayed` of the results is true then, and a warning says so.
        Another `key` is used as it is, None for none."""
        if not isinstance(key, (str, type(None))):
            raise TypeError(f"key must be a text or None, not {key!r}")
        if time is not None and timestamp is not None:
            raise ValueError("time gives each row a time of its own: leave timestamp out")
        when = time_text(timestamp)
        table, monitors = self._prepared(data, progress, encoding, time)
        if isinstance(table, TableCounts):
            if time is not None or by is not None:
                raise ValueError(f"a table with a time for each row, or with segments, is sent in one request, of at most {MAX_REQUEST >> 20} MiB: "
                                 "observe its parts one after another, in the order of time")
            results = self._post_counts(table, when, key)
        else:
            if key == "content":
                key = idempotency_key(table.rows, when if time is None and by is None else (time, timezone, by), [(each["name"], each["revision"]) for each in monitors
                                                         if table.names is None or each["name"] in table.names])
            response = self._post(f"{self._path}/observations", table.media_type, table.body,
                                  {"timestamp": when, "time": time, "timezone": timezone, "by": by}, key)
            answer = response.json(RESULTS)
            results = Results(answer["monitors"], answer["warnings"], is_replay(response), answer.get("windows"))
            results.segments = {each["group"]: Results(each["monitors"]) for each in answer.get("segments", [])}
        self._told(results, monitors)
        if results.replayed:
            warn("these rows were counted before, and are not counted again: the results are those of their windows; "
                 "key=None counts them once more")
        return results

    def _prepared(self, data: Any, progress: bool | None, encoding: str | None,
                  time: str | None = None) -> tuple[TableCounts | Encoded, Monitors]:
        """A table as it travels, and the monitors as they are once it is read: those that counts are for, or ValueError."""
        whole = whole_file(data, encoding)
        table = data if isinstance(data, TableCounts) else Encoded(*whole, Path(data)) if whole else \
            self._count_or_encode(data, Progress(progress), encoding, time)
        monitors = self.monitors()
        if isinstance(table, TableCounts):
            table.check(monitors)
        return table, monitors

    def _count_or_encode(self, data: Any, shown: Progress, encoding: str | None, time: str | None) -> TableCounts | Encoded:
        """The counts of a table that is large or comes in batches; another one encoded. Times are texts."""
        monitors, source = self.monitors(), batches(data, shown, encoding=encoding)
        heads = list(itertools.islice(source, 2))
        if time is not None and len(heads) == 1 and not isinstance(heads[0], Piece):
            heads[0] = {**heads[0], **time_texts(data, time)}
        body: tuple[str, Body] | None = None
        head = heads[0] if heads else {}
        if len(heads) < 2 and isinstance(head, Piece):
            body = head.media_type, head.body()
        elif len(heads) < 2 and not isinstance(head, Piece) and sum(map(nbytes, head.values())) <= MAX_REQUEST:
            body = compact(head, monitors.labels()) or (as_json(head) if size(head) * len(head) <= MAX_CELLS else None)
        if body:
            shown.end()
            return Encoded(*body, digest(head), None if isinstance(head, Piece) else set(head))
        counts = TableCounts(monitors)
        counts.add(given_back(heads, source), self._evaluate_piece)
        shown.end()
        return counts

    def _evaluate_piece(self, piece: Piece) -> dict[str, Any]:
        """The service's evaluation of records of a CSV file, which is not stored."""
        try:
            answer: dict[str, Any] = self._post_evaluation(piece.media_type, piece.body())
        except ServiceError as error:
            if error.status in (400, 422):
                error = ServiceError(error.status, error.code, f"{piece.place} and after, where its header is line 1: "
                                     f"{error.detail}", error.errors, error.request_id)
            raise error from None
        return answer

    def _post_evaluation(self, media_type: str, body: Body) -> Any:
        return self.client.transport.request("POST", f"{self._path}/evaluate", None, {"Content-Type": media_type}, body,
                                             repeatable=True).json(RESULTS)

    def _post_counts(self, counts: TableCounts, when: Any, key: str | None) -> Results:
        results, replayed = [], True
        for each in counts.found():
            own = idempotency_key(counts.digest, when, [(each.name, each.revision)]) if key == "content" else key
            response = self._post(f"{self._path}/{segment(each.name)}/observations", "application/json",
                                  [json.dumps(each.body()).encode()], {"timestamp": when}, own)
            results.append(response.json(RESULT))
            replayed &= is_replay(response)
        return Results(results, counts.warnings(), replayed)

    def _post(self, path: str, media_type: str, body: Body, query: dict[str, Any], key: str | None) -> Response:
        headers = {"Content-Type": media_type, **({} if key is None else {"Idempotency-Key": key})}
        return self.client.transport.request("POST", path, query, headers, body, repeatable=key is not None)

    def evaluate(self, data: Any, *, progress: bool | None = None, encoding: str | None = None) -> Results:
        """Scores a table alone, as observe() would alone, and stores nothing."""
        table, monitors = self._prepared(data, progress, encoding)
        if isinstance(table, TableCounts):
            results = Results([self.client.request("POST", f"{self._path}/{segment(each.name)}/evaluate",
                                                   json_body=each.body(), repeatable=True, expected=RESULT)
                               for each in table.found()], table.warnings())
        else:
            answer = self._post_evaluation(*table[:2])
            results = Results(answer["monitors"], answer["warnings"])
        return self._told(results, monitors)

    def monitors(self) -> Monitors:
        """The configs of all monitors."""
        return Monitors(self.client.request("GET", self._path, expected={"monitors": [CONFIG]})["monitors"], self)

    def _pages(self, path: str, member: str, query: dict[str, Any], row: Any = dict) -> Iterator[dict[str, Any]]:
        cursor = None
        while True:
            page = self.client.request("GET", path, {**query, "cursor": cursor}, expected=page_of(member, row))
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
                         for window in self._pages(f"{self._path}/{segment(each)}/windows", "windows", query, WINDOW)])

    def latest(self, name: str) -> Result:
        """The last closed window of a monitor, with its bins."""
        path = f"{self._path}/{segment(name)}"
        result = Result(self.client.request("GET", f"{path}/windows/latest", expected=RESULT))
        result.times = result.name in Monitors([self.client.request("GET", path, expected=CONFIG)], self).times()
        return result

    def delete_window(self, name: str, window: int) -> None:
        """Deletes one window of a monitor by its id, as windows() have it; later ones and the state are judged again."""
        self.client.request("DELETE", f"{self._path}/{segment(name)}/windows/{int(window)}")

    def delete_windows(self, start: Any, end: Any, name: str | None = None) -> dict[str, int]:
        """Deletes the windows of a monitor, or of all, that start in [start, end): the undo of a wrong upload. All or none;
        later ones and the states are judged again. How many `windows` went, of how many `monitors`."""
        path = self._path if name is None else f"{self._path}/{segment(name)}"
        told: dict[str, int] = self.client.request("DELETE", f"{path}/windows", {"from": time_text(start), "to": time_text(end)},
                                                   expected={"windows": int, "monitors": int})
        return told

    def events(self, since: Any = None) -> Any:
        """Changes of states, newest first: a DataFrame, or a list of dicts."""
        return as_frame(list(self._pages("/events", "events", {"group": self.name, "since": time_text(since),
                                                               "limit": 1000})))

    def summary(self) -> Summary:
        """The group's state, what drifts in it, since when, and its history: a dict, and a picture in notebooks."""
        return Summary(self.client.request("GET", f"/groups/{segment(self.name)}", expected=SUMMARY))

    def settings(self, monitor: str | None = None, **changes: Any) -> Any:
        """Changes settings of a monitor, or of all, by a merge patch; None sets the default. Bins, reference and
        history stay."""
        path = self._path if monitor is None else f"{self._path}/{segment(monitor)}"
        return self.client.request("PATCH", path, json_body=changes, expected=dict)

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
            json_body={name: value for name, value in given.items() if value is not None},
            expected={"id": (int, str), "name": TEXT})
        return note

    def notes(self, monitor: str | None = None, start: Any = None, end: Any = None) -> list[dict[str, Any]]:
        """The notes of the group and its monitors, or of one monitor and the group, of [start, end), newest first."""
        query = {"from": time_text(start), "to": time_text(end), "limit": 1000}
        return list(self._pages(self._path_of("notes", monitor), "notes", query))

    def delete_note(self, note: dict[str, Any]) -> None:
        if not isinstance(note, dict) or not {"name", "id"} <= set(note):
            raise TypeError("a note is what note() and notes() return")
        self.client.request("DELETE", f"{self._path_of('notes', note['name'])}/{note['id']}")

    def _path_of(self, what: str, monitor: str | None) -> str:
        return f"{self._path}/{segment(monitor)}/{what}" if monitor is not None else f"/groups/{segment(self.name)}/{what}"

    def delete(self) -> None:
        """Deletes the group's monitors with their history."""
        self.client.request("DELETE", self._path)

    def _told(self, results: Results, monitors: Monitors) -> Results:
        for result in results:
            result.times = result.name in monitors.times()
        self._warn(results.warnings)
        if not results and not any(warning["code"] == "results_cut" for warning in results.warnings):
            raise ValueError("the table has no rows, or no column of it has a monitor")
        return results

    @staticmethod
    def _warn(given: list[dict[str, Any]]) -> None:
        for warning in given:
            column = f"column {warning['column']!r}: " if warning["column"] else ""
            warn(f"{warning['code']}: {column}{warning['message']}")


def given_back(heads: list[Batch], rest: Iterator[Batch]) -> Iterator[Batch]:
    """All batches; those that were looked at are dropped one by one."""
    while heads:
        yield heads.pop(0)
    yield from rest


def whole_file(data: Any, encoding: str | None) -> tuple[str, Body] | None:
    """A file of texts that is sent as it stands."""
    if is_path(data) and not encoding and suffix_of(Path(data)) in TEXT_TYPES and Path(data).stat().st_size <= MAX_REQUEST:
        return TEXT_TYPES[suffix_of(Path(data))], Path(data)
    return None


def is_replay(response: Response) -> bool:
    """Was it counted before this call? After a lost response a repeat is answered as a replay, too."""
    return response.attempts == 1 and response.headers.get("Idempotent-Replayed") == "true"


def window_row(name: str, window: dict[str, Any]) -> dict[str, Any]:
    """A window with its bins left out, and infinite scores as numbers."""
    row: dict[str, Any] = {"name": name, **window.get("window", {})}
    for key in ("revision", "n", "kl", "kl_reverse", "js", "psi", "verdict", "state"):
        if key in window:
            missing = math.inf if window.get("infinite") else math.nan
            row[key] = missing if window[key] is None and key in ("kl", "kl_reverse", "psi") else window[key]
    row["p_value"] = (window.get("g_test") or {}).get("p_value")
    return row
