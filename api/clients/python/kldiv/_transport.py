"""HTTP over kept connections, TCP, TLS or a unix socket, by the standard library.

What may be repeated is: after a lost connection, a timeout, or a 429, 502, 503 or 504, with growing pauses, or longer ones
that Retry-After asks for, for RETRY_SECONDS. Other requests are sent again only if they surely did not arrive."""
from __future__ import annotations

import contextlib
import datetime
import http.client
import io
import itertools
import json
import os
import random
import re
import selectors
import socket
import ssl
import threading
import time
import urllib.parse
from email.message import Message
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence, Union

from ._version import __version__
from .errors import ServiceError

Buffer = Union[bytes, memoryview]
Body = Union[Sequence[Buffer], Path]  # buffers one after another, or a file
Query = Mapping[str, Any]

MAX_PAUSE_S = 5.0
RETRY_SECONDS = 30.0  # as long as a service may take to be replaced
PIECE = 1 << 20
TEMPORARY = (429, 502, 503, 504)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class _TimedReader(io.RawIOBase):
    """What arrives on a socket until a moment: each read alone has a timeout, which a trickle would never reach. `file` is
    the socket's own, which keeps it open after the connection has closed it."""

    def __init__(self, sock: socket.socket, file: Any) -> None:
        self.sock, self.file, timeout = sock, file, sock.gettimeout()
        self.end = None if timeout is None else time.monotonic() + timeout

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.end is not None:
            left = self.end - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self.sock.settimeout(left)
        return self.sock.recv_into(buffer)

    def close(self) -> None:
        self.file.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp = io.BufferedReader(_TimedReader(sock, self.fp), 1 << 16)


def page_of(member: str, row: Any = dict) -> dict[str, Any]:
    """What a page of a list has: its rows, and the cursor of the next page."""
    return {member: [row], "next": (str, type(None))}


def fits(value: Any, expected: Any) -> bool:
    """True if a value of JSON has the expected form: a type; [form], a list of it; {name: form}, a dict with these members, of
    which `name?` may be absent; or a tuple, any of its forms."""
    if isinstance(expected, tuple):
        return any(fits(value, each) for each in expected)
    if isinstance(expected, list):
        return isinstance(value, list) and all(fits(each, expected[0]) for each in value)
    if isinstance(expected, dict):
        return isinstance(value, dict) and all(fits(value[name.rstrip("?")], each) if name.rstrip("?") in value else name[-1] == "?"
                                               for name, each in expected.items())
    return isinstance(value, expected)


class Response:
    def __init__(self, url: str, status: int, headers: Message, body: bytes) -> None:
        self.url, self.status, self.headers, self.body = url, status, headers, body
        self.attempts = 1  # requests that may have arrived, with this one

    def json(self, expected: Any = object) -> Any:
        """The body, which has what is expected, as fits() takes it."""
        answer = self.read(json.loads) if self.body else None
        if not fits(answer, expected):
            raise self.unexpected()
        return answer

    def read(self, parse: Callable[[bytes], Any]) -> Any:
        """The body, parsed; an error that shows it if it is not the service's."""
        try:
            return parse(self.body)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, MemoryError, RecursionError) as error:
            raise self.unexpected() from error

    def unexpected(self) -> ServiceError:
        """The error of a response that is not the service's: a redirect, or a page of a proxy."""
        place = self.headers.get("Location")
        words = " ".join(re.sub(r"<[^>]*>", " ", self.body[:4000].decode(errors="replace")).split())[:100]
        what = f"redirects to {place}" if place else f"answers {words!r} ({self.headers.get('Content-Type', 'of no type')})"
        return ServiceError(self.status, "not_the_service", f"{self.url} {what}", None, self.headers.get("X-Request-Id"))

    def error(self) -> ServiceError:
        request_id = self.headers.get("X-Request-Id")
        problem: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            problem = json.loads(self.body)
        if fits(problem, {"code": str, "detail?": (str, type(None)), "title?": (str, type(None)), "errors?": ([dict], type(None))}):
            words = problem.get("detail") or problem.get("title") or ""
            return ServiceError(self.status, problem["code"], words, problem.get("errors"), request_id)
        if fits(problem, {"error": str}):
            return ServiceError(self.status, "inference_failed", problem["error"], None, request_id)
        text = self.body[:200].decode(errors="replace")  # not the service's own, but a proxy's
        return ServiceError(self.status, f"http_{self.status}", text, None, request_id)


