#!/usr/bin/env python3
"""Logits of a student and a teacher, and their divergence at a temperature: libkldiv beside PyTorch's
compositions, kl_div(log_softmax(x / T), softmax(y / T)) and those of COMPOSITIONS, each in a process of its own, two
threads.

    /usr/bin/python3 tests/tools/bench/distillation.py build/release/libkldiv.so

Prints medians of time, and the peak of resident memory above the two tensors. PyTorch's softmax
lacks float16 on CPUs: the time includes the conversion by .float().
"""
import math
import statistics
import subprocess
import sys
import time

ROWS, CLASSES, T, RUNS = 8192, 32000, 2.0, 5
K, BETA, ALPHA = 64, 0.5, 0.1


def forward(x, y, _):
    import torch.nn.functional as F
    return F.kl_div(F.log_softmax(x / T, 1), F.softmax(y / T, 1), reduction="batchmean")


def mixture(log_p, log_q, share):
    import torch
    return torch.logaddexp(log_p + math.log(share), log_q + math.log(1 - share))


def js(x, y, _):
    import torch.nn.functional as F
    log_q, log_p = F.log_softmax(x / T, 1), F.log_softmax(y / T, 1)
    log_m = mixture(log_p, log_q, BETA)
    return sum(share * F.kl_div(log_m, log, reduction="batchmean", log_target=True)
               for share, log in ((BETA, log_p), (1 - BETA, log_q)))


def skew(x, y, _):
    import torch.nn.functional as F
    log_q, log_p = F.log_softmax(x / T, 1), F.log_softmax(y / T, 1)
    return F.kl_div(mixture(log_p, log_q, ALPHA), log_p, reduction="batchmean", log_target=True)


def sparse(x, log_p, indices):
    import torch
    log_q = (x / T).gather(1, indices) - (x / T).logsumexp(1, keepdim=True)
    p, r, s = log_p.exp(), 1 - log_p.exp().sum(1), 1 - log_q.exp().sum(1)
    return ((p * (log_p - log_q)).sum(1) + r * (torch.log(r) - torch.log(s))).mean()


COMPOSITIONS = {"forward": forward, "js": js, "skew": skew, "sparse": sparse}


def measure(path, peer, dtype, kind, gradient, rows):
    import torch
    import torch.nn.functional as F
    from libkldiv import Library

    torch.set_num_threads(2)
    torch.manual_seed(1)
    dtype = getattr(torch, dtype)
    x, y = (torch.empty(rows, CLASSES, dtype=dtype) for _ in range(2))
    for tensor in (x, y):
        for i in range(0, rows, 256):
            tensor[i:i + 256] = torch.randn(256, CLASSES) * 3
    library, indices = Library(path), None
    options = {"temperature": T, "gradient": gradient, "pool": library.pool(2)}
    if kind == "sparse":
        y, indices = torch.cat([F.log_softmax(part / T, 1) for part in y.split(256)]).topk(K)
        ours = library.prepare(x, y, "batchmean", input_space="logit", target_space="log_prob", indices=indices,
                               **options)
    else:
        ours = library.prepare(x, y, "batchmean", input_space="logit", target_space="logit", divergence=kind,
                               beta=BETA if kind == "js" else 0, alpha=ALPHA if kind == "skew" else 0, **options)

    def theirs():
        a = x.float() if dtype == torch.float16 else x.detach()
        b = y.float() if dtype == torch.float16 else y
        a.requires_grad_(bool(gradient))
        loss = COMPOSITIONS[kind](a, b, indices)
        if gradient:
            loss.backward()
            a.grad.to(dtype)
        return loss, None

    function, times = theirs if peer else ours, []
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the high-water mark begins anew
    before = resident("VmRSS")
    for _ in range(RUNS):
        start = time.perf_counter()
        loss = function()[0]
        times.append(time.perf_counter() - start)
    print(statistics.median(times), resident("VmHWM") - before, float(loss.detach()))


def resident(what):
    """In MB, from /proc/self/status."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1000 for line in file if line.startswith(what))


def main(path):
    print(f"\nDistillation, ({ROWS}, {CLASSES}) logits at temperature {T:g}, batchmean, two threads, "
          f"medians of {RUNS}\n")
    print("| dtype | | kldiv, s | PyTorch, s | ratio | kldiv, MB | PyTorch, MB | kldiv's loss | "
          "PyTorch's |\n|---|---|---|---|---|---|---|---|---|")
    rows_of_table = [(dtype, "forward", gradient) for dtype in ("float16", "float32") for gradient in (0, 1)]
    for dtype, kind, gradient in rows_of_table + [("float32", kind, 1) for kind in ("js", "skew", "sparse")]:
        rows = ROWS if dtype == "float16" else ROWS // 2
        results = []
        for peer in (0, 1):
            command = [sys.executable, __file__, path, str(peer), dtype, kind, str(gradient), str(rows)]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            results.append([float(word) for word in output.split()])
        (a, a_mb, a_loss), (b, b_mb, b_loss) = results
        what = ("" if kind == "forward" else f"{kind}: ") + ("loss, gradient of input" if gradient else "loss") + (
            "" if rows == ROWS else f", {rows} rows")
        print(f"| {dtype} | {what} | {a:.3f} | {b:.3f} | {b / a:.1f} | {a_mb:.0f} | {b_mb:.0f} | "
              f"{a_loss:.6g} | {b_loss:.6g} |", flush=True)


if len(sys.argv) == 2:
    main(sys.argv[1])
else:
    measure(sys.argv[1], int(sys.argv[2]), *sys.argv[3:5], int(sys.argv[5]), int(sys.argv[6]))
