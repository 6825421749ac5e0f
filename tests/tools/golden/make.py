#!/usr/bin/env python3
"""Writes vectors.jsonl: requests, and PyTorch's results.

    /usr/bin/python3 tests/tools/golden/make.py > tests/tools/golden/vectors.jsonl

Needs Debian's python3-torch; the tests only need the file. Each line holds a request's body and
the answer's members. Losses come from PyTorch in float64, applied to the numbers as rounded to
the request's dtype, and carry `scale`, the sum of |t log t| + |t x|, against which errors are
measured; the answer's dtype, shape, warnings and non-finite pattern come from the same call in
the dtype itself where PyTorch has it on a CPU. The first line holds the warnings' texts, to
which the others refer by position.
"""
import itertools
import json
import math
import sys
import warnings

import torch
import torch.nn.functional as F

torch.manual_seed(20)
INF, NAN = float("inf"), float("nan")
DTYPES = {"float64": torch.float64, "float32": torch.float32,
          "float16": torch.float16, "bfloat16": torch.bfloat16}


LINES, TEXTS = [], []


def encode(value):
    if isinstance(value, list):
        return [encode(v) for v in value]
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def call(x, t, options):
    """F.kl_div with the request's options, and the texts of its warnings."""
    arguments = dict(options)
    legacy = arguments.get("size_average") is not None or arguments.get("reduce") is not None
    if legacy and arguments.get("reduction") == "batchmean":
        del arguments["reduction"]  # the functional form divides once more; see kldiv.h
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = F.kl_div(x, t, **arguments)
    return value, [str(w.message) for w in caught if w.category is UserWarning]


def applied(options):
    size_average, reduce = options.get("size_average"), options.get("reduce")
    if size_average is not None or reduce is not None:
        return "none" if reduce is False else "sum" if size_average is False else "mean"
    name = options.get("reduction", "mean")
    return "mean" if name == "elementwise_mean" else name


def emit(name, x, t, options, dtype="float64"):
    x = x.to(DTYPES[dtype])
    t = t.to(DTYPES[dtype])
    value, texts = call(x.double(), t.double(), options)
    p = t.double().exp() if options.get("log_target") else t.double()
    log_p = t.double() if options.get("log_target") else torch.log(t.double())
    terms = torch.nan_to_num((p * log_p).abs(), 0, 0, 0) + torch.nan_to_num((p * x.double()).abs(), 0, 0, 0)
    if dtype in ("float64", "float32"):
        native, _ = call(x, t, options)
        assert list(native.shape) == list(value.shape)
    body = {"input": encode(x.double().tolist()), "target": encode(t.double().tolist())}
    if x.numel() == 0 or 0 in x.shape:
        body = {"input": [], "target": [], "shape": list(x.shape)}
    body.update(options)
    if dtype != "float64":
        body["dtype"] = dtype
    for text in texts:
        if text not in TEXTS:
            TEXTS.append(text)
    answer = {"loss": encode(value.tolist()), "shape": list(value.shape), "dtype": dtype,
              "reduction": applied(options), "warnings": [TEXTS.index(text) for text in texts],
              "scale": float(terms.sum())}
    LINES.append(json.dumps({"name": name, "body": body, "answer": answer}))


def softmax_pair(*shape):
    return (F.log_softmax(torch.randn(*shape, dtype=torch.float64), -1),
            F.softmax(torch.randn(*shape, dtype=torch.float64), -1))


def option_grid():
    """Every reduction, legacy flag and log_target."""
    x, t = softmax_pair(2, 5)
    reductions = [None, "mean", "batchmean", "sum", "none", "elementwise_mean"]
    flags = [None, True, False]
    for reduction, size_average, reduce, log_target in itertools.product(
            reductions, flags, flags, [None, False, True]):
        options = {k: v for k, v in (("reduction", reduction), ("size_average", size_average),
                                     ("reduce", reduce), ("log_target", log_target))
                   if v is not None}
        emit("options", x, t.log() if log_target else t, options)


