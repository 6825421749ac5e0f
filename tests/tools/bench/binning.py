"""Counting float64 values by bins: libkldiv beside numpy.histogram of the same values and edges, which
must agree, in turn, one thread.

    /usr/bin/python3 tests/tools/bench/binning.py build/release/libkldiv.so
"""
import ctypes
import sys
import time

import numpy

N, RUNS = 1 << 22, 7
GOALS = {10: 2, 100: 6}


def address(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def clock(function):
    start = time.perf_counter()
    result = function()
    return (time.perf_counter() - start) / N * 1e9, result


def count(kl, edges, values):
    bins = len(edges) - 1
    counts = numpy.zeros(bins + 3, numpy.uint64)
    kl.kl_bin_counts(address(edges), ctypes.c_size_t(bins), 0, address(values),
                     ctypes.c_size_t(values.size), address(counts))
    return counts


def edges_of(kl, values, bins):
    edges = numpy.zeros(bins + 2)
    kl.kl_quantile_edges.restype = ctypes.c_size_t
    made = kl.kl_quantile_edges(address(values), ctypes.c_size_t(values.size),
                                ctypes.c_size_t(bins), address(edges))
    return edges[:made + 1].copy()


def main():
    kl = ctypes.CDLL(sys.argv[1])
    rng = numpy.random.default_rng(1)
    kinds = {"normal": rng.normal(size=N), "lognormal": rng.lognormal(size=N),
             "whole numbers": rng.integers(0, 500, N).astype(float)}
    print(f"\nBinning beside numpy {numpy.__version__}, 2^22 float64, bins at the quantiles, "
          "medians of runs in turn, ns a value\n")
    print("| values | bins | kldiv | goal | numpy.histogram | ratio | quantiles: kldiv | numpy |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, values in kinds.items():
        for bins, goal in GOALS.items():
            edges = edges_of(kl, values.copy(), bins)
            ours, theirs = [], []
            for _ in range(RUNS):
                a, counts = clock(lambda: count(kl, edges, values))
                b, (histogram, _) = clock(lambda: numpy.histogram(values, edges))
                assert (counts[1:-2] == histogram).all()
                ours.append(a)
                theirs.append(b)
            copy = values.copy()
            selected, _ = clock(lambda: edges_of(kl, copy, bins))
            quantiles, _ = clock(lambda: numpy.quantile(values, numpy.arange(bins + 1) / bins))
            a, b = numpy.median(ours), numpy.median(theirs)
            print(f"| {kind} | {bins} | {a:.2f} | {goal} | {b:.1f} | {b / a:.0f} | {selected:.1f} | "
                  f"{quantiles:.1f} |", flush=True)


main()
