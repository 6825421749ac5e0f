"""Drift monitors by their definition: bins, scores, states and windows.

Decimal arithmetic of 60 digits; nothing here is fast, and nothing is shared with the server. Labels are chosen by
tests/tools/golden/rules.py, which has the rules of pools and states, too.
"""
import decimal
import math
import pathlib
import re
import sys
from collections import Counter
from decimal import Decimal

import numpy as np
from scipy.special import erfc
from scipy.stats import binom, gamma

sys.path.append(str(pathlib.Path(__file__).parents[1] / "golden"))
import rules  # noqa: E402

decimal.getcontext().prec = 60
INFINITY = Decimal("Infinity")
SEVERITY = ["ok", "warning", "critical"]
MISSING_TEXTS = ("", "NaN", "NA", "null", "None")
NUMBER = re.compile(r"[ \t]*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity)[ \t]*",
                    re.IGNORECASE | re.ASCII)
DAY = 86400 * 10**6  # microseconds, as all times here


def decimal_text(number):
    """A shortest decimal that reads back, in the spelling of labels."""
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(float(number))).normalize().as_tuple()
    digits = "".join(map(str, digits))
    point = len(digits) + exponent
    if -4 < point <= 0:
        text = "0." + "0" * -point + digits
    elif 0 < point < len(digits):
        text = digits[:point] + "." + digits[point:]
    elif len(digits) <= point <= 16:
        text = digits + "0" * exponent
    else:
        text = digits[0] + ("." + digits[1:] if digits[1:] else "") + f"e{point - 1}"
    return "-" * sign + text


def missing(value):
    return (value is None or isinstance(value, str) and value in MISSING_TEXTS
            or isinstance(value, float) and math.isnan(value))


def number_of(value):
    """A number, or what a field of CSV holds as one; None for other text."""
    if isinstance(value, str):
        return float(value) if NUMBER.fullmatch(value) else None
    return None if isinstance(value, bool) else value


def label_of(value):
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return decimal_text(float(value))


def strictly_ascending(edges):
    """Edges with a bin of its own for each value that repeats: [v, next double]."""
    ascending = []
    for i, edge in enumerate(edges):
        if not ascending or edge > ascending[-1]:
            ascending.append(edge)
        if i and edge == edges[i - 1]:
            following = math.nextafter(edge, math.inf)
            if ascending[-1] == edge:
                ascending.append(following)
    return ascending


def holds_booleans(texts):
    return {text.lower() for text in texts} <= {"true", "false"}


def few_whole(numbers, most):
    """True if all are whole, and few are distinct: codes, not measurements."""
    return (all(math.isfinite(v) and v == math.floor(v) for v in numbers)
            and len(set(numbers)) <= min(most, 20))


def bins_of_labels(values):
    """Labels by the rule of golden/rules.py: their bins, and the values and the number of rows that chose them."""
    texts = [None if missing(v) else label_of(v) for v in values]
    distinct = sorted(set(texts) - {None}, key=str.encode)
    if not distinct:
        return None, [], 0
    index = {text: i for i, text in enumerate(distinct)}
    chosen, counted, _, choosing = rules.choose(np.array([index.get(text, -1) for text in texts]))
    labels = [distinct[i] for i in chosen]
    if not any(texts[i] is not None for i in np.flatnonzero(counted)):
        counted = np.ones(len(values), bool)
    if all(NUMBER.fullmatch(label) for label in labels):
        labels.sort(key=lambda label: (float(label), label.encode()))
    return {"labels": labels}, [values[i] for i in np.flatnonzero(counted)], choosing


