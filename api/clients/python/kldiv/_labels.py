"""Labels of pandas' frames and series: operands are aligned by them, as pandas' own arithmetic does, and results carry
them. Labels that are not the same in both operands are an error."""
from __future__ import annotations

import sys
from typing import Any, Mapping

import numpy as np

from ._arrays import is_pandas


def first_difference(labels: Any, of: str, others: Any, of_others: str) -> str:
    """What makes it impossible to bring labels into the order of others."""
    for these, name in ((labels, of), (others, of_others)):
        if not these.is_unique:
            return f"the label {these[these.duplicated()][0]!r} of {name} occurs twice"
    for these, name, those, other in ((others, of_others, labels, of), (labels, of, others, of_others)):
        missing = these[~these.isin(those)]
        if len(missing):
            return f"{name} has the label {missing[0]!r}, which {other} has not"
    return f"the labels of {of} and {of_others} are of different types"


def in_level_order(labels: Any, name: str, others: Any, of: str) -> Any:
    """Labels with their levels in the order of those of others, if both name all of them."""
    if labels.nlevels != others.nlevels:
        raise ValueError(f"{name} and {of} have different numbers of levels: {labels.nlevels} and {others.nlevels}")
    names, wanted = list(labels.names), list(others.names)
    if labels.nlevels == 1 or names == wanted or None in names + wanted:
        return labels
    if set(names) != set(wanted) or len(set(names)) < len(names):
        named, others_named = (", ".join(map(str, each)) for each in (names, wanted))
        raise ValueError(f"the levels of {name} and {of} are named {named} and {others_named}: rename_axis() names them alike")
    return labels.reorder_levels(wanted)


def reordered(value: Any, name: str, axes: list[Any], of: str) -> Any:
    """A frame or series with its last axis in the order of the last of `axes`, and so on; None stands for no labels."""
    for i in range(1, min(value.ndim, len(axes)) + 1):
        given, others = value.axes[-i], axes[-i]
        if others is None or (len(given) != len(others) and 1 in (len(given), len(others))):
            continue
        labels = in_level_order(given, name, others, of)
        if not labels.equals(others):
            order = labels.get_indexer(others) if labels.is_unique and others.is_unique else np.array([-1])
            if len(labels) != len(others) or (order < 0).any():
                raise ValueError(f"{name} and {of} are aligned by their labels, but "
                                 f"{first_difference(labels, name, others, of)}; reindex(…, fill_value=0) gives both the same "
                                 "labels, to_numpy() has none")
            value = value.take(order, axis=value.ndim - i)
        if labels is not given:
            value = value.set_axis(others, axis=value.ndim - i)
    return value


class Labels:
    """The labels of a call's axes, and of its loss's."""

    def __init__(self, operands: dict[str, Any], dim: Any) -> None:
        self.operands, axes = operands, list[Any]()
        for value in operands.values():
            own = list(value.axes) if is_pandas(value) else [None] * np.ndim(value)
            own, axes = [[None] * (max(len(own), len(axes)) - len(a)) + a for a in (own, axes)]
            axes = [b if a is None or (b is not None and len(a) == 1) else a for a, b in zip(axes, own)]
        summed = {int(axis) % max(1, len(axes)) for axis in np.atleast_1d(dim)} if dim is not None else set()
        self.axes, self.of_loss = axes, [axis for i, axis in enumerate(axes) if i not in summed]

    def loss(self, values: Any) -> Any:
        """A loss that is not reduced, as pandas has it."""
        return labelled(values, self.of_loss)

    def gradient(self, name: str, values: Any) -> Any:
        """The gradient by an operand, in the order that it was given in."""
        given = self.operands[name]
        if not is_pandas(given):
            return values
        frame = labelled(values, [own if len(own) != len(axis) else axis
                                  for own, axis in zip(given.axes, self.axes[len(self.axes) - given.ndim:])])
        return reordered(frame, name, list(given.axes), name)


class RowLabels(Labels):
    """Of a call with a sparse target: those of rows, and of the columns that indices and values share. Those of input's columns
    are not looked at, as indices are positions."""

    def __init__(self, operands: dict[str, Any]) -> None:
        wide = ("input", "indices", "target")
        rows = [(operands[name].axes[0], name) for name in (*wide, *operands)
                if is_pandas(operands[name]) and operands[name].ndim == 1 + (name in wide)]
        columns = operands["indices"].axes[-1] if is_pandas(operands["indices"]) else None
        self.operands, self.of_loss = operands, [axis for axis, _ in rows[:1]]
        self.orders = {name: self.of_loss + ([None if name == "input" else columns] if name in wide else []) for name in operands}
        self.aligned = {name: reordered(value, name, self.orders[name], rows[0][1] if rows else "indices")
                        if is_pandas(value) else value for name, value in operands.items()}

    def gradient(self, name: str, values: Any) -> Any:
        given = self.operands[name]
        if not is_pandas(given):
            return values
        frame = labelled(values, [own if axis is None else axis for own, axis in zip(given.axes, self.orders[name])])
        return reordered(frame, name, list(given.axes), name)


def labelled(values: Any, axes: list[Any]) -> Any:
    pandas: Any = sys.modules["pandas"]
    if values.ndim not in (1, 2) or values.ndim != len(axes) or all(axis is None for axis in axes):
        return values
    if any(axis is not None and len(axis) != n for axis, n in zip(axes, values.shape)):
        return values
    return pandas.Series(values, axes[0]) if values.ndim == 1 else pandas.DataFrame(values, *axes)


def align(operands: Mapping[str, Any], dim: Any = None) -> tuple[dict[str, Any], Labels | None]:
    """The operands, of which pandas' are in the order of the first one's labels: input, target, and what has the shape of
    the loss."""
    values = {name: value for name, value in operands.items() if value is not None or name in ("input", "target")}
    if "pandas" not in sys.modules or not any(map(is_pandas, values.values())):
        return values, None
    if "indices" in values:
        of_rows = RowLabels(values)
        return of_rows.aligned, of_rows
    labels = Labels({name: values[name] for name in ("input", "target")}, dim)
    for name, value in values.items():
        if is_pandas(value):
            first = "input" if name != "input" and is_pandas(values["input"]) else "target"
            values[name] = reordered(value, name, labels.axes if name in ("input", "target") else labels.of_loss, first)
    return values, labels
