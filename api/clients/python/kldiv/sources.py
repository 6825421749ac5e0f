"""Where tables come from: memory, files, folders, iterators. A source is a sequence of batches of columns, of which one
is in memory at a time."""
from __future__ import annotations

import csv
import io
import itertools
import os
import sys
from pathlib import Path
from typing import Any, Iterator

import numpy as np

from .columns import Column, Columns, named, size, table, take

ROWS = 1 << 16  # of a batch of a file
SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")


class Progress:
    """A line in a terminal or a notebook: how many rows, and how much of a file."""

    def __init__(self, wanted: bool | None) -> None:
        self.shown = sys.stderr.isatty() or "ipykernel" in sys.modules if wanted is None else wanted
        self.rows = 0

    def add(self, rows: int, done: float | None = None) -> None:
        self.rows += rows
        if self.shown:
            bar = "" if done is None else f" [{'#' * int(20 * done):20}]"
            print(f"\r{self.rows:,} rows{bar}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.shown and self.rows:
            print(file=sys.stderr)


def is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def csv_dialect(path: Path) -> str:
    """The delimiter, by the header line: as the service decides."""
    with path.open(encoding="utf-8-sig") as file:
        header = file.readline()
    return max(",;\t", key=header.count)


def csv_batches(path: Path, progress: Progress) -> Iterator[Columns]:
    """Fields as they stand, as texts."""
    total = path.stat().st_size or 1
    with path.open("rb") as raw:
        reader = csv.reader(io.TextIOWrapper(raw, "utf-8-sig", newline=""), delimiter=csv_dialect(path))
        names: list[str] = next(reader, [])
        while rows := list(itertools.islice((row for row in reader if row), ROWS)):
            if any(len(row) != len(names) for row in rows):
                raise ValueError(f"{path}: a row before line {reader.line_num + 1} has not {len(names)} fields")
            progress.add(len(rows), min(1.0, raw.tell() / total))
            yield {name: list(values) for name, values in zip(names, zip(*rows)) if name}


def parquet_batches(path: Path, progress: Progress) -> Iterator[Columns]:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{path} is Parquet, which pyarrow reads: pip install pyarrow") from error
    with pyarrow.parquet.ParquetFile(path) as file:
        total, done = file.metadata.num_rows or 1, 0
        for batch in file.iter_batches(batch_size=ROWS):
            done += batch.num_rows
            progress.add(batch.num_rows, done / total)
            yield named(zip(batch.schema.names, batch.columns))


def file_batches(path: Path, progress: Progress) -> Iterator[Columns]:
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES)
        if not files:
            raise ValueError(f"{path} has no file that ends with {', '.join(SUFFIXES)}")
        for each in files:
            yield from file_batches(each, progress)
    elif path.suffix == ".parquet":
        yield from parquet_batches(path, progress)
    elif path.suffix == ".npz":
        with np.load(path) as arrays:
            columns = named(arrays.items())
        progress.add(size(columns))
        yield columns
    elif path.suffix in (".csv", ".tsv"):
        yield from csv_batches(path, progress)
    else:
        raise ValueError(f"{path} does not end with {', '.join(SUFFIXES)}")


def batches(data: Any, progress: Progress) -> Iterator[Columns]:
    """The batches of whatever observe() takes."""
    if is_path(data):
        yield from file_batches(Path(data), progress)
        return
    columns = table(data)
    if columns is not None:
        progress.add(size(columns))
        yield columns
    elif isinstance(data, np.ndarray):
        raise TypeError("an array has no names of columns: give {name: array}")
    elif hasattr(data, "__iter__"):
        for batch in data:
            yield from batches(batch, progress)
    else:
        raise TypeError(f"{type(data).__name__} is no table: data frames, {{name: array}}, paths and iterators are taken")


def concatenate(parts: list[Column]) -> Column:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [value for part in parts for value in (part.tolist() if isinstance(part, np.ndarray) else part)]


class Sample:
    """A uniform sample of at most n rows of batches, in their order: those with the least random keys. At most 2n rows
    and a batch are kept."""

    def __init__(self, n: int, seed: int) -> None:
        self.n, self.rng, self.seen, self.limit = n, np.random.default_rng(seed), 0, 1.0
        self.keys = np.empty(0)
        self.parts: list[Columns] = []

    def add(self, batch: Columns) -> None:
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
