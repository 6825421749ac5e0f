"""Where tables come from: memory, files, folders, iterators. A source is a sequence of batches of columns, of which one
is in memory at a time."""
from __future__ import annotations

import codecs
import gzip
import io
import itertools
import json
import operator
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Iterator, Union

import numpy as np

from ._transport import Buffer
from .columns import (ALL, Array1, Column, Columns, Selection, is_record, is_scalar, named, records, size, table,
                      take)

ROWS = 1 << 16  # of a batch of a file
PIECE_SIZE = 32 << 20  # bytes of a CSV file that are read at once
MAX_RECORD = 256 << 20
MAX_HEADER = 1 << 16  # bytes in which a header is looked for first
CSV_TYPES = {".csv": "text/csv", ".tsv": "text/tab-separated-values", ".txt": "text/csv"}
LINES_TYPES = {".jsonl": "application/jsonl", ".ndjson": "application/jsonl"}
TEXT_TYPES = {**CSV_TYPES, **LINES_TYPES}
SUFFIXES = (*TEXT_TYPES, *(f"{suffix}.gz" for suffix in TEXT_TYPES), ".parquet", ".npz")
END = object()
BOM = b"\xef\xbb\xbf"
LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")
DELIMITERS = b"\t;,"
SEPARATOR = re.compile(rb'("?)(?i:sep)=([\t;,|^~: ])\1')  # by which spreadsheets tell the delimiter


