"""Two tables, column by column."""
from __future__ import annotations

import contextlib
from typing import Any, ContextManager

from ._local import LocalService
from ._transport import Transport, body_size
from ._whole import form, whole_table
from .columns import time_columns
from .group import RESULT, WARNING
from .results import Results

COMPARED = {"columns": [RESULT], "warnings": [WARNING]}


def compare_tables(transport: Transport | None, reference: Any, current: Any, encoding: str | None,
                   settings: dict[str, Any]) -> Results:
    """By a service, or, without a transport, by one that runs for this call."""
    media_type, body = form({"reference": whole_table(reference, encoding), "current": whole_table(current, encoding)})
    of: ContextManager[Transport] = LocalService(body_size(body)) if transport is None else contextlib.nullcontext(transport)
    with of as service:
        answer = service.request("POST", "/compare", settings, {"Content-Type": media_type}, body, repeatable=True).json(COMPARED)
    results = Results(answer["columns"], answer["warnings"])
    times = time_columns(reference)
    for result in results:
        result.times = result.name in times
    return results


def compare(reference: Any, current: Any, *, encoding: str | None = None, **settings: Any) -> Results:
    """Compares two tables without a service: kldivd runs for the time of the call, on a socket that nobody else can reach.
    Tables are those that Group.observe takes: paths, data frames, rows. Settings are those of Client.compare."""
    return compare_tables(None, reference, current, encoding, settings)
