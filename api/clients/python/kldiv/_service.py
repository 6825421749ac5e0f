"""A service that is reached by a transport, for the client and for groups."""
from __future__ import annotations

import json
import urllib.parse
from typing import Any

import numpy as np

from ._transport import Body, Query, Transport, plain


class Service:
    """Requests of the API with JSON."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def request(self, method: str, path: str, query: Query | None = None, json_body: Any = None,
                repeatable: bool | None = None, *, expected: Any = object) -> Any:
        """Any request of the API with JSON, and its response. If that is not as expected (a type, a list with a type, or a dict
        with the types of members), it is a ServiceError."""
        body: Body = () if json_body is None else [json.dumps(json_body, default=plain).encode()]
        headers = {} if json_body is None else {"Content-Type": "application/json"}
        return self.transport.request(method, path, query, headers, body, repeatable).json(expected)


def segment(name: Any) -> str:
    """A name as a segment of a path. "." and ".." would name another resource."""
    if not isinstance(name, (str, int, np.integer)) or isinstance(name, bool):
        raise TypeError(f"{name!r} is no name of a group or a monitor")
    if str(name) in ("", ".", ".."):
        raise ValueError(f"{name!r} is no name of a group or a monitor")
    return urllib.parse.quote(str(name), safe="")
