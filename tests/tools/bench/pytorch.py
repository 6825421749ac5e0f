#!/usr/bin/env python3
"""Time of libkldiv, PyTorch and scipy on the same arrays, interleaved, one thread each.

    /usr/bin/python3 tests/tools/bench/pytorch.py build/release/libkldiv.so

Prints medians in ns an element and their ratio. Needs Debian's python3-torch; uses python3-scipy if it is installed.
"""
import statistics
import sys
import time
import warnings

import torch
import torch.nn.functional as F

try:
    from scipy.special import rel_entr
except ImportError:
    rel_entr = None

from libkldiv import Library

N, RUNS = 1 << 20, 21
FLOATS = (torch.float64, torch.float32)
REDUCTIONS = ("sum", "none")


def clock(function):
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) / N * 1e9


def draw(dtype, log_target):
    x = F.log_softmax(torch.randn(N // 64, 64, dtype=dtype), 1).reshape(-1)
    t = F.softmax(torch.randn(N // 64, 64, dtype=dtype), 1).reshape(-1)
    return x, t.log() if log_target else t


def row(what, ours, peer):
    pairs = [(clock(ours), clock(peer)) for _ in range(RUNS + 3)][3:]
    a, b = (statistics.median(p[i] for p in pairs) for i in (0, 1))
    ratio = statistics.median(p[1] / p[0] for p in pairs)
    print(f"| {what} | {a:.3f} | {b:.3f} | {ratio:.1f} |", flush=True)


def main():
    library = Library(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    warnings.simplefilter("ignore")
    print(f"\nkldiv ({library.simd}) beside PyTorch {torch.__version__}, "
          f"2^20 elements, one thread, ns an element\n")
    print("| dtype | reduction | log_target | kldiv | PyTorch | ratio |\n|---|---|---|---|---|---|")
    for dtype in FLOATS:
        for log_target in (False, True):
            for reduction in REDUCTIONS:
                x, t = draw(dtype, log_target)
                ours = library.prepare(x, t, reduction, log_target)
                row(f"{str(dtype)[6:]} | {reduction} | {str(log_target).lower()}", ours,
                    lambda: F.kl_div(x, t, reduction=reduction, log_target=log_target))
    if rel_entr is None:
        print("\n(python3-scipy is not installed: no comparison with rel_entr)")
        return
    print("\nBeside scipy's rel_entr(target, exp(input)), which is given the exponential\n")
    print("| dtype | reduction | kldiv | rel_entr | ratio |\n|---|---|---|---|---|")
    for dtype in FLOATS:
        x, t = draw(dtype, False)
        p, q = t.numpy(), x.exp().numpy()
        row(f"{str(dtype)[6:]} | sum", library.prepare(x, t, "sum", False),
            lambda: rel_entr(p, q).sum())


main()
