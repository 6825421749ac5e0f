"""The Kullback-Leibler divergence: the loss of arrays in this process, and a client of the kldiv service.

    import kldiv
    kldiv.kl_div(x, t, reduction="batchmean")   # numpy, pandas, memory maps; tensors of PyTorch with backward()
    whole = kldiv.partial(x[:n], t[:n]) + kldiv.partial(x[n:], t[n:])
    whole.loss("mean")                          # the bits of kldiv.kl_div(x, t)
"""
from ._library import simd, threads
from ._version import __version__
from .errors import LossError, ServiceError
from .loss import Partial, kl_div, partial, step, value_and_grad

__all__ = ["LossError", "Partial", "ServiceError", "__version__", "kl_div", "partial", "simd", "step", "threads",
           "value_and_grad"]
