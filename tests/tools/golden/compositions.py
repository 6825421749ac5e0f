"""Writes compositions.jsonl: requests that name spaces, temperature, dim, mask, weight, broadcast,
base and gradients, and the results of the same composition of PyTorch's operators in float64.

    /usr/bin/python3 tests/tools/golden/compositions.py [SEED ROWS] > tests/tools/golden/compositions.jsonl

Masked values are nan. `scale` is the size of the largest term, which errors are relative to.
"""
import itertools
import json
import math
import random
import sys
import warnings

import torch
import torch.nn.functional as F

SEED, ROWS = (int(word) for word in sys.argv[1:3] or (8, 400))
torch.manual_seed(SEED)
rng = random.Random(SEED)
warnings.simplefilter("ignore")
SPACES = ("log_prob", "prob", "logit")


def encode(value):
    if isinstance(value, list):
        return [encode(v) for v in value]
    if isinstance(value, bool) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def values(space, shape, sigma=2):
    z = torch.randn(shape, dtype=torch.float64) * sigma
    return z if space == "logit" else z.exp() if space == "prob" else z


def logarithms(v, space, options, joint, keep):
    """Log-probabilities of an operand v of the joint shape."""
    if space == "logit":
        dims = options.get("dim", [-1])
        dims = [dims] if isinstance(dims, int) else dims
        if keep is not None:  # what is left of a row alone; nothing of some rows
            keep = keep.expand(joint)
            v = v.masked_fill(~keep & keep.any(dims[0], keepdim=True), -math.inf)
        z = v / options.get("temperature", 1)
        return z - z.logsumexp(dims, keepdim=True) if joint else z - z
    return v.log() if space == "prob" else v


def losses_of(x, t, options, keep):
    """Loss of each element. Masked ones are replaced before and after, so that no nan reaches a
    derivative."""
    joint = torch.broadcast_shapes(x.shape, t.shape)
    x, t = x.expand(joint), t.expand(joint)
    if keep is not None and "dim" in options:  # a mask of whole rows
        dims = sorted(d % len(joint) for d in options["dim"])
        keep = keep.expand([n for i, n in enumerate(joint) if i not in dims])
        for d in dims:
            keep = keep.unsqueeze(d)
        keep = keep.expand(joint)
    if keep is not None:
        x = torch.where(keep, x, torch.ones_like(x))
        t = torch.where(keep, t, torch.ones_like(t))
    mine = None if keep is None or "dim" in options else keep
    q = logarithms(x, options.get("input_space", "log_prob"), options, joint, mine)
    space = options.get("target_space", "prob")
    p = logarithms(t, space, options, joint, mine) if space == "logit" else t
    if mine is not None:
        q = torch.where(mine, q, torch.zeros_like(q))
        p = torch.where(mine, p, torch.ones_like(p))
    loss = F.kl_div(q, p, reduction="none", log_target=space != "prob")
    return loss if keep is None else torch.where(keep, loss, torch.zeros_like(loss))


def reduce(loss, reduction, weight, keep):
    left = torch.ones_like(loss) if keep is None else keep.expand(loss.shape).double()
    weights = left if weight is None else weight.expand(loss.shape) * left
    if weight is not None:
        loss = loss * weights
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.sum() / weights.sum()
    if reduction == "batchmean" and loss.dim() > 0:
        return loss.sum() / left.flatten(1).amax(1).sum() if loss.dim() > 1 else loss.sum() / left.sum()
    return loss.sum()


def write(x, t, options, weight=None, keep=None, upstream=False):
    x, t = x.clone().requires_grad_(), t.clone().requires_grad_()
    terms = losses_of(x, t, options, None if keep is None else keep)
    loss = terms.sum(options["dim"]) if options.get("dim") else terms
    full = None if keep is None else keep.expand(loss.shape)
    answer = reduce(loss, options["reduction"], weight, full)
    if options.get("base") == "2":
        answer = answer / math.log(2)
    g = torch.randn(answer.shape, dtype=torch.float64) if upstream else torch.ones_like(answer)
    answer.backward(g)
    body = dict(options, input=encode(hidden(x, t, keep, options)[0]),
                target=encode(hidden(x, t, keep, options)[1]), gradient=["input", "target"])
    if weight is not None:
        body["weight"] = encode(weight.tolist())
    if keep is not None:
        body["mask"] = keep.tolist()
    if upstream:
        body["grad_output"] = encode(g.tolist())
    scale = float(torch.nan_to_num(terms.abs()).max()) if terms.numel() else 0
    print(json.dumps({"body": body, "loss": encode(answer.tolist()), "scale": scale,
                      "gradient": {"input": encode(x.grad.tolist()),
                                   "target": encode(t.grad.tolist())}}))


def hidden(x, t, keep, options):
    """The operands as sent: elements that are masked and not broadcast are nan."""
    lists = []
    for v in (x.detach().clone(), t.detach().clone()):
        if keep is not None and "dim" not in options and v.shape == keep.shape:
            v[~keep] = math.nan
        lists.append(v.tolist())
    return lists


def choose(*options):
    return rng.choice(options)


def random_row(number):
    shape = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
    if number % 16 == 0:
        shape = choose([3, 70], [40, 5], [2, 40, 3], [65, 2])
    options = {"reduction": choose("mean", "batchmean", "sum", "none"),
               "input_space": SPACES[number % 3], "target_space": SPACES[number // 3 % 3]}
    if rng.random() < 0.5:
        temperature = choose(0.5, 2, 3.7)
        if "logit" in (options["input_space"], options["target_space"]):
            options["temperature"] = temperature
    if rng.random() < 0.6:
        dims = rng.sample(range(len(shape)), rng.randint(1, len(shape)))
        options["dim"] = [d - choose(0, len(shape)) for d in dims]
    if rng.random() < 0.2:
        options["base"] = "2"
    x_shape, t_shape = list(shape), list(shape)
    if rng.random() < 0.3:
        options["broadcast"] = True
        for sizes in (x_shape, t_shape):
            for i in range(len(sizes)):
                sizes[i] = choose(1, sizes[i], sizes[i])
        if rng.random() < 0.5:
            t_shape = t_shape[rng.randint(0, len(shape)):]
    joint = list(torch.broadcast_shapes(x_shape, t_shape))
    summed = {d % len(joint) for d in options["dim"]} if "dim" in options else set()
    left = [n for i, n in enumerate(joint) if i not in summed]
    weight = keep = None
    if rng.random() < 0.4:
        sizes = left[rng.randint(0, len(left)):]
        weight = torch.rand([choose(1, n) for n in sizes], dtype=torch.float64)
    if rng.random() < 0.4:
        sizes = list(left) if rng.random() < 0.6 else [choose(1, n) for n in left[rng.randint(0, len(left)):]]
        keep = torch.rand(sizes) < 0.7
        if not keep.any():
            keep = torch.ones_like(keep)
    x = values(options["input_space"], x_shape)
    t = values(options["target_space"], t_shape)
    if options["reduction"] == "none" or rng.random() < 0.3:
        write(x, t, options, weight, keep, upstream=rng.random() < 0.5)
    else:
        write(x, t, options, weight, keep)


for number in range(ROWS):
    random_row(number)
