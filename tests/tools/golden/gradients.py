"""Writes gradients.jsonl: operands, options, upstream gradients, and the gradients of PyTorch's
autograd in float64.

    /usr/bin/python3 tests/tools/golden/gradients.py > tests/tools/golden/gradients.jsonl
"""
import itertools
import json
import math
import warnings

import torch
import torch.nn.functional as F

torch.manual_seed(4)
warnings.simplefilter("ignore")
INF, NAN = math.inf, math.nan
# Exclude exponentials that overflow float64: autograd computes 0 times infinity, kldiv the limit.
SPECIALS = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-310, 700.0, -700.0, 0.3]


def encode(value):
    if isinstance(value, list):
        return [encode(v) for v in value]
    return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace(
        "nan", "NaN")


def write(x, t, reduction, log_target, upstream):
    x, t = x.clone().requires_grad_(), t.clone().requires_grad_()
    loss = F.kl_div(x, t, reduction=reduction, log_target=log_target)
    loss.backward(upstream if upstream is not None else torch.ones_like(loss))
    print(json.dumps({"input": encode(x.tolist()), "target": encode(t.tolist()),
                      "reduction": reduction, "log_target": log_target,
                      "grad_output": None if upstream is None else encode(upstream.tolist()),
                      "gradient": {"input": encode(x.grad.tolist()),
                                   "target": encode(t.grad.tolist())}}))


for shape in ((), (1,), (5,), (3, 7), (2, 3, 11)):
    for reduction, log_target in itertools.product(("none", "sum", "mean", "batchmean"),
                                                   (False, True)):
        for with_upstream in (False, True):
            p, q = (torch.rand(shape, dtype=torch.float64) for _ in range(2))
            upstream = None
            if with_upstream:
                upstream = torch.randn(shape if reduction == "none" else (), dtype=torch.float64)
            write(p.log(), q.log() if log_target else q, reduction, log_target, upstream)
for log_target in (False, True):
    pairs = torch.tensor(list(itertools.product(SPECIALS, SPECIALS)), dtype=torch.float64)
    write(pairs[:, 0], pairs[:, 1], "none", log_target, None)
