#!/usr/bin/env python3
"""The cost of options: libkldiv beside its own plain sum, and beside what PyTorch and scipy take for the
same by composition and autograd. One thread, minima of runs in turn.

    /usr/bin/python3 tests/tools/bench/options.py build/release/libkldiv.so

Needs Debian's python3-torch; uses python3-scipy if it is installed.
"""
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

N, RUNS = 1 << 20, 15


def clock(function, count):
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) / count * 1e9


def pair(length, dtype=torch.float32):
    x = F.log_softmax(torch.randn(N // length, length), 1).to(dtype)
    t = F.softmax(torch.randn(N // length, length), 1).to(dtype)
    return x, t


def logits(length, dtype=torch.float32):
    return [(torch.randn(N // length, length) * 3).to(dtype) for _ in range(2)]


def backward(loss, leaves):
    """A function that computes a loss of x and t, and its derivatives by the leaves."""
    def run():
        for leaf in leaves:
            leaf.grad = None
            leaf.requires_grad_(True)
        loss().backward()
        for leaf in leaves:
            leaf.requires_grad_(False)
    return run


def gradients(dtype):
    for by, what in ((True, "input"), ("both", "both")):
        x, t = pair(64, dtype)
        leaves = [x, t] if by == "both" else [x]
        yield (f"{str(dtype)[6:]} sum, gradient of {what}", (x, t), dict(reduction="sum", gradient=by),
               backward(lambda: F.kl_div(x, t, reduction="sum"), leaves), *GOALS[what])


def weighted():
    x, t = pair(64)
    mask, weight = torch.rand(x.shape) < 0.8, torch.rand(x.shape)
    yield ("mean, a mask of each element", (x, t), dict(reduction="mean", mask=mask),
           lambda: F.kl_div(x, t, reduction="none").masked_select(mask).mean(), 2.2, 12)
    yield ("mean, a weight of each element", (x, t), dict(reduction="mean", weight=weight),
           lambda: (F.kl_div(x, t, reduction="none") * weight).sum() / weight.sum(), 2.5, 4)


def rows():
    for length, goal in ((8, 2.2), (64, 2.2), (1024, 1.4)):
        x, t = pair(length)
        yield (f"rows of {length}, divergence of each", (x, t),
               dict(reduction="none", dim=-1, loss_shape=(N // length,)),
               lambda: F.kl_div(x, t, reduction="none").sum(-1), goal, 4)


def softmaxes():
    for dtype, length, goals in ((torch.float32, 1024, (2.5, 8, 5, 5)),
                                 (torch.float32, 32768, (2.5, 8, 5, 5)),
                                 (torch.bfloat16, 32768, (2.5, 8, 5, 5))):
        x, t = logits(length, dtype)
        spaces = dict(reduction="sum", input_space="logit", target_space="logit")

        def loss():
            return F.kl_div(F.log_softmax(x, 1), F.softmax(t, 1), reduction="sum")
        what = f"{str(dtype)[6:]} logits, rows of {length}"
        yield what, (x, t), spaces, loss, *goals[:2]
        yield (f"{what}, student's gradient", (x, t), dict(spaces, gradient=True),
               backward(loss, [x]), *goals[2:])


def diagnosed():
    for length in (8, 64, 1024):
        x, t = pair(length)
        yield (f"sum, diagnosed, rows of {length}", (x, t), dict(reduction="sum", diagnose=True),
               None, 2.2, None)


def drift():
    """Histograms against one reference, in bits; the peer is scipy."""
    for length in (10, 30, 100):
        count = N // length
        x = F.softmax(torch.randn(count, length), 1)
        t = F.softmax(torch.randn(length), 0)
        p, q = t.numpy(), x.numpy()
        options = dict(reduction="none", dim=-1, broadcast=True, base2=True, compat="math",
                       input_space="prob", loss_shape=(count,))
        yield (f"probabilities against one reference of {length}", (x, t), options,
               (lambda: rel_entr(p, q).sum(-1)) if rel_entr else None, None, 5)


GOALS = {"input": (2.2, 4), "both": (3.5, 8)}
SIMDS = ("avx512", "avx2")


def text(value, form):
    return "" if value is None else form % value


def measure(library, simds, call):
    """Minima of ns an element: of each instruction set, of its plain sum, and of the peer."""
    what, (x, t), options, peer, goal_plain, goal_peer = call
    plain_dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    plain_x, plain_t = pair(64, plain_dtype)
    ours = library.prepare(x, t, **options)
    plain = library.prepare(plain_x, plain_t, "sum")
    least = {}
    for i in range(RUNS + 2):
        for simd in simds:
            library.select(simd)
            for name, function, count in ((simd, ours, x.numel()), (simd + " plain", plain, N)):
                least[name] = min(clock(function, count), least.get(name, 1e9) if i > 1 else 1e9)
        if peer:
            least["peer"] = min(clock(peer, x.numel()), least.get("peer", 1e9) if i > 1 else 1e9)
    best = least[simds[0]]
    cells = [what]
    for simd in simds:
        cells += [f"{least[simd]:.2f}", f"{least[simd] / least[simd + ' plain']:.2f}"]
    cells += [text(goal_plain, "%g"), text(least.get("peer"), "%.2f"),
              text(least["peer"] / best if peer else None, "%.1f"), text(goal_peer, "%g")]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    library = Library(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    warnings.simplefilter("ignore")
    simds = SIMDS[SIMDS.index(library.simd):] if library.simd in SIMDS else (library.simd,)
    print(f"\nOptions beside the plain sum and PyTorch {torch.__version__} (scipy where probabilities "
          "are compared with a reference), 2^20 elements, one thread, minima of "
          f"{RUNS}, ns an element\n")
    heads = [f"{simd} | x plain" for simd in simds]
    print("| | " + " | ".join(heads) + " | goal | peer | peer / kldiv | goal |")
    print("|" + "---|" * (5 + 2 * len(simds)))
    for calls in (gradients(torch.float32), gradients(torch.float64), weighted(), rows(),
                  softmaxes(), diagnosed(), drift()):
        for call in calls:
            measure(library, simds, call)


main()
