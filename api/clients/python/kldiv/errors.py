"""The errors of this package."""
from __future__ import annotations

import sys
import warnings
from typing import Any


class LossError(ValueError):
    """A call that libkldiv refuses. `code` never changes, and is also that of the service.

    `index` is that of the first element at fault, in row-major order, if there is one."""

    def __init__(self, code: str, detail: str, index: int | None = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.code, self.detail, self.index = code, detail, index

    def __reduce__(self) -> tuple[Any, ...]:
        return LossError, (self.code, self.detail, self.index)


class ServiceError(Exception):
    """An error that the service answered, or `code` "unreachable" and `status` 0 if it did not answer; "not_the_service" if
    something else did, as a page to log in.

    `pointer` is the JSON Pointer, or the name of the query parameter, of the first thing at fault; `errors` has all."""

    def __init__(self, status: int, code: str, detail: str, errors: list[dict[str, Any]] | None = None,
                 request_id: str | None = None) -> None:
        self.status, self.code, self.detail = status, code, detail
        self.errors = errors or []
        self.request_id = request_id
        number, place = f"{status} " if status else "", f" (at {self.pointer})" if self.pointer else ""
        super().__init__(f"{number}{code}: {detail}{place}")

    def __reduce__(self) -> tuple[Any, ...]:
        return ServiceError, (self.status, self.code, self.detail, self.errors, self.request_id)

    @property
    def pointer(self) -> str | None:
        for error in self.errors:
            place = error.get("pointer", error.get("parameter"))
            if isinstance(place, str):
                return place
        return None


def warn(message: str) -> None:
    """A UserWarning at the line that called the package."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals["__name__"].split(".")[0] == "kldiv":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, level)
