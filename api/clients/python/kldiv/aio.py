"""The client for asyncio: each call runs in a thread of the event loop's executor, which waits there for the service.
So many calls wait at once as the executor has threads; loop.set_default_executor changes that."""
from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Sequence

from .client import Client
from .group import Group
from .region import Region
from .results import Results


class AsyncClient:
    """What kldiv.Client does, to be awaited."""

    def __init__(self, url: str = "http://127.0.0.1:8080", token: str | None = None, *, ca_file: str | None = None,
                 timeout: float = 60.0, retries: int = 4) -> None:
        self.client = Client(url, token, ca_file=ca_file, timeout=timeout, retries=retries)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        self.client.close()

    async def request(self, method: str, path: str, **arguments: Any) -> Any:
        return await asyncio.to_thread(self.client.request, method, path, **arguments)

    async def ready(self) -> bool:
        return await asyncio.to_thread(self.client.ready)

    async def region(self, size: int, prefix: str = "kldiv_", mode: int = 0o600) -> Region:
        return await asyncio.to_thread(self.client.region, size, prefix, mode)

    async def kl_div(self, input: Any, target: Any, *arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(self.client.kl_div, input, target, *arguments, **options)

    async def value_and_grad(self, input: Any, target: Any, wrt: str | Sequence[str] = "input",
                             grad_output: Any = None, **options: Any) -> tuple[Any, dict[str, Any]]:
        return await asyncio.to_thread(self.client.value_and_grad, input, target, wrt, grad_output, **options)

    async def partial(self, input: Any, target: Any,
                      **options: Any) -> tuple[tuple[float, float], tuple[float, float]]:
        return await asyncio.to_thread(self.client.partial, input, target, **options)

    def group(self, name: str) -> AsyncGroup:
        return AsyncGroup(self.client.group(name))


class AsyncGroup:
    """What kldiv.Group does, to be awaited. `group` is the one that does it."""

    def __init__(self, group: Group) -> None:
        self.group = group

    async def reference(self, data: Any, **options: Any) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self.group.reference, data, **options)

    async def observe(self, data: Any, timestamp: Any = None, **options: Any) -> Results:
        return await asyncio.to_thread(self.group.observe, data, timestamp, **options)

    async def evaluate(self, data: Any, **options: Any) -> Results:
        return await asyncio.to_thread(self.group.evaluate, data, **options)

    async def windows(self, name: str | None = None, start: Any = None, end: Any = None) -> Any:
        return await asyncio.to_thread(self.group.windows, name, start, end)

    async def events(self, since: Any = None) -> Any:
        return await asyncio.to_thread(self.group.events, since)

    async def summary(self) -> dict[str, Any]:
        return await asyncio.to_thread(self.group.summary)

    async def settings(self, monitor: str | None = None, **changes: Any) -> Any:
        return await asyncio.to_thread(self.group.settings, monitor, **changes)
