"""A service of this process alone: kldivd on a unix socket in a folder of its own."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from types import TracebackType

from ._transport import Transport

START_SECONDS = 30.0
RESPONSE_SECONDS = 3600.0  # for tables of gigabytes
PDEATHSIG = 1  # of prctl
END_SECONDS = 2.0
MAX_FOLDER = 80
REQUEST_MEMORY = 4  # bytes of --max-memory for each of the tables: body, a copy of each part, values
LEAST_MEMORY = 1 << 30


def program() -> str:
    """The server: KLDIV_SERVER, or the one that the wheel has, or that of a package."""
    beside = pathlib.Path(__file__).with_name("kldivd")
    found = os.environ.get("KLDIV_SERVER") or (str(beside) if beside.exists() else shutil.which("kldivd"))
    if not found:
        raise FileNotFoundError("the program kldivd is needed and not installed: a wheel that `make wheel` builds has it, and so "
                                "has the Debian package of `make deb`; KLDIV_SERVER=PATH names another")
    return found


def end_with_parent(parent: int) -> None:
    ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


def folder_for_socket() -> str:
    """The folder of temporary files, or /tmp: the name of a socket has few bytes, and --listen separates names by commas."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) < MAX_FOLDER and not set(folder) & set(",?#%@") else "/tmp"


def accepts(path: str) -> bool:
    """True if a server listens on a unix socket, whose name is there a moment before."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


class LocalService(contextlib.AbstractContextManager[Transport]):
    """Runs from `with` to its end; no one else can reach it. Bodies have at most `max_body` bytes."""

    def __init__(self, max_body: int) -> None:
        self.max_body = max_body
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Transport:
        self.folder = tempfile.TemporaryDirectory(prefix="kldiv-", dir=folder_for_socket())
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def start(self) -> Transport:
        path, log = os.path.join(self.folder.name, "socket"), os.path.join(self.folder.name, "log")
        own = {name: value for name, value in os.environ.items() if not name.startswith("KLDIV_")}
        with open(log, "wb") as errors:
            self.process = subprocess.Popen(
                [program(), "--listen", f"unix:{path}", "--listen-mode", "600", "--log-level", "error", "--drain-timeout", "0",
                 "--max-body", str(self.max_body), "--max-memory", str(max(LEAST_MEMORY, REQUEST_MEMORY * self.max_body))],
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, env=own,
                preexec_fn=functools.partial(end_with_parent, os.getpid()))
        end = time.monotonic() + START_SECONDS
        while not accepts(path):
            if self.process.poll() is not None or time.monotonic() > end:
                with open(log, errors="replace") as errors_of:
                    raise OSError(f"{program()} does not start: {' '.join(errors_of.read().split()) or 'no message'}")
            time.sleep(0.005)
        return Transport(f"unix:{path}", None, None, RESPONSE_SECONDS, 0)

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.folder.cleanup()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
