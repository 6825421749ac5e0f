"""Prints what the package takes: the loss with its gradient beside PyTorch's, by turns, and observations of a folder that
is larger than memory should be.

usage: KLDIV_SERVER=build/kldivd build/python-environment/bin/python tests/python/measure.py [GB]"""
import os
import resource
import sys
import tempfile
import time
import warnings

import numpy as np
from service import Server

import kldiv

warnings.simplefilter("ignore")


def minima(functions, rounds=60):
    """Seconds of each function: the least of its turns."""
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            began = time.perf_counter()
            function()
            best[i] = min(best[i], time.perf_counter() - began)
    return best


def measure_loss():
    import torch
    import torch.nn.functional as F

    x = torch.randn(1024, 1024).log_softmax(-1).requires_grad_()
    t = torch.randn(1024, 1024).softmax(-1)

    def step(function):
        x.grad = None
        function(x, t, reduction="batchmean").backward()

    for threads in 1, len(os.sched_getaffinity(0)):
        kldiv.threads(threads)
        ours, theirs = minima([lambda: step(kldiv.kl_div), lambda: step(F.kl_div)])
        print(f"kl_div forward and backward of 2^20 float32, {threads} threads: {ours * 1e9 / 2**20:.2f} ns an element; "
              f"F.kl_div of PyTorch {torch.__version__}, {torch.get_num_threads()} threads: "
              f"{theirs * 1e9 / 2**20:.2f}: {theirs / ours:.1f} times as fast")


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_folder(gigabytes):
    rng = np.random.default_rng(0)
    server = Server()
    group = kldiv.Client(server.url).group("large")
    with tempfile.TemporaryDirectory() as directory:
        rows = 1 << 20  # a row group of 8 columns of float64: 64 MiB
        first = os.path.join(directory, "0.npz")
        np.savez(first, **{f"c{i}": rng.standard_normal(rows) for i in range(8)})
        files = round(gigabytes * 1e9 / os.path.getsize(first))
        for i in range(1, files):
            os.link(first, os.path.join(directory, f"{i}.npz"))
        group.reference(first, sample=100_000)
        before, began = resident(), time.perf_counter()
        results = group.observe(directory)
        seconds = time.perf_counter() - began
        size = files * os.path.getsize(first) / 1e9
        print(f"observe of {size:.1f} GB in {files} .npz files: {seconds:.1f} s, {size / seconds:.2f} GB/s, "
              f"{resident():.0f} MiB resident at most ({before:.0f} before), n {results[0]['n']:,}")
    server.stop()


if __name__ == "__main__":
    measure_folder(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
    measure_loss()