def quantile_edges(values, bins):
    """Edges at quantiles; where values repeat as edges, the others are cut by themselves."""
    quantiles = lambda x, n: np.quantile(x, np.arange(n + 1) / n) + 0.0
    edges = np.array(strictly_ascending(quantiles(values, bins).tolist()))
    repeated = edges[:-1][(edges[1:] == np.nextafter(edges[:-1], np.inf)) & (edges[1:] < sys.float_info.max)]
    others = values[~np.isin(values, repeated)]
    if not len(repeated) or not len(others):
        return edges
    inner = strictly_ascending(quantiles(others, max(min(max(bins - len(repeated), bins // 2), len(others) // 10), 1)).tolist())
    inner = np.concatenate([[values.min()], inner[1:-1], repeated, np.nextafter(repeated, np.inf), [values.max()]])
    return np.unique(inner + 0.0)


def make_bins(values, method="auto", bins=10):
    """Member `bins` of a monitor, made of values, the values that its reference counts, and how many rows chose labels; the
    first is None if there is nothing to make them of."""
    present = [v for v in values if not missing(v)]
    if all(isinstance(v, str) for v in present) and holds_booleans(present):
        values = [v.lower() if isinstance(v, str) and not missing(v) else v for v in values]
    numeric = all(not isinstance(v, (str, bool, np.bool_)) for v in present)
    if numeric and not any(math.isfinite(v) for v in present):
        return None, [], 0
    if not numeric or method == "labels" or method == "auto" and few_whole(present, max(len(present) // 10, 2)):
        return bins_of_labels(values)
    finite = np.array([v for v in present if math.isfinite(v)], dtype=float)
    if method == "auto":
        bins = min(bins, max(len(finite) // 10, 2))
    if method == "width":
        edges = np.unique(np.linspace(finite.min(), finite.max(), bins + 1))
        edges = edges if len(edges) > 1 else np.repeat(edges, 2)
    else:
        edges = quantile_edges(finite, bins)
    return {"edges": strictly_ascending((edges + 0.0).tolist())}, values, 0


def spread_of(values):
    """Mean and standard deviation of finite values; None if there are none, or a double does not hold them."""
    finite = [Decimal(v) for v in values if not missing(v) and math.isfinite(v)]
    if not finite:
        return None, None
    mean = sum(finite) / len(finite)
    square = sum((v - mean) ** 2 for v in finite) / len(finite)
    return mean, square.sqrt()


def bin_kinds(bins):
    if "edges" in bins:
        return ["underflow"] + ["interval"] * (len(bins["edges"]) - 1) + ["overflow", "missing"]
    return ["label"] * len(bins["labels"]) + ["other", "missing"]


def outer_members(bins):
    return ("underflow", "overflow", "missing") if "edges" in bins else ("other", "missing")


def count_values(bins, values, fields=False):
    """Counts of values in the order of bins. Fields of CSV that look like numbers are numbers."""
    counts = [0] * len(bin_kinds(bins))
    if "labels" in bins:
        places = {label: i for i, label in enumerate(bins["labels"])}
        for value in values:
            counts[place_of_label(places, value, fields)] += 1
        return counts
    edges, last = bins["edges"], len(bins["edges"]) - 1
    for value in values:
        if fields and isinstance(value, str):
            value = float(value) if NUMBER.fullmatch(value) else None
        if missing(value):
            counts[-1] += 1
        elif value < edges[0]:
            counts[0] += 1
        elif value > edges[last]:
            counts[last + 1] += 1
        else:
            counts[min(int(np.searchsorted(edges, value, side="right")), last)] += 1
    return counts


SPELLINGS = [("false", "true"), ("f", "t"), ("no", "yes"), ("n", "y"), ("0", "1")]
PAIRS = [("f", "t"), ("F", "T"), ("no", "yes"), ("No", "Yes"), ("NO", "YES"), ("n", "y"), ("N", "Y"), ("0", "1")]


def booleans_of(places):
    """Places of false and true among labels, None where there is none, and whether any spelling of them is taken."""
    words = [next((places[spelled(word)] for spelled in (str.lower, str.capitalize, str.upper) if spelled(word) in places), None)
             for word in SPELLINGS[0]]
    if not 2 <= len(places) <= 3:
        return words, False
    pair = words
    for both in PAIRS:
        if None in pair:
            pair = [places.get(text) for text in both]
    others = [label for label, place in places.items() if place not in pair]
    if None in pair or any(NUMBER.fullmatch(label) for label in others):
        return words, False
    return pair, True


def place_of_label(places, value, fields):
    if isinstance(value, str):
        if value in places:
            return places[value]
        if value in MISSING_TEXTS:
            return -1
    elif missing(value):
        return -1
    elif label_of(value) in places:
        return places[label_of(value)]
    pair, takes_any = booleans_of(places)
    if isinstance(value, (bool, np.bool_)):
        return -2 if pair[bool(value)] is None else pair[bool(value)]
    if isinstance(value, str):
        for both in SPELLINGS if takes_any else SPELLINGS[:1]:
            if value.lower() in both and pair[both.index(value.lower())] is not None:
                return pair[both.index(value.lower())]
        if not NUMBER.fullmatch(value):
            return -2
        value = float(value)
        if decimal_text(value) in places:
            return places[decimal_text(value)]
    if takes_any and value in (0, 1):
        return pair[int(value)]
    same = [place for label, place in places.items()
            if NUMBER.fullmatch(label) and decimal_text(float(label)) != label and float(label) == value]
    return same[0] if len(same) == 1 else -2


def unseen_texts(bins, values, fields=False):
    """The texts without a bin among values."""
    if "edges" in bins:
        return []
    places = {label: i for i, label in enumerate(bins["labels"])}
    return [label_of(v) for v in values if place_of_label(places, v, fields) == -2]


def chi_squared_tail(df, x):
    """Upper tail of an integral number of degrees of freedom: a finite sum."""
    if df == 0 or x == 0:
        return Decimal(1)
    half, term, total = Decimal(x) / 2, Decimal(1), Decimal(0)
    if half == INFINITY:
        return Decimal(0)
    if df % 2 == 0:
        for i in range(df // 2):
            total += term
            term = term * half / (i + 1)
        return (-half).exp() * total
    term = (half / Decimal(math.pi)).sqrt() * 2
    for i in range((df - 1) // 2):
        total += term
        term = term * half / (Decimal(i) + Decimal("1.5"))
    return Decimal(float(erfc(math.sqrt(half)))) + (-half).exp() * total


def term(p, q):
    """p ln(p / q)."""
    if p == 0:
        return Decimal(0)
    return INFINITY if q == 0 else p * (p / q).ln()


def score(counts, reference, settings, exact=False):
    """All scores of counts against the counts of a reference, or probabilities if exact."""
    c, r = [Decimal(v) for v in counts], [Decimal(v) for v in reference]
    n, N = sum(c), INFINITY if exact else sum(r)
    a = Decimal(settings["pseudocount"])
    used = [i for i in range(len(c)) if c[i] + r[i] > 0]
    B, zero = len(used), [Decimal(0)] * len(c)
    p, q, contribution = zero[:], zero[:], zero[:]
    for i in used:
        p[i] = (c[i] + a) / (n + a * B)
        q[i] = r[i] if exact else (r[i] + a) / (N + a * B)
        contribution[i] = term(p[i], q[i]) - p[i] + q[i] if q[i] or not p[i] else INFINITY
    kl = sum((term(p[i], q[i]) for i in used), Decimal(0))
    reverse = sum((term(q[i], p[i]) for i in used), Decimal(0))
    js = sum((term(v[i], (p[i] + q[i]) / 2) for v in (p, q) for i in used), Decimal(0)) / 2
    if exact:
        statistic = 2 * n * sum((term(c[i] / n, r[i]) for i in used), Decimal(0))
    else:
        statistic = 2 * sum((term(v[i], total * (c[i] + r[i]) / (n + N))
                             for v, total in ((c, n), (r, N)) for i in used), Decimal(0))
    spread = 1 / n + (0 if exact else 1 / N)
    unseen = sum(c[i] for i in used if r[i] == 0)
    return {"p_value": chi_squared_tail(B - 1, statistic), "kl": kl, "kl_reverse": reverse, "js": js, "psi": kl + reverse, "statistic": statistic,
            "df": B - 1, "noise_floor": Decimal(B - 1) / 2 * spread, "spread": spread,
            "unseen_ratio": unseen / n, "missing_ratio": c[-1] / n,
            "reference": r if exact else [v / N for v in r], "current": [v / n for v in c],
            "contribution": contribution, "n": n, "N": N}


class Cells:
    """Counts of labels and of the reference, of which those that are too small are joined with `other`."""

    def __init__(self, counts, reference, exact):
        self.cells = [(Decimal(c), Decimal(r)) for c, r in zip(counts[:-2] + counts[-1:], reference[:-2] + reference[-1:])]
        self.other, self.exact = (Decimal(counts[-2]), Decimal(reference[-2])), exact
        self.n, self.N = sum(counts), sum(reference)
        self.kept = [self.enough(c, r) or exact and r == 0 < c for c, r in self.cells]
        self.small = [i for i, (c, r) in enumerate(self.cells) if not self.kept[i] and c + r > 0]

    def enough(self, c, r):
        return (r * self.n if self.exact else (c + r) * min(self.n, self.N) / (self.n + self.N)) >= rules.EXPECTED

    def total(self, indices):
        return tuple(sum(self.cells[i][side] for i in indices) for side in (0, 1))

    def score(self, settings, own=(), apart=False):
        """With cells of their own, or those that are joined apart from `other`."""
        kept = [cell for i, cell in enumerate(self.cells) if self.kept[i] or i in own]
        rest = self.total([i for i in self.small if i not in own])
        last = [rest, self.other] if apart else [tuple(x + y for x, y in zip(rest, self.other))]
        return score(*map(list, zip(*kept, *last)), settings, self.exact)

    def heaviest(self):
        """p of the joined label that is least likely to be so frequent by chance, and which it is."""
        bound = lambda r: float(r) if self.exact else gamma.isf(1e-6, float(r) + 1) / float(self.N)
        found = [(binom.sf(int(self.cells[i][0]) - 1, int(self.n), min(1, bound(self.cells[i][1]))), i) for i in self.small]
        p, i = min(found, key=lambda x: x[0])
        return min(1, p * len(self.small)), i

    def level(self, settings, alone, p_value):
        """The highest level of all tests of labels; of the bins as they are the server's p-value counts."""
        limits, joined = settings["thresholds"], self.score(settings)
        level = level_of(joined["kl"], joined["p_value"] if joined["df"] != alone["df"] else p_value, limits)
        if not self.small:
            return level
        p, i = self.heaviest()
        if p < limits["significance"]:
            level = max(level, level_of(self.score(settings, [i])["kl"], p, limits))
        if self.enough(*self.total(self.small)) and self.enough(*self.other):
            apart = self.score(settings, apart=True)
            level = max(level, level_of(apart["kl"], apart["p_value"], limits))
        return level

    def unseen_level(self, unseen, share, settings):
        """Level of the heaviest text without a bin: how probable it is that one of as many as there are is so frequent."""
        most = max(unseen.values())
        texts = len(unseen) + self.other[0] - sum(unseen.values())
        p_value = min(1, binom.sf(most - 1, float(self.n), share) * float(texts))
        if p_value >= settings["thresholds"]["significance"]:
            return 0
        seen = min(Decimal(share) * self.N, self.other[1])
        c, r = (x + y for x, y in zip(self.total(self.small), self.other))
        kept = [cell for i, cell in enumerate(self.cells) if self.kept[i]]
        apart = score(*map(list, zip(*kept, (c - most, r - seen), (Decimal(most), seen))), settings)
        return level_of(apart["kl"], p_value, settings["thresholds"])


def level_of(kl, p_value, limits):
    shows = limits["significance"] == 1 or p_value < limits["significance"]
    near = float(kl) + 4e-15  # of a threshold of 0: probabilities sum to 1 within rounding
    return 2 if kl == INFINITY or near >= limits["critical"] and shows else 1 if near >= limits["warning"] and shows else 0


def verdict(window, monitor, p_value):
    """Of a window that is judged alone; p_value is that of the server, which is compared by itself."""
    result, settings = window["score"], monitor.settings
    if result is None or result["n"] < settings["minimum"]:
        return "insufficient_data"
    kl = result["kl"]
    if "edges" in monitor.bins:
        return SEVERITY[level_of(kl, p_value, settings["thresholds"])]
    cells = Cells(window["counts"], window["compared"], window["exact"])
    level = cells.level(settings, result, p_value)
    share = 1 if settings["compare"] != "reference" else monitor.share()
    if share < 1 and window["unseen"]:
        level = max(level, cells.unseen_level(window["unseen"], share, settings))
    return SEVERITY[level]


def state_of(verdicts, fire_after, clear_after):
    """The state after verdicts in order of window starts."""
    state, ranks = None, []
    for rank in (SEVERITY.index(v) for v in verdicts if v in SEVERITY):
        ranks.append(rank)
        if state is None:
            state = 0
        if len(ranks) >= fire_after:
            state = max(state, min(ranks[-fire_after:]))
        if len(ranks) >= clear_after:
            state = min(state, max(ranks[-clear_after:]))
    return "insufficient_data" if state is None else SEVERITY[state]


class Monitor:
    """Windows of one monitor. A window is a dict; scores are those of its last change."""

    def __init__(self, settings, bins, reference, exact):
        self.windows, self.revision = [], 0
        self.replace(settings, bins, reference, exact)

    def replace(self, settings, bins, reference, exact):
        """Takes other settings; bins or a reference that differ close what is open."""
        if not self.revision or (bins, reference, exact) != (self.bins, self.reference, self.exact):
            for window in self.windows:
                window["closed"] = True
            self.revision += 1
        self.settings, self.bins, self.reference, self.exact = settings, bins, reference, exact
        given = len(bins["edges"]) - 1 if "edges" in bins else len(bins["labels"])
        minimum = settings["min_observations"]
        settings["minimum"] = minimum if minimum is not None else max(50, 5 * given) if "edges" in bins else 50

    choosing = 0  # rows that chose the labels of the reference

    def share(self):
        """The greatest share that a label without a bin may have had in the reference."""
        if self.exact or self.reference is None:
            return 1
        if self.choosing:
            return rules.RARE / self.choosing
        return float(rules.NEVER / float(sum(self.reference))) if self.reference[-2] == 0 else 1

    def horizon(self):
        if not self.windows:
            return -math.inf
        return max(w["end"] for w in self.windows) - self.settings["retention_days"] * DAY

    def too_old(self, time):
        """True if what takes an observation at a time would be let go at once."""
        kind = self.settings["window"]
        if "seconds" in kind:
            time = (time // (kind["seconds"] * 10**6) + 1) * kind["seconds"] * 10**6
        return time < self.horizon()

    def forgets(self, time):
        """True if an observation at a time lets windows go: the server does it a little later."""
        return any(w["end"] < time - self.settings["retention_days"] * DAY for w in self.windows)

    def window_for(self, time, now):
        """The window that takes an observation, made if need be."""
        kind = self.settings["window"]
        if kind == "batch":
            return self.make(time, time, True)
        mine = [w for w in self.windows if w["revision"] == self.revision]
        if "count" in kind:
            for window in mine:
                if not window["closed"]:
                    window["start"] = min(window["start"], time)
                    window["end"] = max(window["end"], time)
                    return window
            return self.make(time, time, False)
        length = kind["seconds"] * 10**6
        start = time // length * length
        for window in mine:
            if window["start"] == start:
                window["restated"] |= window["closed"]
                return window
        end = start + length
        return self.make(start, end, end + kind.get("grace", 0) * 10**6 <= now)

    def make(self, start, end, closed):
        window = {"start": start, "end": end, "closed": closed, "restated": False,
                  "made": len(self.windows), "revision": self.revision,
                  "counts": [0] * len(bin_kinds(self.bins)), "unseen": Counter()}
        self.windows.append(window)
        return window

    def observe(self, counts, time, now, unseen=()):
        """The window that counts are added to, with texts that are no labels; None for a time older than what is retained.
        Of texts that are not given each is one of its own."""
        if self.too_old(time):
            return None
        window = self.window_for(time, now)
        window["counts"] = [a + b for a, b in zip(window["counts"], counts)]
        for text in unseen:
            window["unseen"][text] += 1
        kind = self.settings["window"]
        if "count" in kind and sum(window["counts"]) >= kind["count"]:
            window["closed"] = True
        window["score"] = self.score(window["counts"], window)
        return window

    def before(self, window):
        """Closed windows of this revision before a window (or of all time), in order."""
        key = (window["start"], window["made"]) if window else (math.inf,)
        return sorted((w for w in self.windows if w["closed"] and w["revision"] == self.revision
                       and (w["start"], w["made"]) < key), key=lambda w: (w["start"], w["made"]))

    def score(self, counts, window):
        window["exact"] = self.exact and self.settings["compare"] == "reference"
        if self.settings["compare"] == "reference":
            window["compared"] = self.reference
        else:
            earlier = [w["counts"] for w in self.before(window)[-self.settings["compare"]["previous"]:]]
            window["compared"] = [sum(column) for column in zip(*earlier)]
        return score(counts, window["compared"], self.settings, window["exact"]) if window["compared"] else None

    def state(self):
        return state_of([w["verdict"] for w in self.before(None)],
                        self.settings["fire_after"], self.settings["clear_after"])
