"""Writes drift.jsonl: counts, probabilities and arrays, and what numpy, scipy and mpmath make of them.

    /usr/bin/python3 tests/tools/golden/drift.py > tests/tools/golden/drift.jsonl

Needs Debian's python3-scipy and python3-mpmath. Scores are of 50 digits; scipy's chi2_contingency, chi2
and entropy must agree with them. Edges are the bits of doubles.
"""
import json
import math

import mpmath
import numpy
from mpmath import mpf
from scipy import stats

mpmath.mp.dps = 50
rng = numpy.random.default_rng(8)


def number(value):
    value = float(value)
    return value if math.isfinite(value) else "Infinity"


def divergence(p, q):
    if any(a and not b for a, b in zip(p, q)):
        return mpf("inf")
    return mpmath.fsum(a * mpmath.log(a / b) for a, b in zip(p, q) if a)


def tail(x, df):
    if df < 10000:
        return mpmath.gammainc(mpf(df) / 2, mpf(x) / 2, regularized=True) if df else mpf(1)
    a, y = mpf(df) / 2, mpf(x) / 2
    before = mpmath.exp(a * mpmath.log(y) - y - mpmath.loggamma(a))
    return before * fraction(a, y) if y > a + 1 else 1 - before * series(a, y)


def fraction(a, y):
    """Legendre's continued fraction of the upper incomplete gamma function, by Lentz's method."""
    b = y + 1 - a
    c, d, i = mpf(10) ** 60, 1 / b, 0
    value, factor = d, mpf(0)
    while abs(factor - 1) > mpf(10) ** -30:
        i += 1
        b += 2
        d = 1 / (i * (a - i) * d + b)
        c = b + i * (a - i) / c
        factor = c * d
        value *= factor
    return value


def series(a, y):
    """The series of the lower one."""
    value = term = 1 / a
    while term > value * mpf(10) ** -30:
        a += 1
        term *= y / a
        value += term
    return value


def point(significance, df):
    if df == 0 or significance == 1:
        return mpf(0)
    start = stats.chi2.isf(significance, df)
    return mpmath.findroot(lambda x: mpmath.log(tail(x, df) / mpf(significance)), start)


def agree(ours, theirs, lost=1e-13):
    assert math.isclose(float(ours), float(theirs), rel_tol=1e-9, abs_tol=lost), (ours, theirs)


def scores(current, reference, pseudocount=0.5, significance=0.01, exact=False):
    used = [i for i, pair in enumerate(zip(current, reference)) if sum(pair) > 0]
    c, r = ([mpf(v[i]) for i in used] for v in (current, reference))
    a, bins = mpf(pseudocount), len(used)
    n, n_reference = mpmath.fsum(c), mpf("inf") if exact else mpmath.fsum(r)
    p = [(v + a) / (n + a * bins) for v in c]
    q = r if exact else [(v + a) / (n_reference + a * bins) for v in r]
    mean = [(x + y) / 2 for x, y in zip(p, q)]
    raw = [v / n for v in c]
    beyond = mpmath.fsum(q) - 1
    if abs(beyond) > bins * 2.0 ** -53:  # more than the rounding of each
        beyond = 0
    if exact:
        g = 2 * n * (divergence(raw, q) + beyond)
    else:
        both = [(x + y) / (n + n_reference) for x, y in zip(c, r)]
        g = 2 * n * divergence(raw, both)
        g += 2 * n_reference * divergence([v / n_reference for v in r], both)
    df = bins - 1
    kl, reverse = divergence(p, q) + beyond, divergence(q, p) - beyond
    p_value = mpf(1) if g <= 0 else tail(g, df) if mpmath.isfinite(g) else mpf(0)
    per_count = (1 / n + 1 / n_reference) / 2
    if not exact and df:
        theirs = stats.chi2_contingency([[float(v) for v in c], [float(v) for v in r]],
                                        lambda_="log-likelihood", correction=False)
        agree(g, theirs[0], 1e-13 * float(n + n_reference))  # it computes in doubles
        assert theirs[2] == df
        if p_value > 1e-300:
            agree(p_value, stats.chi2.sf(float(g), df))
    if mpmath.isfinite(kl) and abs(mpmath.fsum(q) - 1) < 1e-12:
        agree(kl, stats.entropy([float(v) for v in p], [float(v) for v in q]))
    contributions = [0.0] * len(current)
    for i, x, y in zip(used, p, q):
        contributions[i] = number(mpf("inf") if x and not y
                                  else (x * mpmath.log(x / y) if x else 0) - x + y)
    print(json.dumps({
        "current": [float(v) for v in current], "reference": [float(v) for v in reference],
        "pseudocount": pseudocount, "significance": significance, "exact": exact,
        "contributions": contributions,
        "scores": {
            "n": number(n), "n_reference": number(n_reference), "kl": number(kl),
            "kl_reverse": number(reverse),
            "js": number((divergence(p, mean) + divergence(q, mean)) / 2),
            "psi": number(kl + reverse), "statistic": number(g), "p_value": number(p_value),
            "critical_kl": number(point(significance, df) * per_count),
            "noise_floor": number(df * per_count),
            "unseen_ratio": number(mpmath.fsum(x for x, y in zip(c, r) if y == 0) / n),
            "df": df}}))


