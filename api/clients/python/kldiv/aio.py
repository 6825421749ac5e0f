"""The client for asyncio: each call runs in a thread of the event loop's executor, which waits there for the service.
So many calls wait at once as the executor has threads; loop.set_default_executor changes that."""
from __future__ import annotations

import asyncio
import functools
from types import TracebackType
from typing import Any, Awaitable, Callable, TypeVar

from .client import Client
from .group import Group

R = TypeVar("R")


def awaited(method: Callable[..., R]) -> Callable[..., Awaitable[R]]:
    """The method, called in a thread on what the object stands for."""
    @functools.wraps(method)
    async def call(self: Any, *arguments: Any, **named: Any) -> R:
        return await asyncio.to_thread(method, self.own, *arguments, **named)
    return call


class AsyncClient:
    """What kldiv.Client does, to be awaited; group() alone is not. `client` is the one that does it."""

    def __init__(self, url: str = "http://127.0.0.1:8080", token: str | None = None, *, ca_file: str | None = None,
                 timeout: float = 60.0, retries: int | None = None) -> None:
        self.client = self.own = Client(url, token, ca_file=ca_file, timeout=timeout, retries=retries)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        self.client.close()

    def group(self, name: str) -> AsyncGroup:
        return AsyncGroup(self.client.group(name))

    close = awaited(Client.close)
    compare = awaited(Client.compare)
    groups = awaited(Client.groups)
    kl_div = awaited(Client.kl_div)
    sparse_kl_div = awaited(Client.sparse_kl_div)
    partial = awaited(Client.partial)
    ready = awaited(Client.ready)
    region = awaited(Client.region)
    request = awaited(Client.request)
    value_and_grad = awaited(Client.value_and_grad)


class AsyncGroup:
    """What kldiv.Group does, to be awaited. `group` is the one that does it."""

    def __init__(self, group: Group) -> None:
        self.group = self.own = group
        self.name = group.name

    delete = awaited(Group.delete)
    delete_note = awaited(Group.delete_note)
    delete_window = awaited(Group.delete_window)
    delete_windows = awaited(Group.delete_windows)
    evaluate = awaited(Group.evaluate)
    events = awaited(Group.events)
    latest = awaited(Group.latest)
    monitors = awaited(Group.monitors)
    mute = awaited(Group.mute)
    note = awaited(Group.note)
    notes = awaited(Group.notes)
    observe = awaited(Group.observe)
    reference = awaited(Group.reference)
    renew = awaited(Group.renew)
    settings = awaited(Group.settings)
    summary = awaited(Group.summary)
    unmute = awaited(Group.unmute)
    windows = awaited(Group.windows)
