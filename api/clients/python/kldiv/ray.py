"""Ray: each shard or table gives a partial result, or counts, in a task; these merge on the driver, and kilobytes travel. The
workers need the package: its wheel has the library.

Ray is not in Debian: what it is given is tested by its documented calls, remote(), put() and get()."""
from __future__ import annotations

from typing import Any, Iterable

import ray

from ._partial import Partial
from .counts import count
from .group import Group
from .loss import partial as partial_of
from .results import Results


def _shard(input: Any, target: Any, options: dict[str, Any]) -> Partial:
    return partial_of(input, target, **options)


def partial(shards: Iterable[tuple[Any, Any]], **options: Any) -> Partial:
    """The partial result of pairs of input and target: arrays, or references to objects of Ray."""
    task = ray.remote(_shard)
    return Partial().merge(*ray.get([task.remote(input, target, options) for input, target in shards]))


def observe(group: Group, tables: Iterable[Any], timestamp: Any = None, **arguments: Any) -> Results:
    """group.observe of tables together, as one: paths that the workers can read, data frames, or references to these, as a
    dataset's to_pandas_refs() gives them."""
    task, configs = ray.remote(count), ray.put(group.monitors())
    return group.observe(sum(ray.get([task.remote(configs, table) for table in tables])), timestamp, **arguments)