class Progress:
    """A line in a terminal or a notebook: how many rows, and how much of a file; after a second."""

    def __init__(self, wanted: bool | None) -> None:
        self.wanted = sys.stderr.isatty() or "ipykernel" in sys.modules if wanted is None else wanted
        self.rows, self.shown, self.begin = 0, False, time.monotonic()

    def add(self, rows: int, done: float | None = None) -> None:
        self.rows += rows
        if self.wanted and time.monotonic() > self.begin + 1:
            self.shown = True
            bar = "" if done is None else f" [{'#' * int(20 * done):20}]"
            print(f"\r{self.rows:,} rows{bar}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.shown:
            print(file=sys.stderr)


def is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def check_encoding(encoding: str | None) -> None:
    try:
        "".encode(encoding or "utf-8")
    except LookupError as error:
        raise ValueError(str(error)) from None


class Recoded:
    """A file of texts in another encoding, to be read as UTF-8."""

    def __init__(self, file: Any, name: str, encoding: str) -> None:
        self.file, self.name, self.decoder = file, name, codecs.getincrementaldecoder(encoding)()

    def read(self, size: int) -> bytes:
        text, part = "", b"?"
        while part and not text:
            part = self.file.read(size)
            try:
                text = self.decoder.decode(part, not part)
            except UnicodeDecodeError as error:
                raise ValueError(f"{self.name}: {error}") from None
        return text.encode()


@dataclass(frozen=True)
class Piece:
    """Records of a CSV file after its header, for the service to read."""

    media_type: str
    header: bytes  # with what stands before it, as sep=;
    records: bytes
    place: str  # where the records begin
    delimiter: bytes

    def body(self) -> list[Buffer]:
        return [self.header, self.records]


Batch = Union[Columns, Piece]


def quotes(text: bytes, octets: Array1, delimiters: bytes) -> Array1:
    """Which quotes begin and end quoted fields, doubled ones included or not: elsewhere a quote is a character."""
    found: Array1 = octets == ord('"')
    begins = np.flatnonzero(found)[::2]
    before = octets[begins[begins > 0] - 1]
    if np.isin(before, np.frombuffer(delimiters + b'\r\n"', np.uint8)).all():
        return found
    found = np.zeros(len(text), bool)
    for field in re.finditer(rb'(?<![^\r\n%b])"[^"]*(?:""[^"]*)*("|\Z)' % re.escape(delimiters), text):
        found[field.start()] = True
        if field[1]:
            found[field.end() - 1] = True
    return found


def record_ends(text: bytes, delimiters: bytes, is_last: bool = True) -> Array1:
    """Positions after the ends of records: ends of lines outside of quotes, and the last one's, if it is there."""
    octets = np.frombuffer(text, np.uint8)
    ends = octets == ord("\n")
    if b"\r" in text:
        alone = octets == ord("\r")
        alone[:-1] &= octets[1:] != ord("\n")
        alone[-1:] &= is_last
        ends |= alone
    if b'"' in text:  # the parity of the quotes before; uint8 wraps, which does not change it
        ends &= np.cumsum(quotes(text, octets, delimiters), dtype=np.uint8) & 1 == 0
    positions = np.flatnonzero(ends) + 1
    if is_last and len(text) and (not len(positions) or positions[-1] < len(text)):
        positions = np.append(positions, len(text))
    return positions


def piece_records(piece: Piece) -> Columns:
    """The records of a piece, as a column that has the header for its name: without what editors add, which differs."""
    ends = record_ends(piece.records, piece.delimiter).tolist()
    header = piece.header.removeprefix(BOM).rstrip(b"\r\n") + b"\n"
    return {header.decode(errors="surrogateescape"):
            [piece.records[begin:end].rstrip(b"\r\n") + b"\n" for begin, end in zip([0, *ends], ends)]}


def last_end(text: bytes, delimiter: bytes, is_last: bool) -> int:
    """Position after the last record that ends in the text."""
    if is_last:
        return len(text)
    if b'"' not in text and b"\r" not in text:
        return text.rfind(b"\n") + 1
    ends = record_ends(text, delimiter, False)
    return int(ends[-1]) if len(ends) else 0


def find_delimiter(text: bytes) -> bytes:
    """The delimiter of the header that the text begins with, as the service finds it: the one that occurs most."""
    counts, inside, begins = dict.fromkeys(DELIMITERS, 0), False, True
    for octet in text[:MAX_HEADER]:
        if not inside and octet in b"\r\n":
            break
        is_delimiter = not inside and octet in DELIMITERS
        inside ^= octet == ord('"') and (inside or begins)
        begins = is_delimiter
        if is_delimiter:
            counts[octet] += 1
    best = max(counts.values())
    return b"," if best == 0 else bytes([next(octet for octet in DELIMITERS if counts[octet] == best)])


def header_end(text: bytes, media_type: str, is_last: bool) -> tuple[int, bytes]:
    """Position after the header, the first record that is neither blank but for delimiters nor sep=; before it, and the
    delimiter; 0 if it does not end here."""
    begin = len(BOM) if text.startswith(BOM) else 0
    known = b"\t" if media_type == CSV_TYPES[".tsv"] else b""
    may_tell = True
    while begin < len(text):
        line = LINE.match(text, begin)
        assert line
        is_whole = line.end() < len(text) or is_last or line[0].endswith(b"\n")
        if not line[0].strip(DELIMITERS + known + b"\r\n") and is_whole:
            begin = line.end()
        elif may_tell and is_whole and (told := SEPARATOR.fullmatch(line[0].rstrip(b"\r\n"))):
            begin, known, may_tell = line.end(), told[2], False
        else:
            delimiter = known or find_delimiter(text[begin:begin + MAX_HEADER])
            for size in MAX_HEADER, len(text):
                rest = text[begin:begin + size]
                ends = record_ends(rest, delimiter, is_last and begin + size >= len(text))
                if len(ends):
                    return begin + int(ends[0]), delimiter
            break
    return (len(text) if is_last else 0), known or b","


def read_fully(file: Any, name: str) -> bytes:
    """PIECE_SIZE bytes, or what is left: files without a buffer, as of pipes, give less at once."""
    parts, left = list[bytes](), PIECE_SIZE
    while left > 0 and (part := file.read(left)):
        if not isinstance(part, bytes):
            raise TypeError(f"{name} gives {type(part).__name__}: a file of CSV is opened to be read as bytes")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def csv_pieces(file: Any, name: str, media_type: str, progress: Progress, total: int | None = None,
               encoding: str | None = None) -> Iterator[Piece]:
    """A CSV file in pieces of PIECE_SIZE, cut between records. One without rows is a piece."""
    file = Recoded(file, name, encoding) if encoding else file
    header, delimiter, text, line, done, is_last, given = b"", b",", b"", 1, 0, False, False
    while not is_last:
        read = read_fully(file, name)
        text, done, is_last = text + read, done + len(read), len(read) < PIECE_SIZE
        if not header:
            begin, delimiter = header_end(text, media_type, is_last)
            header, text = text[:begin], text[begin:]
            line += header.count(b"\n")
        cut = last_end(text, delimiter, is_last) if header else 0
        n = text.count(b"\n", 0, cut)
        if cut or (is_last and not given):
            progress.add(n, min(1.0, done / total) if total else None)
            yield Piece(media_type, header, text[:cut], f"{name}, line {line}", delimiter)
            given = True
        line += n
        text = text[cut:]
        if len(text) > MAX_RECORD:
            raise ValueError(f"{name}: the record in line {line} has more than {MAX_RECORD:,} bytes: is a quote left open?")


def suffix_of(path: Path) -> str:
    """The last suffix of a file, in small letters."""
    return path.suffix.lower()


def text_suffix(path: Path) -> str:
    """The suffix of a file of texts, which may be compressed."""
    return suffix_of(path.with_suffix("")) if suffix_of(path) == ".gz" else suffix_of(path)


def json_lines(file: Any, name: str, progress: Progress, chosen: Selection, encoding: str | None) -> Iterator[Columns]:
    """JSON Lines in batches of ROWS."""
    lines = ((i, line) for i, line in enumerate(io.TextIOWrapper(file, encoding or "utf-8-sig"), 1) if line.strip())
    while some := list(itertools.islice(lines, ROWS)):
        rows = []
        for i, line in some:
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f"{name}, line {i}: {error}") from None
            if not isinstance(rows[-1], dict):
                raise ValueError(f"{name}, line {i}: a row is an object, {{NAME: VALUE}}")
        progress.add(len(rows))
        yield records(rows, chosen)


