"""The Kullback-Leibler divergence: the loss of arrays in this process, and a client of the kldiv service.

    import kldiv
    kldiv.kl_div(x, t, reduction="batchmean")   # numpy, pandas, memory maps; tensors of PyTorch with backward()
    kldiv.sparse_kl_div(x, indices, values)     # of a target that names few elements of each row
    whole = kldiv.partial(x[:n], t[:n]) + kldiv.partial(x[n:], t[n:])
    whole.loss("mean")                          # the bits of kldiv.kl_div(x, t)

    print(kldiv.compare("last.csv", "this.csv"))  # which columns drift, and why

    client = kldiv.Client("http://127.0.0.1:8080")
    client.kl_div(x, t, reduction="batchmean")
"""
from typing import TYPE_CHECKING, Any

from ._library import simd, threads
from ._partial import Partial
from ._version import __version__
from .aio import AsyncClient, AsyncGroup
from .client import Client
from .comparison import compare
from .counts import TableCounts, count
from .errors import LossError, ServiceError
from .group import Group, Monitors
from .loss import kl_div, partial, sparse_kl_div, step, value_and_grad
from .region import Region
from .results import Result, Results

if TYPE_CHECKING:
    from .module import KLDivLoss, SparseKLDivLoss
else:
    def __getattr__(name: str) -> Any:
        """The modules are imported when one is used, as PyTorch is with them."""
        if name not in ("KLDivLoss", "SparseKLDivLoss"):
            raise AttributeError(f"module 'kldiv' has no attribute {name!r}")
        from . import module
        return getattr(module, name)

__all__ = ["AsyncClient", "AsyncGroup", "Client", "Group", "KLDivLoss", "LossError", "Monitors", "Partial", "Region", "Result",
           "Results", "ServiceError", "SparseKLDivLoss", "TableCounts", "__version__", "compare", "count", "kl_div", "partial", "simd",
           "sparse_kl_div", "step", "threads", "value_and_grad"]
