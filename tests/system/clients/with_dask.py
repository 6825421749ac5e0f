"""Dask: each block of two arrays gives a partial result where it is, and these merge to the loss.

    python3 with_dask.py tcp://scheduler:8786"""
import sys

import dask.array as da
import numpy as np

import kldiv
import kldiv.dask

if __name__ == "__main__":
    from distributed import Client

    with Client(sys.argv[1]):
        a = np.random.default_rng(0).standard_normal((2, 100_000, 10))
        logits = {"input_space": "logit", "target_space": "logit"}
        x, t = (da.from_array(b, chunks=(7_000, 10)) for b in a)
        print(kldiv.dask.partial(x, t, **logits).compute().loss("batchmean"),
              kldiv.kl_div(*a, reduction="batchmean", **logits))
