#!/usr/bin/env python3
"""Random requests to a running kldivd, compared with the installed PyTorch.

    /usr/bin/python3 tests/tools/peer/random_requests.py build/kldivd [N]

Compares value (1e-13 of the terms' sizes in float64), NaN pattern, shape, dtype and the texts of
warnings; of operands without special values also gradients, and losses
summed over axes; then as many compositions of operators, as tests/tools/golden/compositions.py draws them.
Needs Debian's python3-torch. Exits 1 if any request disagrees.
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings

import torch
import torch.nn.functional as F

TOLERANCE = {"float64": 1e-13, "float32": 2e-6}


def encode(value):
    if isinstance(value, list):
        return [encode(v) for v in value]
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def decode(value):
    return [decode(v) for v in value] if isinstance(value, list) else float(value)


def start(binary):
    port_file = tempfile.NamedTemporaryFile()
    server = subprocess.Popen([binary, "--listen", "127.0.0.1:0", "--port-file", port_file.name,
                               "--log-level", "warning"])
    while True:
        text = open(port_file.name).read()
        if text.endswith("\n"):
            return server, int(text)
        time.sleep(0.01)


def draw(rng):
    shape = [rng.randint(1, 5) for _ in range(rng.randint(0, 4))]
    dtype = rng.choice(["float64", "float32"])
    log_target = rng.random() < 0.4
    x = torch.randn(shape, dtype=torch.float64)
    t = torch.rand(shape, dtype=torch.float64)
    if log_target:
        t = t.log()
    special = rng.random() < 0.5
    for tensor, values in ((x, [math.inf, -math.inf, math.nan, 0]),
                           (t, [math.nan, 0, -0.5] if not log_target else [-math.inf, math.nan])):
        if special and rng.random() < 0.4 and tensor.numel():
            tensor.view(-1)[rng.randrange(tensor.numel())] = rng.choice(values)
    options = {}
    if rng.random() < 0.8:
        options["reduction"] = rng.choice(["mean", "batchmean", "sum", "none", "elementwise_mean"])
    if log_target:
        options["log_target"] = True
    if rng.random() < 0.2:
        options[rng.choice(["size_average", "reduce"])] = rng.choice([True, False])
        if options.get("reduction") == "batchmean":
            del options["reduction"]
    ours = {}
    if not special and "reduction" in options and not {"size_average", "reduce"} & set(options):
        ours["gradient"] = rng.sample(["input", "target"], rng.randint(0, 2))
        ours["dim"] = [d - rng.choice([0, len(shape)])
                       for d in rng.sample(range(len(shape)), rng.randint(0, len(shape)))]
    return x.to(getattr(torch, dtype)), t.to(getattr(torch, dtype)), options, ours, dtype


def pytorch(x, t, options, ours):
    """The loss, the texts of its warnings, and the requested gradients."""
    x, t = x.clone().requires_grad_(), t.clone().requires_grad_()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = F.kl_div(x, t, **options)
    if ours.get("dim"):  # whose mean is another than the warning speaks of
        caught = [w for w in caught if not str(w.message).startswith("reduction: 'mean'")]
        value = F.kl_div(x, t, reduction="none", log_target=options.get("log_target", False))
        value = value.sum(ours["dim"])
        first = value.shape[0] if value.dim() else 1
        reductions = {"none": lambda v: v, "sum": torch.sum, "batchmean": lambda v: v.sum() / first}
        value = reductions.get(options["reduction"], torch.mean)(value)
    if ours.get("gradient"):
        value.backward(torch.ones_like(value))
    gradients = {name: {"input": x, "target": t}[name].grad for name in ours.get("gradient", ())}
    return value.detach(), [str(w.message) for w in caught if w.category is UserWarning], gradients


def same(ours, theirs, tolerance):
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(same(a, b, tolerance) for a, b in zip(ours, theirs))
    if math.isnan(theirs) or math.isinf(theirs):
        return math.isnan(ours) if math.isnan(theirs) else ours == theirs
    return abs(ours - theirs) <= tolerance


def check(url, rng):
    x, t, options, ours, dtype = draw(rng)
    value, texts, gradients = pytorch(x, t, options, ours)
    body = {"input": encode(x.tolist()), "target": encode(t.tolist()), "dtype": dtype, **options,
            **ours}
    request = urllib.request.Request(url, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    answer = json.load(urllib.request.urlopen(request))
    p = t.double().exp() if options.get("log_target") else t.double()
    scale = float(torch.nan_to_num((p * x.double()).abs(), 0, 0, 0).sum()) + p.numel() + 1
    agree = (same(decode(answer["loss"]), value.tolist(), TOLERANCE[dtype] * scale)
             and answer["shape"] == list(value.shape) and answer["dtype"] == dtype
             and [w["message"] for w in answer["warnings"]] == texts
             and all(same(decode(answer["gradient"][name]), gradient.tolist(),
                          TOLERANCE[dtype] * (float(gradient.abs().max()) + 10))
                     for name, gradient in gradients.items()))
    if not agree:
        print("disagree:", json.dumps(body), json.dumps(answer), value.tolist(), texts)
    return agree


def compositions(n):
    """Requests that PyTorch needs several operators for, with their answers; the seed is the hour."""
    script = os.path.join(os.path.dirname(__file__), "..", "golden", "compositions.py")
    seed = int(time.time()) // 3600
    print("compositions of seed", seed)
    lines = subprocess.run([sys.executable, script, str(seed), str(n)], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def check_composition(url, row):
    request = urllib.request.Request(url, json.dumps(row["body"]).encode(),
                                     {"Content-Type": "application/json"})
    answer = json.load(urllib.request.urlopen(request))
    pairs = [(answer["loss"], row["loss"])] + [(answer["gradient"][name], row["gradient"][name])
                                               for name in ("input", "target")]
    agree = all(same(decode(a), decode(b), 1e-12 * (1 + row["scale"] + largest(decode(b))))
                for a, b in pairs)
    if not agree:
        print("disagree:", json.dumps(row["body"]), json.dumps(answer), json.dumps(row))
    return agree


def largest(value):
    if isinstance(value, list):
        return max((largest(v) for v in value), default=0)
    return abs(value) if math.isfinite(value) else 0


def main():
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    rng = random.Random(1)
    torch.manual_seed(1)
    server, port = start(sys.argv[1])
    try:
        url = f"http://127.0.0.1:{port}/kl_div"
        good = sum(check(url, rng) for _ in range(n))
        good += sum(check_composition(url, row) for row in compositions(n))
    finally:
        server.terminate()
        server.wait()
    print(f"PyTorch {torch.__version__}: {good} passed, {2 * n - good} failed")
    return good != 2 * n


sys.exit(main())
