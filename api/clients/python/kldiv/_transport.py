"""HTTP over kept connections, TCP, TLS or a unix socket, by the standard library.

What may be repeated is: after a lost connection, a timeout, or a 502, 503 or 504, with growing pauses, or those that
Retry-After asks for. Other requests are sent again only if they surely did not arrive."""
from __future__ import annotations

import http.client
import json
import os
import random
import selectors
import socket
import ssl
import threading
import time
import urllib.parse
from email.message import Message
from pathlib import Path
from typing import Any, Mapping, Sequence, Union

from ._version import __version__
from .errors import ServiceError

Buffer = Union[bytes, memoryview]
Body = Union[Sequence[Buffer], Path]  # buffers one after another, or a file
Query = Mapping[str, Any]

MAX_PAUSE_S = 30.0
PIECE = 1 << 20
TEMPORARY = (502, 503, 504)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Response:
    def __init__(self, status: int, headers: Message, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    def error(self) -> ServiceError:
        request_id = self.headers.get("X-Request-Id")
        try:
            problem = json.loads(self.body)
            if "code" in problem:
                return ServiceError(self.status, problem["code"], problem.get("detail", problem.get("title", "")),
                                    problem.get("errors"), request_id)
            return ServiceError(self.status, "inference_failed", problem["error"], None, request_id)
        except (ValueError, KeyError, TypeError):  # not the service's own, but a proxy's
            text = self.body[:200].decode(errors="replace")
            return ServiceError(self.status, f"http_{self.status}", text, None, request_id)


def query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(query_text(part) for part in value)
    return str(value)


def encode_query(query: Query | None) -> str:
    pairs = [(name, query_text(value)) for name, value in (query or {}).items() if value is not None]
    return "?" + urllib.parse.urlencode(pairs) if pairs else ""


def body_size(body: Body) -> int:
    return body.stat().st_size if isinstance(body, Path) else sum(len(part) for part in body)


def is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Nothing has arrived on an idle connection, not even its end."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return not selector.select(0)


class Transport:
    """May be used by any number of threads, and after a fork."""

    def __init__(self, url: str, token: str | None, ca_file: str | None, timeout: float, retries: int) -> None:
        self.arguments = {"url": url, "token": token, "ca_file": ca_file, "timeout": timeout, "retries": retries}
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https", "unix") or (parts.scheme == "unix") == bool(parts.netloc):
            raise ValueError(f"{url!r} is not http://HOST[:PORT], https://HOST[:PORT] or unix:PATH")
        self.lock, self.idle, self.pid = threading.Lock(), list[http.client.HTTPConnection](), os.getpid()
        self.url, self.parts, self.timeout, self.retries = url, parts, timeout, retries
        self.prefix = "" if parts.scheme == "unix" else parts.path.rstrip("/")
        self.context = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
        self.headers = {"User-Agent": f"kldiv-python/{__version__}"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def _new(self) -> http.client.HTTPConnection:
        if self.parts.scheme == "unix":
            return _UnixConnection(self.parts.path, self.timeout)
        host, port = self.parts.hostname or "", self.parts.port
        if self.context:
            return http.client.HTTPSConnection(host, port, timeout=self.timeout, context=self.context)
        return http.client.HTTPConnection(host, port, timeout=self.timeout)

    def _take(self) -> http.client.HTTPConnection:
        with self.lock:
            if self.pid != os.getpid():
                self.idle, self.pid = [], os.getpid()
            while self.idle:
                connection = self.idle.pop()
                if is_quiet(connection):
                    return connection
                connection.close()
        return self._new()

    def __del__(self) -> None:
        for connection in getattr(self, "idle", ()):
            connection.close()

    def close(self) -> None:
        with self.lock:
            while self.idle:
                self.idle.pop().close()

    @staticmethod
    def _send(connection: http.client.HTTPConnection, method: str, target: str, headers: Mapping[str, str],
              body: Body) -> None:
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body_size(body) or method not in ("GET", "DELETE"):
            connection.putheader("Content-Length", str(body_size(body)))
        connection.endheaders()
        if isinstance(body, Path):
            with body.open("rb") as file:
                while piece := file.read(PIECE):
                    connection.send(piece)
        else:
            for part in body:
                connection.send(part)

    def _exchange(self, connection: http.client.HTTPConnection, method: str, target: str, headers: Mapping[str, str],
                  body: Body) -> Response:
        try:
            self._send(connection, method, target, headers, body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the response may say why: 413 comes before the body was read
        with connection.getresponse() as answer:
            response = Response(answer.status, answer.headers, answer.read())
            kept = not answer.will_close
        if kept:
            with self.lock:
                self.idle.append(connection)
        else:
            connection.close()
        return response

    def _pause(self, attempt: int, response: Response | None) -> None:
        asked = response.headers.get("Retry-After", "") if response else ""
        seconds = float(asked) if asked.isdigit() else 0.1 * 2 ** attempt
        time.sleep(min(seconds, MAX_PAUSE_S) * random.uniform(1, 1.25))

    def request(self, method: str, path: str, query: Query | None = None, headers: Mapping[str, str] | None = None,
                body: Body = (), repeatable: bool | None = None) -> Response:
        """One request; errors are raised. Without `repeatable`, GET, PUT, PATCH and DELETE may be repeated."""
        may_repeat = method != "POST" if repeatable is None else repeatable
        target = self.prefix + path + encode_query(query)
        for attempt in range(self.retries + 1):
            last, response, arrived = attempt == self.retries, None, False
            connection = self._take()
            try:
                if connection.sock is None:
                    connection.connect()
                arrived = True
                response = self._exchange(connection, method, target, {**self.headers, **(headers or {})}, body)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if last or (arrived and not may_repeat) or isinstance(error, ssl.SSLCertVerificationError):
                    raise ServiceError(0, "unreachable", f"{self.url}: {error or type(error).__name__}") from error
            if response and response.status < 400:
                return response
            if response and (last or not may_repeat or response.status not in TEMPORARY):
                raise response.error()
            self._pause(attempt, response)
        raise AssertionError("the last attempt returns or raises")