def random_scores():
    for bins in (1, 2, 3, 4, 5, 7, 10, 11, 20, 23, 64, 101, 257, 1003):
        for size in (30, 1000, 10**6, 10**9, 10**15) if bins < 60 else (1000, 10**9):
            p = rng.dirichlet(numpy.ones(bins))
            drift = 10.0 ** -rng.integers(0, 7)
            q = p * (1 + drift * rng.uniform(-0.9, 0.9, bins))
            c, r = numpy.floor(p * size / rng.integers(1, 20)), numpy.floor(q * size)
            c[0] += 1
            r[0] += 1
            scores(c, r, float(rng.choice([0, 0.5, 1, 0.25]) if (c > 0).all() and (r > 0).all()
                               else rng.choice([0.5, 1, 2.5])),
                   float(rng.choice([0.5, 0.1, 0.05, 0.01, 1e-3, 1e-9, 1e-100, 1])))
            scores(c, numpy.round(p * 2**40 + 1) / numpy.round(p * 2**40 + 1).sum(), 0, 0.05, True)


def special_scores():
    scores([1, 2, 3], [1, 2, 3])
    scores([10, 20, 30], [100, 200, 300], 0)
    scores([5], [7])
    scores([5, 0], [7, 0], 0)
    scores([5, 0, 3], [7, 0, 9])
    for a in (0, 0.5, 0.1, 10):
        scores([5, 0, 3], [7, 9, 0], a)
        scores([0, 5, 3], [7, 9, 1], a)
        scores([3, 5], [0.25, 0.75], a, exact=True)
        scores([3, 5, 1], [0.25, 0.75, 0], a, exact=True)
        scores([3, 5, 0], [0.25, 0.25, 0.5], a, exact=True)
    scores([3, 5, 2], [0.2500005, 0.25, 0.5], 0, exact=True)
    scores([1, 1, 2], [0.2499995, 0.25, 0.5], 0, exact=True)
    scores([1e-3, 5, 2.5], [1e-300, 1, 2], 0)
    scores([2**53, 1, 1], [1, 1, 2**53])
    scores([2**53, 2**52], [2**53 - 1, 2**52], 0)
    scores([2**53, 2**52 + 1], [2**53, 2**52])


def edges():
    for n in (1, 2, 3, 5, 9, 10, 11, 100, 997):
        for bins in (1, 2, 3, 4, 7, 10, 20, 99, 1000):
            arrays = {
                "normal": rng.normal(size=n), "uniform": rng.random(n),
                "lognormal": rng.lognormal(size=n) * 1e5, "whole": rng.integers(0, 12, n) * 1.0,
                "few": rng.integers(0, 3, n) * 0.1, "constant": numpy.full(n, rng.normal()),
                "huge": rng.normal(size=n) * 1e300, "subnormal": rng.integers(-99, 99, n) * 5e-324,
                "mixed": rng.choice([0.0, 1e-310, 1e300, -1.5, 3.25], n)}
            if n == 997 and bins not in (10, 20, 99):
                continue
            kinds = ("whole",) if bins == 1000 else ("normal", "few") if n * bins > 500 else arrays
            for values in (arrays[kind] for kind in kinds):
                quantiles = numpy.quantile(values, numpy.arange(bins + 1) / bins)
                made = []
                for i, edge in enumerate(quantiles):
                    if not made or edge > made[-1]:
                        made.append(edge + 0.0)
                    elif i and edge == quantiles[i - 1] and edge == made[-1]:
                        made.append(numpy.nextafter(edge, numpy.inf))
                count = numpy.histogram(values, made)[0]
                print(json.dumps({"values": [float(v).hex() for v in values], "bins": bins,
                                  "edges": [float(v).hex() for v in made],
                                  "counts": count.tolist()}))


def widths():
    for _ in range(60):
        bins = int(rng.choice([1, 2, 3, 7, 10, 100]))
        ends = sorted(rng.normal(size=2) * 10.0 ** rng.integers(-300, 300))
        print(json.dumps({"ends": [float(v).hex() for v in ends], "bins": bins,
                          "widths": [float(v).hex() for v in
                                     numpy.unique(numpy.linspace(*ends, bins + 1))]}))


def chi_squared():
    for df in (1, 2, 3, 4, 5, 9, 10, 19, 20, 99, 100, 999, 1002, 99999, 100001, 1400001, 10**7):
        for p in (0.999, 0.9, 0.5, 0.1, 0.01, 1e-5, 1e-20, 1e-100, 1e-200, 1e-299):
            x = float(point(p, df))
            print(json.dumps({"df": df, "x": x, "p": p, "tail": float(tail(x, df) / mpf(p))}))


random_scores()
special_scores()
edges()
widths()
chi_squared()