def shape_grid():
    shapes = [(), (1,), (0,), (3, 0), (0, 3), (7,), (2, 5), (2, 3, 4), (3, 2, 4, 3, 2), (1, 1, 1, 1)]
    for shape, reduction, log_target, dtype in itertools.product(
            shapes, ["mean", "batchmean", "sum", "none"], [False, True], DTYPES):
        if 0 in shape and dtype != "float64":
            continue
        x, t = -3 * torch.rand(shape, dtype=torch.float64), torch.rand(shape, dtype=torch.float64)
        emit("shapes", x, t.log() if log_target else t,
             {"reduction": reduction, "log_target": log_target}, dtype)


def special_values():
    xs = [-2.5, -0.0, 0.0, 1.5, INF, -INF, NAN]
    probabilities = [0.4, 1.0, 0.0, -0.0, INF, -1.0, -INF, NAN]
    logs = [-0.5, 0.0, 2.0, INF, -INF, NAN]
    for dtype in ("float64", "float32"):
        for ts, log_target in ((probabilities, False), (logs, True)):
            pairs = list(itertools.product(xs, ts))
            x = torch.tensor([p[0] for p in pairs], dtype=torch.float64)
            t = torch.tensor([p[1] for p in pairs], dtype=torch.float64)
            emit("special", x, t, {"reduction": "none", "log_target": log_target}, dtype)
            for a, b in pairs:
                emit("special", torch.tensor([a], dtype=torch.float64),
                     torch.tensor([b], dtype=torch.float64),
                     {"reduction": "sum", "log_target": log_target}, dtype)


def known_cases():
    """Examples from documentation, issues and tests of PyTorch, R torch and OneFlow."""
    d = dict(dtype=torch.float64)
    x = torch.tensor([[2, 3, 5], [3, 2, 1]], **d)
    t = torch.tensor([[1, 2, 3], [4, 5, 6]], **d)
    for reduction in ("none", "sum", "mean", "batchmean"):
        emit("torch test_loss", x, t, {"reduction": reduction})
        emit("torch test_loss", x, t.log(), {"reduction": reduction, "log_target": True})
    a = F.log_softmax(torch.randn(4, 6, **d), -1)
    emit("itself", a, a, {"reduction": "none", "log_target": True})
    x = torch.tensor([[-1, -.5], [-2, -.2]], **d)
    t = torch.tensor([[.4, .6], [.1, .9]], **d)
    for reduction in ("none", "sum", "batchmean"):
        emit("two by two", x, t, {"reduction": reduction})
    emit("log_target", torch.tensor([-1., -2.], **d), torch.tensor([-.5, -1.5], **d),
         {"reduction": "none", "log_target": True})
    emit("rows not normalised", torch.tensor([.1132, .5477, .3390], **d).log(),
         torch.tensor([.1541, .0511, .0947], **d), {"reduction": "mean"})
    emit("log forgotten", torch.tensor([.5, .5], **d), torch.tensor([.5, .5], **d),
         {"reduction": "sum"})
    emit("overflow to float32", torch.tensor([-2.3135e+307, 6.6756e+307], **d),
         torch.tensor([1., 1.], **d), {"reduction": "mean"}, "float32")


def oneflow_grid():
    """Its test's shapes with positive targets; negative ones differ by rule, not by value."""
    for shape in ((3, 5), (5, 4, 6), (3, 2, 4, 3, 2), (1,)):
        for reduction, log_target in itertools.product(("none", "mean", "sum"), (False, True)):
            x, t = torch.randn(shape, dtype=torch.float64), torch.rand(shape, dtype=torch.float64)
            emit("oneflow", x, t.log() if log_target else t,
                 {"reduction": reduction, "log_target": log_target}, "float32")


for part in (option_grid, shape_grid, special_values, known_cases, oneflow_grid):
    part()
print(json.dumps({"torch": torch.__version__, "warnings": TEXTS}), *LINES, sep="\n")
print(f"made with PyTorch {torch.__version__}", file=sys.stderr)
