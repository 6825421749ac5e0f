#!/usr/bin/env python3
"""Rows of all lengths with the gradient, one thread: libkldiv beside PyTorch's compositions, ns an element (of short sparse
rows, a row).

    /usr/bin/python3 tests/tools/bench/rows.py build/release/libkldiv.so [LIBRARY...]

Prints medians in turn, of each library that is named, and how many times as fast as PyTorch the first is."""
import statistics
import sys
import time
import warnings

import torch
import torch.nn.functional as F

from libkldiv import Library

COUNT, RUNS = 1 << 21, 11
LONG = (1000, 32_000, 128_256)


def logits(rows, n, dtype=torch.float32):
    return (torch.randn(rows, n) * 3).to(dtype)


def forward(x, y):
    return F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction="batchmean")


def reverse(x, y):
    return F.kl_div(F.log_softmax(y, -1), F.log_softmax(x, -1), reduction="batchmean", log_target=True)


def sparse(of_input):
    def loss(x, p, indices):
        log_q = of_input(x).log() if of_input is not F.log_softmax else F.log_softmax(x, -1)
        named = log_q.gather(-1, indices)
        rest = 1 - p.sum(-1)
        return ((p * (p.log() - named)).sum(-1) + rest * (rest.log() - torch.log1p(-named.exp().sum(-1)))).mean()
    return loss


def with_gradient(loss, x, *others):
    def run():
        x.grad = None
        loss(x, *others).backward()
    x.requires_grad_()
    return run


def cases():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for n in (8, 32, 100, *LONG):
            if dtype == torch.float64 and n > 1000:
                continue
            rows = max(16, COUNT // n)
            x, y = logits(rows, n, dtype), logits(rows, n, dtype)
            options = {"reduction": "batchmean", "input_space": "logit", "target_space": "logit", "gradient": True}
            yield f"logits, {str(dtype)[6:]}, rows of {n:,}", x.numel(), (x, y), options, forward
            if n == 1000:
                yield f"… reverse", x.numel(), (x, y), {**options, "divergence": "reverse"}, reverse
    for space in ("logit", "prob"):
        for n, k in ((2, 1), (4, 2), (8, 4), (1000, 64), (32_000, 64)):
            rows = max(64, COUNT // (8 * n) if n < 100 else COUNT // n)
            x = logits(rows, n)
            x = x if space == "logit" else x.softmax(-1)
            p, indices = logits(rows, n).softmax(-1).topk(k)
            count = rows if n < 100 else x.numel()
            unit = ", a row" if n < 100 else ""
            options = {"reduction": "mean", "input_space": space, "indices": indices, "gradient": True}
            yield (f"{k} of {n:,}, {space}{unit}", count, (x, p), options,
                   (lambda x, p, i=indices, s=space: sparse(F.log_softmax if s == "logit" else lambda v: v)(x, p, i)))
    p, q = (torch.rand(1000, 2000, dtype=torch.float64) for _ in range(2))
    p[torch.rand(1000, 2000) < 0.3] = float("nan")
    yield ("js of probabilities along dim 0, 30 % NaN", p.numel(), (q, p),
           {"reduction": "sum", "input_space": "prob", "divergence": "js", "beta": 0.5, "dim": 0}, None)


def clock(function, count):
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) / count * 1e9


def main():
    libraries = [Library(path) for path in sys.argv[1:]]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    warnings.simplefilter("ignore")
    print(f"\nRows with the gradient, kldiv ({libraries[0].simd}) beside PyTorch {torch.__version__}, one thread, ns an element\n")
    print("| rows | kldiv |" + " |" * (len(libraries) - 1) + " PyTorch | ratio |\n|---" * 1 + "|---" * (2 + len(libraries)) + "|")
    for name, count, tensors, options, peer in cases():
        runs = [library.prepare(*tensors, **options) for library in libraries]
        if peer:
            runs.append(with_gradient(peer, tensors[0].detach(), *tensors[1:]))
        times = [[clock(run, count) for run in runs] for _ in range(RUNS + 2)][2:]
        medians = [statistics.median(column) for column in zip(*times)]
        ratio = f"{statistics.median(row[-1] / row[0] for row in times):.1f}" if peer else "–"
        cells = [f"{median:.2f}" for median in medians] + ([] if peer else ["–"])
        print(f"| {name} | {' | '.join(cells)} | {ratio} |", flush=True)


main()
