"""Prints what the package takes: the loss with its gradient beside PyTorch's, by turns, and observations of a folder that
is larger than memory should be.

usage: KLDIV_SERVER=build/kldivd build/python-environment/bin/python tests/system/python/measure.py [GB]"""
import os
import resource
import statistics
import sys
import tempfile
import time
import warnings

import numpy as np
from service import Server

import kldiv

warnings.simplefilter("ignore")


def turns(functions, rounds=10, calls=20):
    """Seconds of each function, by turns of some calls: the minimum, and the median. Between turns is a pause: PyTorch's
    threads of OpenMP go on for some milliseconds after a call, which would slow the other function."""
    seconds = [[] for _ in functions]
    for _ in range(rounds):
        for function, taken in zip(functions, seconds):
            time.sleep(0.05)
            for _ in range(calls):
                began = time.perf_counter()
                function()
                taken.append(time.perf_counter() - began)
    return [(min(taken), statistics.median(taken)) for taken in seconds]


def measure_loss():
    import torch
    import torch.nn.functional as F

    x, t = torch.randn(1024, 1024).log_softmax(-1), torch.randn(1024, 1024).softmax(-1)

    def step(function):
        x.grad = t.grad = None
        function(x, t, reduction="batchmean").backward()

    print(f"kl_div forward and backward of 2^20 float32 by {kldiv.simd()}, ns an element, minimum and median of 200 calls; "
          f"PyTorch {torch.__version__}")
    for both in False, True:
        x.requires_grad_(), t.requires_grad_(both)
        for threads in sorted({1, len(os.sched_getaffinity(0))}):
            kldiv.threads(threads)
            torch.set_num_threads(threads)
            ours, theirs = turns([lambda: step(kldiv.kl_div), lambda: step(F.kl_div)])
            times = [f"{low * 1e9 / 2**20:.2f} {median * 1e9 / 2**20:.2f}" for low, median in (ours, theirs)]
            print(f"gradient by {'both' if both else 'input'}, {threads} threads: kldiv {times[0]}, F.kl_div {times[1]}, "
                  f"ratio {theirs[0] / ours[0]:.1f} {theirs[1] / ours[1]:.1f}")


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
