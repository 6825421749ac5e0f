"""Dask: each block of two arrays gives a partial result where it is, and these merge to the loss.

    python3 with_dask.py tcp://scheduler:8786"""
import sys

import dask
import dask.array as da
import numpy as np

import kldiv


def block_partial(x, t, options):
    """The partial result of a block, as an array of one object."""
    result = np.empty((1,) * x.ndim, object)
    result.flat[0] = kldiv.partial(x, t, **options)
    return result


def merge(partials):
    return sum(partial.flat[0] for partial in partials)


def partial(x, t, **options):
    """The partial result of Dask arrays, after .compute(). Blocks divide the first axis alone, at multiples
    of kldiv.step of their numpy arrays. A block whose worker is lost is computed again."""
    blocks = da.map_blocks(block_partial, x, t, options, dtype=object,
                           chunks=((1,) * x.numblocks[0],) + ((1,),) * (x.ndim - 1))
    return dask.delayed(merge)(blocks.to_delayed().ravel().tolist())


if __name__ == "__main__":
    from distributed import Client

    with Client(sys.argv[1]):
        a = np.random.default_rng(0).standard_normal((2, 100_000, 10))
        logits = {"input_space": "logit", "target_space": "logit"}
        x, t = (da.from_array(b, chunks=(7_000, 10)) for b in a)
        print(partial(x, t, **logits).compute().loss("batchmean"),
              kldiv.kl_div(*a, reduction="batchmean", **logits))
