"""Columns of a table, as they travel: arrays of numbers or booleans with one axis, or lists of texts, numbers, booleans
and None.

Missing are None, NaN, NaT and pandas' NA. Decimal becomes float64. Dates, times and the begins of periods become seconds
since 1970 (without a zone: UTC), times of a day and durations seconds. Categories become their values, intervals texts.
A column of anything else is left out, with a warning."""
from __future__ import annotations

import datetime
import decimal
import math
from dataclasses import dataclass
from typing import Any, Collection, Iterable, List, Mapping, Union

import numpy as np

from ._arrays import is_pandas
from .errors import warn

Array1 = np.ndarray[Any, Any]
Column = Union[Array1, List[Any]]
Columns = Mapping[str, Column]

TEXTS = {str, type(None)}
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)


def size(columns: Columns) -> int:
    """The number of rows."""
    return len(next(iter(columns.values()))) if columns else 0


def is_numeric(column: Column) -> bool:
    return isinstance(column, np.ndarray)


def nbytes(column: Column) -> int:
    """What a column takes in a request, nearly: texts by some of them."""
    if isinstance(column, np.ndarray):
        return column.nbytes
    some = column[::len(column) // 1000 + 1]
    return len(column) * (8 + 4 * sum(len(value) for value in some if isinstance(value, str)) // max(1, len(some)))


def as_texts(column: Column, of_booleans: bool) -> Array1 | None:
    """A column of texts, or of booleans, as numpy has texts, missing ones empty; None if it holds other values, or would
    grow too much."""
    if isinstance(column, np.ndarray):
        return None
    types = set(map(type, column))
    if of_booleans and types == {bool, type(None)}:
        return np.array(["" if value is None else str(value).lower() for value in column])
    if not types <= TEXTS:
        return None
    letters, width = "".join(filter(None, column)), max(map(len, filter(None, column)), default=1)
    if 4 * width * len(column) > (1 << 20) + 32 * len(letters) or "\0" in letters:
        return None
    return np.array([value or "" for value in column] if None in column else column, f"<U{width}")


def take(column: Column, rows: Array1) -> Column:
    return column[rows] if isinstance(column, np.ndarray) else [column[int(i)] for i in rows]


def seconds(array: Array1) -> Array1:
    """datetime64 or timedelta64 as seconds."""
    missing = np.isnat(array)
    unit = "datetime64[us]" if array.dtype.kind == "M" else "timedelta64[us]"
    result: Array1 = array.astype(unit).astype(np.int64) / 1e6
    result[missing] = math.nan
    return result


def scalar(name: str, value: Any) -> Any:
    """One value of a column of objects: a text, a number, a boolean or None."""
    if isinstance(value, np.generic):
        value = seconds(np.array([value]))[0].item() if value.dtype.kind in "mM" else value.item()
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, datetime.date):
        return (datetime.datetime(value.year, value.month, value.day, tzinfo=UTC) - EPOCH).total_seconds()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.time):
        return value.hour * 3600.0 + value.minute * 60 + value.second + value.microsecond / 1e6
    if type(value).__name__ == "Period":
        return scalar(name, value.to_timestamp())
    if type(value).__name__ == "Interval":
        return str(value)
    raise TypeError(f"column {name!r} holds {type(value).__name__}: numbers, texts, booleans, dates and None are taken")


def from_objects(name: str, values: Any) -> Column:
    """An array, if no text is among them; booleans with missing values stay a list, so that they stay booleans."""
    column = list(values)
    if str in (kinds := set(map(type, column))) and kinds <= TEXTS:
        return column
    column = [scalar(name, value) for value in column]
    kinds = {type(value) for value in column if value is not None}
    if kinds == {bool} and None not in column:
        return np.array(column, bool)
    if kinds == {int} and None not in column and all(-2**63 <= value < 2**63 for value in column):
        return np.array(column, np.int64)
    if kinds and kinds <= {int, float}:
        return np.array([math.nan if value is None else float(value) for value in column])
    return column


def from_numpy(name: str, array: Array1) -> Column:
    if array.ndim != 1:
        raise TypeError(f"column {name!r} has {array.ndim} axes: a column has one")
    kind = array.dtype.kind
    if kind in "mM":
        return seconds(array)
    if kind in "biuf":
        wide = array.astype(np.float64) if array.dtype.itemsize > 8 else array
        return np.ascontiguousarray(wide, wide.dtype.newbyteorder("="))
    if kind == "U":
        return list(array.tolist())
    if kind == "O":
        return from_objects(name, array)
    raise TypeError(f"column {name!r} has dtype {array.dtype}: numbers, texts, booleans and dates are taken")


def from_series(name: str, series: Any) -> Column:
    """A column of pandas."""
    if hasattr(series, "sparse"):
        series = series.sparse.to_dense()
    dtype = series.dtype
    if hasattr(dtype, "categories"):
        values = from_objects(name, dtype.categories)
        codes = series.cat.codes.to_numpy()
        if isinstance(values, np.ndarray) and values.dtype != bool:
            return np.where(codes < 0, math.nan, values.astype(float)[codes]) if (codes < 0).any() else values[codes]
        lookup = np.array([*(values.tolist() if isinstance(values, np.ndarray) else values), None], object)
        return from_objects(name, lookup[codes])  # the code of a missing value is -1
    if hasattr(dtype, "tz"):
        return seconds(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    if isinstance(dtype, np.dtype):
        return from_numpy(name, series.to_numpy())
    if getattr(dtype, "kind", "O") in "iuf" and series.isna().any():
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=math.nan))
    if getattr(dtype, "kind", "O") in "iufb" and not series.isna().any():
        return from_numpy(name, series.to_numpy(dtype=dtype.numpy_dtype))
    return from_objects(name, series)


