#!/usr/bin/env python3
"""libkldiv beside PyTorch and scipy on the same arrays, in turn, one thread each.

    /usr/bin/python3 tests/bench/pytorch.py build/release/libkldiv.so

Prints medians in ns an element and their ratio. Needs Debian's python3-torch; python3-scipy if it is there.
"""
import ctypes
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

N, RUNS = 1 << 20, 21
DTYPES = {torch.float64: 0, torch.float32: 1}
REDUCTIONS = {"sum": 2, "none": 3}


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("ndim", ctypes.c_size_t),
                ("shape", ctypes.POINTER(ctypes.c_size_t)), ("data", ctypes.c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [("reduction", ctypes.c_int), ("size_average", ctypes.c_int),
                ("reduce", ctypes.c_int), ("log_target", ctypes.c_bool), ("compat", ctypes.c_int)]


def prepare(library, x, t, reduction, log_target):
    shape = (ctypes.c_size_t * 1)(x.numel())
    tensors = [Tensor(DTYPES[v.dtype], 1, shape, v.data_ptr()) for v in (x, t)]
    options = Options(REDUCTIONS[reduction], 0, 0, log_target, 0)
    plan = ctypes.create_string_buffer(1024)
    loss = torch.empty_like(x)
    assert library.kl_plan(plan, ctypes.byref(tensors[0]), ctypes.byref(tensors[1]),
                           ctypes.byref(options), None)
    keep = (shape, tensors, options, loss)
    return lambda: library.kl_run(plan, None, ctypes.c_void_p(loss.data_ptr()), None) and keep


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
    library = ctypes.CDLL(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    warnings.simplefilter("ignore")
    library.kl_simd_name.restype = ctypes.c_char_p
    print(f"\nkldiv ({library.kl_simd_name().decode()}) beside PyTorch {torch.__version__}, "
          f"2^20 elements, one thread, ns an element\n")
    print("| dtype | reduction | log_target | kldiv | PyTorch | ratio |\n|---|---|---|---|---|---|")
    for dtype in DTYPES:
        for log_target in (False, True):
            for reduction in REDUCTIONS:
                x, t = draw(dtype, log_target)
                ours = prepare(library, x, t, reduction, log_target)
                row(f"{str(dtype)[6:]} | {reduction} | {str(log_target).lower()}", ours,
                    lambda: F.kl_div(x, t, reduction=reduction, log_target=log_target))
    if rel_entr is None:
        print("\n(python3-scipy is not installed: no comparison with rel_entr)")
        return
    print("\nBeside scipy's rel_entr(target, exp(input)), which is given the exponential\n")
    print("| dtype | reduction | kldiv | rel_entr | ratio |\n|---|---|---|---|---|")
    for dtype in DTYPES:
        x, t = draw(dtype, False)
        p, q = t.numpy(), x.exp().numpy()
        row(f"{str(dtype)[6:]} | sum", prepare(library, x, t, "sum", False),
            lambda: rel_entr(p, q).sum())


main()