def plain(value: Any) -> Any:
    """A value of numpy, or a duration, for json."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset, range)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def query_text(value: Any, name: str = "") -> str:
    if isinstance(value, datetime.timedelta):
        return f"{value.total_seconds():.15g}{'s' if name == 'window' else ''}"  # without s it counts values
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(query_text(part) for part in value)
    if not isinstance(value, (str, int, float)):
        raise TypeError(f"{value!r} is no value of a parameter: numbers, texts, booleans, durations and lists of these are")
    return str(value)


def encode_query(query: Query | None) -> str:
    if not isinstance(query, (Mapping, type(None))):
        raise TypeError(f"a query is a dict, not {query!r}")
    pairs = [(name, query_text(value, name)) for name, value in (query or {}).items() if value is not None]
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

    def __init__(self, url: str, token: str | None, ca_file: str | None, timeout: float,
                 retries: int | None) -> None:
        self.arguments = {"url": url, "token": token, "ca_file": ca_file, "timeout": timeout, "retries": retries}
        given: list[tuple[str, Any, Any]] = [
            ("url", url, str), ("token", token, (str, type(None))), ("timeout", timeout, (int, float)),
            ("retries", retries, (int, type(None))), ("ca_file", ca_file, (str, os.PathLike, type(None)))]
        for name, value, types in given:
            if not isinstance(value, types):
                raise TypeError(f"{name} cannot be {value!r}")
        if not timeout > 0 or (retries or 0) < 0:
            raise ValueError(f"timeout and retries cannot be {timeout} and {retries}")
        parts = urllib.parse.urlsplit(url)
        _ = parts.port  # ValueError if it is none
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
        connection.response_class = _TimedResponse
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
            response = Response(self.url + target, answer.status, answer.headers, answer.read())
            kept = not answer.will_close
        if kept:
            connection.sock.settimeout(self.timeout)
            with self.lock:
                self.idle.append(connection)
        else:
            connection.close()
        return response

    @staticmethod
    def _pause(attempt: int, response: Response | None) -> None:
        asked = response.headers.get("Retry-After", "") if response else ""
        least = min(0.1 * 2 ** min(attempt, 9), MAX_PAUSE_S)
        seconds = max(least, min(float(asked), RETRY_SECONDS)) if asked.isascii() and asked.isdigit() else least
        time.sleep(seconds * random.uniform(1, 1.25))

    def request(self, method: str, path: str, query: Query | None = None, headers: Mapping[str, str] | None = None,
                body: Body = (), repeatable: bool | None = None, retries: int | None = None) -> Response:
        """One request; errors are raised. Without `repeatable`, GET, PUT, PATCH and DELETE may be repeated."""
        may_repeat = method != "POST" if repeatable is None else repeatable
        retries = self.retries if retries is None else retries
        target, end = self.prefix + path + encode_query(query), time.monotonic() + RETRY_SECONDS
        attempts = 0
        for attempt in itertools.count():
            last = time.monotonic() >= end if retries is None else attempt >= retries
            response, arrived = None, False
            connection = self._take()
            try:
                if connection.sock is None:
                    connection.connect()
                arrived, attempts = True, attempts + 1
                response = self._exchange(connection, method, target, {**self.headers, **(headers or {})}, body)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if last or (arrived and not may_repeat) or isinstance(error, ssl.SSLCertVerificationError):
                    raise ServiceError(0, "unreachable", f"{self.url}: {error or type(error).__name__}") from error
            if response and 200 <= response.status < 300:
                response.attempts = attempts
                return response
            if response and response.status < 400:
                raise response.unexpected()
            if response and (last or not may_repeat or response.status not in TEMPORARY):
                raise response.error()
            self._pause(attempt, response)
        raise AssertionError("the last attempt returns or raises")