def from_arrow(name: str, array: Any) -> Column:
    """A column of Arrow (ChunkedArray, Array) or of polars (Series)."""
    text = str(array.type if hasattr(array, "type") else array.dtype).lower()
    if array.null_count == 0 if not callable(array.null_count) else array.null_count() == 0:
        if text.startswith(("int", "uint", "float", "double", "halffloat")):
            return from_numpy(name, np.asarray(array.to_numpy()))
    values = array.to_pylist() if hasattr(array, "to_pylist") else array.to_list()
    return from_objects(name, values)


def column(name: str, values: Any) -> Column:
    if is_pandas(values):
        return from_series(name, values)
    if type(values).__module__.split(".")[0] in ("pyarrow", "polars"):
        return from_arrow(name, values)
    if is_scalar(values) or isinstance(values, Mapping):
        raise TypeError(f"column {name!r} is a {type(values).__name__}: arrays and lists are taken")
    return from_numpy(name, values) if isinstance(values, np.ndarray) else from_objects(name, list(values))


def is_scalar(value: Any) -> bool:
    return isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") or getattr(value, "shape", None) == ()


def integer_categories(data: Any) -> list[str]:
    """The columns of a frame of pandas that are categories of integers: labels, by their owner's choice."""
    dtypes = data.dtypes.items() if is_pandas(data) and data.ndim == 2 else ()
    return [str(name) for name, dtype in dtypes if hasattr(dtype, "categories") and dtype.categories.dtype.kind in "iu"]


def time_columns(data: Any) -> list[str]:
    """The columns of a frame or dict that hold dates."""
    if not isinstance(data, Mapping) and not (is_pandas(data) and data.ndim == 2):
        return []
    firsts = {str(name): next((v for v in values if v is not None), None) if isinstance(values, (list, tuple)) else values
              for name, values in data.items()}
    return [name for name, value in firsts.items() if isinstance(value, datetime.date) or hasattr(value, "dtype") and (
        getattr(value.dtype, "kind", "") == "M" or str(value.dtype).startswith("period"))]


def time_texts(data: Any, name: str) -> Columns:
    """A column of times as texts, those with a zone in UTC, by its name; nothing if it has texts or numbers."""
    if isinstance(data, (list, tuple)):
        values: Any = [row.get(name) for row in data if isinstance(row, Mapping)]
    else:
        values = data[name] if name in getattr(data, "columns", getattr(data, "column_names", data)) else []
    kind, zone = (getattr(getattr(values, "dtype", None), part, None) for part in ("kind", "tz"))
    if zone is not None:
        return {name: [text and f"{text}Z" for text in moments(values.dt.tz_convert(None))]}
    if kind == "M":
        return {name: moments(values)}
    if kind in (None, "O") and any(isinstance(value, datetime.date) for value in values):
        return {name: [value.isoformat() if isinstance(value, datetime.date) and value == value else None
                       for value in values]}
    return {}


def moments(values: Any) -> list[Any]:
    """datetime64 as texts."""
    texts = np.datetime_as_string(np.asarray(values).astype("datetime64[us]"))
    return [None if text == "NaT" else text for text in texts.tolist()]


@dataclass(frozen=True)
class Selection:
    """The columns that are read, by their names."""

    include: Collection[str] | None = None
    exclude: Collection[str] | None = None

    def has(self, name: str) -> bool:
        return (self.include is None or name in self.include) and name not in (self.exclude or ())


ALL = Selection()


def table(data: Any, chosen: Selection = ALL) -> Columns | None:
    """The columns of a table in memory; None if this is none."""
    if is_pandas(data):
        frame = data.to_frame() if data.ndim == 1 else data
        return named(((name, frame.iloc[:, i]) for i, name in enumerate(frame.columns)), chosen)
    module = type(data).__module__.split(".")[0]
    if module == "pyarrow":
        return named(zip(data.schema.names, data.columns), chosen)
    if module == "polars":
        frame = data.collect() if hasattr(data, "collect") else data
        return named(zip(frame.columns, frame.get_columns()), chosen)
    if isinstance(data, Mapping):
        return records([data], chosen) if data and all(map(is_scalar, data.values())) else named(data.items(), chosen)
    if isinstance(data, np.ndarray) and data.dtype.names:
        return named(((name, data[name]) for name in data.dtype.names), chosen)
    return None


def is_record(value: Any) -> bool:
    """Is it a row, by its names?"""
    return isinstance(value, Mapping) and any(map(is_scalar, value.values()))


def records(rows: Collection[Mapping[Any, Any]], chosen: Selection) -> Columns:
    """Rows as columns; what a row lacks is missing."""
    names = dict.fromkeys(name for row in rows for name in row)
    return named(((name, [row.get(name) for row in rows]) for name in names), chosen)


def named(pairs: Iterable[tuple[Any, Any]], chosen: Selection = ALL) -> Columns:
    columns: dict[str, Column] = {}
    for given, values in pairs:
        name = str(given)
        if not chosen.has(name):
            continue
        if name in columns:
            raise ValueError(f"column {name!r} stands twice")
        try:
            columns[name] = column(name, values)
        except TypeError as error:
            warn(f"{error}; the column is left out")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns differ in length: {lengths}")
    return columns