def text_batches(path: Path, progress: Progress, chosen: Selection, encoding: str | None) -> Iterator[Batch]:
    packed, suffix = suffix_of(path) == ".gz", text_suffix(path)
    with gzip.open(path) if packed else path.open("rb") as file:
        if suffix in LINES_TYPES:
            yield from json_lines(file, str(path), progress, chosen, encoding)
        else:
            yield from csv_pieces(file, str(path), CSV_TYPES[suffix], progress, None if packed else path.stat().st_size,
                                  encoding)


def parquet_batches(path: Path, progress: Progress, chosen: Selection) -> Iterator[Columns]:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{path} is Parquet, which pyarrow reads: pip install pyarrow") from error
    with pyarrow.parquet.ParquetFile(path) as file:
        total, done = file.metadata.num_rows or 1, 0
        for batch in file.iter_batches(batch_size=ROWS):
            done += batch.num_rows
            progress.add(batch.num_rows, done / total)
            yield named(zip(batch.schema.names, batch.columns), chosen)


def file_batches(path: Path, progress: Progress, chosen: Selection, encoding: str | None) -> Iterator[Batch]:
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.name.lower().endswith(SUFFIXES))
        if not files:
            raise ValueError(f"{path} has no file that ends with {', '.join(SUFFIXES)}")
        for each in files:
            yield from file_batches(each, progress, chosen, encoding)
    elif suffix_of(path) == ".parquet":
        yield from parquet_batches(path, progress, chosen)
    elif suffix_of(path) == ".npz":
        with np.load(path) as arrays:
            columns = named(arrays.items(), chosen)
        progress.add(size(columns))
        yield columns
    elif text_suffix(path) in TEXT_TYPES:
        yield from text_batches(path, progress, chosen, encoding)
    else:
        raise ValueError(f"{path} does not end with {', '.join(SUFFIXES)}")


