"""Writes rules.jsonl: streams of windows, and the verdicts and states that the rules give them, by scipy.

    /usr/bin/python3 tests/tools/golden/rules.py > tests/tools/golden/rules.jsonl

Streams are drawn by splitmix64 and whole numbers alone, so that tests/suites/monitors/rules.c draws the same. The rules are
those of api/README.md, in plain counts of all windows: bins made of labels, cells that are joined, the heaviest of them, all
of them beside other, the heaviest text without a bin, pools and whether their newest windows take part, the rise and the
fall of a state, scaled references of seasons, ratios of single cells. Expected of
each window: verdict, windows of the pool that decides, its kl, p_value and bins, the state, the cell that a ratio named and
its ratio.
"""
import json
import math
import sys

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, chi2, gamma, poisson

CHOSEN, UNCHOSEN, EXPECTED, KEPT, PSEUDOCOUNT, TAU = 5, 10, 5, 20, 0.5, 3
RARE, NEVER = brentq(lambda x: poisson.cdf(CHOSEN - 1, x) - 1e-6, 5, 60, xtol=1e-14, rtol=1e-15), -math.log(1e-6)
M64 = np.uint64(0xFFFFFFFFFFFFFFFF)


def mix(i):
    with np.errstate(over="ignore"):
        z = (np.asarray(i, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def draw(seed, part, n, weights, missing):
    """Indices of cells by weights; -1 is a missing value."""
    z = mix(np.uint64((seed << 40) + (part << 24)) + np.arange(n, dtype=np.uint64))
    ends = np.cumsum(np.array(weights, np.uint64))
    x = np.searchsorted(ends, z % ends[-1], side="right").astype(int)
    x[(z >> np.uint64(40)) % np.uint64(1000) < np.uint64(missing)] = -1
    return x


def weights_of(stream, t):
    """Weights of the cells in window t, or of the reference (-1)."""
    k, s = stream["cells"], stream["exponent"]
    w = [10**9 // (i + 1) ** s for i in range(k)] + [0] * 3
    if stream.get("period") and t >= 0:
        turn = t % stream["period"]
        w[:k] = [10**9 // (1 + (i + turn) % k) for i in range(k)]
    if stream["rarest"]:
        w[k - 1] = sum(w) // stream["rarest"]
    if not stream["from"] <= t < stream["to"]:
        return w
    total = sum(w)
    if stream["drift"] == "swap":
        w[0], w[min(9, k - 1)] = w[min(9, k - 1)], w[0]
    elif stream["drift"] == "rare":
        w[k - 1] += total // 9
    elif stream["drift"] == "new":
        w[k] = total * stream["percent"] // 100
    elif stream["drift"] == "three":
        w[k:] = [total * stream["percent"] // 300] * 3
    elif stream["drift"] == "double":
        w[k - 1] *= 2
    elif stream["drift"] == "turn":
        w[:k] = w[k - 1 :: -1]
    elif stream["drift"] == "tilt":
        w[: k // 2] = [x * (100 + stream["percent"]) // 100 for x in w[: k // 2]]
    return w


def choose(values):
    rows = len(values)
    counts = np.bincount(values[values >= 0])
    seen = counts[counts > 0]
    chooses = (mix(np.arange(rows)) >> np.uint64(63)).astype(bool)
    if seen.min() >= UNCHOSEN and len(seen) <= 1000:
        return np.argsort(-counts, kind="stable")[: len(seen)], np.ones(rows, bool), NEVER / rows, 0
    first = np.bincount(values[chooses & (values >= 0)], minlength=len(counts))
    order = np.array([i for i in np.argsort(-first, kind="stable") if counts[i]])
    labels = order[first[order] >= CHOSEN][:1000]
    if len(labels) < 2:
        labels = order[:2]
    return labels, ~chooses, RARE / max(1, chooses.sum()), int(chooses.sum())


def is_kept(c, r):
    n, N = c.sum(), r.sum()
    return (c + r)[:-1] * min(n, N) / (n + N) >= EXPECTED


def joined(c, r):
    """Counts with what is too small in the last cell, and the cells that are left."""
    keep = is_kept(c, r)
    return [np.append(x[:-1][keep], x[:-1][~keep].sum() + x[-1]) for x in (c, r)] + [np.append(np.flatnonzero(keep), len(c) - 1)]


def takes_part(windows, r):
    """False if the newest windows, oldest first, have left the drift of the others; r are counts of the reference."""
    whole = np.sum(windows, 0)
    use = whole + r > 0
    cells = use.sum()
    q = (r[use] + PSEUDOCOUNT) / (r.sum() + PSEUDOCOUNT * cells)
    h = 1
    while h <= len(windows) // 2:
        new = np.sum(windows[-h:], 0)[use]
        rest = whole[use] - new
        p = (rest + PSEUDOCOUNT) / (rest.sum() + PSEUDOCOUNT * cells)
        if np.where(new > 0, new * np.log(p / q), 0).sum() < -TAU:
            return False
        h *= 2
    return True


def scores(c, r):
    use = c + r > 0
    c, r = c[use], r[use]
    n, N = c.sum(), r.sum()
    p, q = [(x + PSEUDOCOUNT) / (x.sum() + PSEUDOCOUNT * len(x)) for x in (c, r)]
    t = (c + r) / (n + N)
    with np.errstate(all="ignore"):
        g = 2 * (np.where(c > 0, c * np.log(c / (t * n)), 0).sum() + np.where(r > 0, r * np.log(r / (t * N)), 0).sum())
    return (p * np.log(p / q)).sum(), chi2.sf(g, len(c) - 1) if len(c) > 1 else 1.0, len(c), (len(c) - 1) / 2 * (1 / n + 1 / N)


class Monitor:
    def __init__(self, stream, reference, share, min_observations):
        self.s, self.reference, self.share, self.min = stream, reference, share, min_observations
        self.significance = 1e-4 / (math.log2(stream["pool"]) + 1)
        self.windows, self.refs, self.others, self.pool_from, self.rose, self.state = [], [], [], 0, 0, 0
        self.verdicts, self.cut, self.left = [], 0, 0

    def level(self, kl, p):
        return 0 if p >= self.significance or kl < 0.02 else 2 if kl >= 0.1 else 1

    def against(self, size):
        if not self.s.get("period"):
            return self.reference
        c, r = self.windows[-size:], self.refs[-size:]
        n, N = np.array([x.sum() for x in c]), np.array([x.sum() for x in r])
        q = sum(a * x / b for a, b, x in zip(n, N, r)) / n.sum()
        return q * n.sum() ** 2 / (n**2 / N).sum()

    def heaviest(self, size):
        """The text without a bin that is most frequent in the windows: its counts in each, and how many texts there are."""
        sums, rest, kept, most = {}, 0, [], None
        for other in reversed(self.others[-size:]):
            first = sorted(other.items(), key=lambda x: (-x[1], x[0]))
            kept.insert(0, dict(first[:KEPT]))
            for label, count in first[:KEPT]:
                sums[label] = sums.get(label, 0) + count
                most = label if most is None or sums[label] > sums[most] else most
            rest += sum(count for _, count in first[KEPT:])
        self.cut += rest > 0
        return np.array([k.get(most, 0) for k in kept]) if sums else None, len(sums) + rest

    def tests(self, size):
        """kl, p and bins of each test of the last windows, and the windows and the reference in its cells."""
        windows, r = np.array(self.windows[-size:]), self.against(size)
        c = windows.sum(0)
        n, N = c.sum(), r.sum()
        if self.s["kind"] != "labels":
            yield *scores(c, r)[:3], windows, r
            return
        keep = is_kept(c, r)
        small = np.flatnonzero(~keep & ((c + r)[:-1] > 0))
        join = lambda x, k: np.append(x[..., :-1][..., k], (x[..., :-1][..., ~k].sum(-1) + x[..., -1])[..., None], -1)
        yield *scores(join(c, keep), join(r, keep))[:3], join(windows, keep), join(r, keep)
        if len(small):
            p = np.minimum(1, binom.sf(c[small] - 1, n, np.minimum(1, gamma.isf(1e-6, r[small] + 1) / N)) * len(small))
            if p.min() < self.significance:
                own = keep.copy()
                own[small[int(np.argmin(p))]] = True
                kl, _, bins, _ = scores(join(c, own), join(r, own))
                yield kl, p.min(), bins, join(windows, own), join(r, own)
            enough = lambda x, y: (x + y) * min(n, N) / (n + N) >= EXPECTED
            if enough(c[small].sum(), r[small].sum()) and enough(c[-1], r[-1]):
                apart = lambda x: np.concatenate([x[..., :-1][..., keep], x[..., small].sum(-1)[..., None], x[..., -1:]], -1)
                yield *scores(apart(c), apart(r))[:3], apart(windows), apart(r)
        counts, texts = self.heaviest(size)
        if counts is not None and self.share < 1:
            p = min(1, binom.sf(counts.sum() - 1, n, self.share) * texts)
            if p < self.significance:
                seen = min(self.share * N, r[-1])
                split = lambda x, y: np.append(np.append(x[..., :-1], (x[..., -1] - y)[..., None], -1), np.asarray(y)[..., None], -1)
                w, r = split(join(windows, keep), counts), split(join(r, keep), seen)
                kl, _, bins, _ = scores(w.sum(0), r)
                yield kl, p, bins, w, r

    def judge(self, size):
        c, r = sum(self.windows[-size:]), self.against(size)
        if c.sum() < self.min:
            return None
        result, part = None, True
        for kl, p, bins, windows, reference in self.tests(size):
            level, taken = self.level(kl, p), takes_part(windows, reference)
            part = part if result else taken
            level = level if taken else 0
            if not result or level > result[0]:
                result = level, size, kl, p, bins, None, None
        self.left += not part
        result = self.judge_ratio(*joined(c, r), result) if self.s["ratio"] and part else result
        all_other = self.s["kind"] == "labels" and r[:-2].sum() == 0 < r[-1]
        return None if all_other and result[0] == 0 else result

    def judge_ratio(self, c, r, cells, result):
        use = c + r > 0
        c, r, cells = c[use], r[use], cells[use]
        n, N, worst = c.sum(), r.sum(), (0, None, None)
        for j in range(len(c)):
            x = (c[j] + PSEUDOCOUNT) / (n + PSEUDOCOUNT * len(c)) / ((r[j] + PSEUDOCOUNT) / (N + PSEUDOCOUNT * len(c)))
            table = np.array([[c[j], n - c[j]], [r[j], N - r[j]]])
            e = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
            with np.errstate(all="ignore"):
                g = 2 * np.where(table > 0, table * np.log(table / e), 0).sum()
            if max(x, 1 / x) >= self.s["ratio"][0] and min(1, chi2.sf(g, 1) * len(c)) < self.significance:
                worst = max(worst, (2 if max(x, 1 / x) >= self.s["ratio"][1] else 1, int(cells[j]), x), key=lambda v: v[0])
        if worst[0] and worst[0] >= result[0]:
            return (worst[0], *result[1:5], *worst[1:])
        return result

    def fall(self, have, alone):
        limit = self.s["pool"]
        for m in range(min(self.s["clear_after"], limit), min(have, limit) + 1):
            c, r = sum(self.windows[-m:]), self.against(m)
            if c.sum() < self.min:
                continue
            kl, _, _, floor = scores(*(joined(c, r)[:2] if self.s["kind"] == "labels" else (c, r)))
            if floor > 0.01 and m < limit:
                continue
            to = 0 if kl - floor < 0.01 else 1 if kl - floor < 0.05 else self.state
            to = max(to, alone or 0)
            if to < self.state:
                self.state, self.pool_from = to, len(self.windows) - m
            return

    def add(self, c, r, other):
        self.windows.append(c)
        self.refs.append(r)
        self.others.append(other)
        have = len(self.windows) - self.pool_from
        if r is not None and r.sum() == 0:
            return [None] + [None] * 4 + [self.state, None, None]
        size, levels = 1, []
        while size <= min(have, self.s["pool"]) and all(x is None or x.sum() for x in self.refs[-size:]):
            levels.append(self.judge(size))
            size *= 2
        known = [x for x in levels if x]
        if not known:
            return [None] + [None] * 4 + [self.state, None, None]
        best = max(known, key=lambda x: x[0])
        alone = levels[0][0] if levels[0] else None
        self.verdicts.append(best[0])
        if best[0] > self.state:
            self.state, self.rose = best[0], len(self.windows)
        elif self.s["pool"] == 1:
            last = self.verdicts[-self.s["clear_after"] :]
            if len(last) == self.s["clear_after"]:
                self.state = min(self.state, max(last))
        elif self.state:
            after = len(self.windows) - self.rose
            while after and not all(x is None or x.sum() for x in self.refs[-after:]):
                after -= 1
            self.fall(min(have, after), alone)
        return [*best[:5], self.state, *best[5:]]


def label_monitor(stream):
    values = draw(stream["seed"], 0, stream["rows"], weights_of(stream, -1), stream["missing"])
    labels, counted, share, choosing = choose(values)
    place = {int(x): i for i, x in enumerate(labels)}

    def count(v):
        c, other = np.zeros(len(labels) + 2), {}
        for x in v:
            at = place.get(int(x), len(labels) if x < 0 else len(labels) + 1)
            c[at] += 1
            if at == len(labels) + 1:
                other[int(x)] = other.get(int(x), 0) + 1
        return c, other

    reference = count(values[counted])[0]
    stream["labels"], stream["choosing"] = len(labels), choosing
    stream["other"], stream["absent"] = int(reference[-1]), int(reference[-2])
    return Monitor(stream, reference, share, 50), count


def number_monitor(stream):
    k = stream["cells"]

    def count(v):
        c = np.bincount(v, minlength=k + 1).astype(float)
        return np.append(c[:k], 0), {}

    reference = count(draw(stream["seed"], 0, stream["rows"], weights_of(stream, -1)[:k], 0))[0]
    return Monitor(stream, reference, 1, max(50, 5 * k)), count


def run(stream):
    monitor, count = (label_monitor if stream["kind"] == "labels" else number_monitor)(stream)
    stream["expected"], counts = [], []
    for t in range(stream["windows"]):
        w = weights_of(stream, t)
        if stream["kind"] == "numbers":
            w = w[: stream["cells"]]
        n = stream["n"]
        if stream["uneven"]:
            n = 1 + int(mix(np.uint64((stream["seed"] << 40) + (t + 1)))) % (2 * n)
        c, other = count(draw(stream["seed"], t + 1, n, w, stream["missing"]))
        r = None
        if stream.get("period"):
            before = [counts[t - i * stream["period"]] for i in range(1, 1 + stream["previous"]) if t - i * stream["period"] >= 0]
            r = sum(before) if before else np.zeros(len(c))
        counts.append(c)
        stream["expected"].append([None if x is None else float(f"{x:.12g}") if isinstance(x, float) else int(x) for x in monitor.add(c, r, other)])
    print(json.dumps(stream, separators=(",", ":")))
    return monitor


def streams():
    rng = np.random.default_rng(11)
    seed = 0
    for cells, exponent, rows, n, missing in (
        (2, 0, 60, 60, 0), (3, 1, 30, 100, 100), (10, 1, 200, 100, 20), (12, 2, 300, 80, 0), (50, 0, 500, 200, 30),
        (100, 1, 1000, 400, 0), (300, 0, 2000, 300, 5), (500, 1, 3000, 500, 0), (1500, 0, 20000, 700, 0), (3000, 1, 4000, 200, 10),
        (8, 0, 5, 300, 0), (40, 2, 800, 25, 200)):
        for drift in ("none", "swap", "rare", "new", "three"):
            seed += 1
            yield {"kind": "labels", "seed": seed, "cells": cells, "exponent": exponent, "rows": rows, "n": n, "missing": missing,
                   "rarest": 0, "drift": drift, "percent": int(rng.integers(3, 25)), "from": 5, "to": 11, "windows": 20,
                   "pool": int(rng.choice([1, 4, 16])) if drift != "new" else 16, "clear_after": int(rng.integers(1, 5)),
                   "ratio": None if rng.random() < 0.5 else [2, 4], "uneven": bool(rng.random() < 0.3)}
    for cells, exponent, rows, n in ((6, 0, 6000, 50), (10, 0, 1000, 20), (10, 1, 5000, 200), (20, 0, 3000, 500), (3, 2, 100000, 2000), (10, 0, 400, 400)):
        for drift in ("none", "swap", "tilt", "double"):
            seed += 1
            yield {"kind": "numbers", "seed": seed, "cells": cells, "exponent": exponent, "rows": rows, "n": n, "missing": 0,
                   "rarest": 300 if drift == "double" else 0, "drift": drift, "percent": int(rng.integers(10, 80)), "from": 6, "to": 20,
                   "windows": 40, "pool": int(rng.choice([2, 8, 16, 64])), "clear_after": int(rng.integers(1, 6)),
                   "ratio": [2, 4] if drift == "double" or rng.random() < 0.3 else None, "uneven": bool(rng.random() < 0.5)}
    for cells, rows, n in ((5, 2000, 100), (40, 3000, 200), (300, 2000, 300), (2000, 6000, 400)):
        for drift, end in (("swap", 9), ("rare", 9), ("new", 10), ("turn", 9), ("turn", 20)):
            seed += 1
            yield {"kind": "labels", "seed": seed, "cells": cells, "exponent": 1, "rows": rows, "n": n, "missing": 10, "rarest": 0,
                   "drift": drift, "percent": 12, "from": 8, "to": end, "windows": 24, "pool": 16, "clear_after": 3,
                   "ratio": None if rng.random() < 0.7 else [2, 4], "uneven": False}
    for cells, rows, n, ratio in ((10, 4000, 200, None), (6, 900, 60, None), (20, 9000, 500, [2, 4])):
        for drift, end in (("swap", 9), ("tilt", 9), ("turn", 10)):
            seed += 1
            yield {"kind": "numbers", "seed": seed, "cells": cells, "exponent": 1, "rows": rows, "n": n, "missing": 0, "rarest": 0,
                   "drift": drift, "percent": 90, "from": 8, "to": end, "windows": 24, "pool": 16, "clear_after": 3, "ratio": ratio,
                   "uneven": False}
    for cells, n, period, previous in ((5, 60, 4, 7), (8, 300, 6, 3), (10, 1000, 3, 2), (4, 40, 5, 10), (6, 200, 1, 4)):
        for drift in ("none", "tilt", "swap"):
            seed += 1
            yield {"kind": "numbers", "seed": seed, "cells": cells, "exponent": 1, "rows": 0, "n": n, "missing": 0, "rarest": 0, "drift": drift,
                   "percent": int(rng.integers(20, 90)), "from": 30, "to": 50, "windows": 60, "pool": int(rng.choice([4, 8, 16])),
                   "clear_after": int(rng.integers(1, 4)), "ratio": None if rng.random() < 0.6 else [1.5, 3], "uneven": True,
                   "period": period, "previous": previous}


if __name__ == "__main__":
    monitors = [run(stream) for stream in streams()]
    print(f"{sum(m.cut for m in monitors)} sums had more texts without a bin than are kept; in {sum(m.left for m in monitors)} the newest "
          "windows took no part", file=sys.stderr)
