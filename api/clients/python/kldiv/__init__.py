"""The Kullback-Leibler divergence: the loss of arrays in this process, and a client of the kldiv service.

    import kldiv
    kldiv.kl_div(x, t, reduction="batchmean")   # numpy, pandas, memory maps; tensors of PyTorch with backward()
    whole = kldiv.partial(x[:n], t[:n]) + kldiv.partial(x[n:], t[n:])
    whole.loss("mean")                          # the bits of kldiv.kl_div(x, t)

    client = kldiv.Client("http://127.0.0.1:8080")
    client.kl_div(x, t, reduction="batchmean")
"""
from ._library import simd, threads
from ._version import __version__
from .aio import AsyncClient, AsyncGroup
from .client import Client
from .counts import TableCounts, count
from .errors import LossError, ServiceError
from .group import Group, Monitors
from .loss import Partial, kl_div, partial, step, value_and_grad
from .region import Region
from .results import Result, Results

__all__ = ["AsyncClient", "AsyncGroup", "Client", "Group", "LossError", "Monitors", "Partial", "Region", "Result", "Results",
           "ServiceError", "TableCounts", "__version__", "count", "kl_div", "partial", "simd", "step", "threads",
           "value_and_grad"]