def batches(data: Any, progress: Progress, chosen: Selection = ALL, encoding: str | None = None) -> Iterator[Batch]:
    """The batches of whatever observe() takes; `encoding` is that of files of texts, by default UTF-8."""
    check_encoding(encoding)
    if is_path(data):
        yield from file_batches(Path(data), progress, chosen, encoding)
        return
    if hasattr(data, "read"):
        yield from csv_pieces(getattr(data, "buffer", data), getattr(data, "name", "the file"), "text/csv", progress,
                              encoding=encoding)
        return
    columns = table(data, chosen)
    if columns is not None:
        if not columns:
            raise ValueError("the table has no columns, or none that is to be read")
        progress.add(size(columns))
        yield columns
    elif isinstance(data, np.ndarray):
        raise TypeError("an array has no names of columns: give {name: array}")
    elif is_scalar(data):
        raise TypeError(f"{type(data).__name__} is no table: data frames, {{name: array}}, rows, paths and iterators are taken")
    else:
        yield from iterated(data, progress, chosen, encoding)


def iterated(data: Iterable[Any], progress: Progress, chosen: Selection, encoding: str | None) -> Iterator[Batch]:
    """Tables one after another, or rows, of which a list is one batch."""
    limit, rows = len(data) if isinstance(data, (list, tuple)) else ROWS, list[Any]()
    for each in itertools.chain(data, [END]):
        if is_record(each):
            rows.append(each)
        if rows and (not is_record(each) or len(rows) == limit):
            progress.add(len(rows))
            yield records(rows, chosen)
            rows = []
        if each is not END and not is_record(each):
            yield from batches(each, progress, chosen, encoding)


def concatenate(parts: list[Column]) -> Column:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [value for part in parts for value in (part.tolist() if isinstance(part, np.ndarray) else part)]


class Sample:
    """A uniform sample of at most n rows of batches, in their order: those with the least random keys. At most 2n rows
    and a batch are kept."""

    def __init__(self, n: int, seed: int) -> None:
        if operator.index(n) < 1:
            raise ValueError("a sample has at least one row")
        self.n, self.rng, self.seen, self.limit = n, np.random.default_rng(seed), 0, 1.0
        self.keys = np.empty(0)
        self.media_type: str | None = None  # of CSV; "" of columns
        self.parts: list[Columns] = []

    def add(self, batch: Batch) -> None:
        media_type = batch.media_type if isinstance(batch, Piece) else ""
        if self.media_type not in (None, media_type):
            raise ValueError(f"a batch is {media_type or 'columns'}, the first one {self.media_type or 'columns'}")
        self.media_type = media_type
        if isinstance(batch, Piece):
            batch = piece_records(batch)
        if self.parts and list(batch) != list(self.parts[0]):
            raise ValueError(f"a batch has the columns {list(batch)}, the first one {list(self.parts[0])}")
        rows = size(batch)
        keys = self.rng.random(rows)
        self.seen += rows
        chosen = np.flatnonzero(keys <= self.limit)
        self.parts.append({name: take(values, chosen) for name, values in batch.items()}
                          if len(chosen) < rows else batch)
        self.keys = np.concatenate([self.keys, keys[chosen]])
        if len(self.keys) > 2 * self.n:
            self.parts = [self.columns()]

    def columns(self) -> Columns:
        """What is kept, cut to n rows."""
        whole = {name: concatenate([part[name] for part in self.parts]) for name in (self.parts or [{}])[0]}
        if len(self.keys) > self.n:
            rows = np.sort(np.argpartition(self.keys, self.n)[:self.n])
            self.keys = self.keys[rows]
            self.limit = float(self.keys.max())
            whole = {name: take(values, rows) for name, values in whole.items()}
        return whole
