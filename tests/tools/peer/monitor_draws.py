"""Random monitors: values, settings, counts and times."""
import datetime
import math
from decimal import Decimal

import monitor_oracle as oracle

TEXTS = ["a", "b", "B", "1", "01", "1.0", "1e0", "true", "True", "other", "missing", "x,y", 'q"q',
         "é", "日本", "-0", "0x1", " a", "1.5", "inf", "Infinity", "nan", "N/A", "a;b",
         "line\nbreak", "-Infinity"]
WILD = [0.0, -0.0, 5e-324, -5e-324, 1e300, -1e300, 1e-7, 123456789.0, 1e16, 1e21]
LOST = [None, math.nan, math.inf, -math.inf]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def draw_numbers(rng, n):
    kind = rng.choice(["normal", "few", "whole", "wild", "constant"])
    draw = {"normal": lambda: rng.gauss(0, 1), "constant": lambda: 7.25,
            "few": lambda: rng.choice([0.5, 1.0, 2.0, 3.5, -0.0]),
            "whole": lambda: float(rng.randint(-40, 40)),
            "wild": lambda: rng.choice(WILD + [rng.gauss(0, 1) * 10.0**rng.randint(-9, 9)] * 3)}
    special = rng.choice([0, 0, 0.1, 0.5])
    return [rng.choice(LOST) if rng.random() < special else draw[kind]() for _ in range(n)]


def draw_texts(rng, n):
    few = rng.sample(TEXTS, rng.randint(1, 8))
    return [None if rng.random() < 0.1 else rng.choice(few) for _ in range(n)]


def draw_settings(rng):
    warning = rng.choice([0, 0.01, 0.1, 0.3])
    settings = {"pseudocount": rng.choice([0.5, 0.5, 0, 1, 1e-6, 100]),
                "min_observations": rng.choice([None, 0, 1, 10]),
                "thresholds": {"warning": warning, "critical": warning + rng.choice([0, 0.1, 0.5]),
                               "significance": rng.choice([0.01, 0.5, 1, 1e-12])},
                "pool": 1, "fire_after": rng.choice([1, 1, 2, 3]), "clear_after": rng.choice([1, 1, 2, 3]),
                "window": rng.choice(["batch", {"count": 40}, {"seconds": 7, "grace": 3},
                                      {"seconds": 86400}]),
                "compare": rng.choice(["reference", "reference", {"previous": 1}, {"previous": 3}]),
                "retention_days": rng.choice([90, 365, 36500])}
    return settings


def as_query(rng, settings):
    """The same settings as query parameters."""
    window = settings["window"]
    if "seconds" in window:
        window = f"{window['seconds']}s" + (f",{window['grace']}s" if "grace" in window else "")
    elif "count" in window:
        window = window["count"]
    scalars = ("pseudocount", "min_observations", "pool", "fire_after", "clear_after", "retention_days")
    pairs = {"window": window, **settings["thresholds"],
             "compare": settings["compare"] if settings["compare"] == "reference"
             else f"previous:{settings['compare']['previous']}",
             **{name: settings[name] for name in scalars if settings[name] is not None}}
    names = rng.sample(list(pairs), len(pairs))
    return "&".join(f"{name}={pairs[name]}" for name in names)


def draw_counts(rng, bins, most):
    scale = rng.choice([1, 5, 100, most // len(oracle.bin_kinds(bins)) + 1])
    return [rng.choice([0, rng.randint(0, scale)]) for _ in oracle.bin_kinds(bins)]


def members_of(name, bins, counts):
    outer = oracle.outer_members(bins)
    if "edges" in bins:
        return {name: counts[1:-2], **dict(zip(outer, [counts[0], *counts[-2:]]))}
    return {name: counts[:-2], **dict(zip(outer, counts[-2:]))}


def draw_given(rng):
    """Settings with bins and a reference that are given, and what they are."""
    k = rng.choice([1, 2, 5, 20, rng.choice([20, 1000])])
    if rng.random() < 0.5:
        start = rng.gauss(0, 1)
        bins = {"edges": sorted({start} | {start + rng.expovariate(1) for _ in range(k)})}
    else:
        bins = {"labels": rng.sample(TEXTS + ["", "NaN", "NA"], min(k, 20))}
    if k == 1000:
        bins = {"labels": [f"label {i}" for i in range(k)]}
    counts = draw_counts(rng, bins, rng.choice([1000, 10**6, 2**53 - 2000]))
    counts[0] += not sum(counts)
    reference, exact = members_of("counts", bins, counts), False
    if rng.random() < 0.4:
        counts = [count / sum(counts) for count in counts]
        reference, exact = members_of("probabilities", bins, counts), True
        if rng.random() < 0.5:
            reference["n"] = rng.choice([10, 1000, 12345])
            counts, exact = [Decimal(p) * reference["n"] for p in counts], False
    return bins, reference, counts, exact


def draw_observation(rng, monitor):
    """Members of an observation, its counts, and the texts among it that have no bin."""
    bins = monitor.bins
    kind = rng.choice(["counts", "counts", "values"])
    if kind == "values":
        values = draw_numbers(rng, rng.choice([1, 20, 100]))
        if "labels" in bins:
            some = [*bins["labels"], "unheard of", None, True, 1.0, 1.5]
            values = [rng.choice(some) for _ in values]
        return {"values": values}, oracle.count_values(bins, values), oracle.unseen_texts(bins, values)
    counts = draw_counts(rng, bins, rng.choice([100, 10**6, 2**40]))
    counts[-1] += not sum(counts)
    total = sum(counts)
    if rng.random() < 0.3 and total < 10**6:
        probabilities = members_of("probabilities", bins, [c / total for c in counts])
        return {**probabilities, "n": total}, counts, []
    return members_of("counts", bins, counts), counts, []


def draw_time(rng, settings):
    """Microseconds, within a month of 2021, rarely a year before and at borders of windows."""
    time_ = 1609459200 * 10**6 + rng.randrange(30 * oracle.DAY)
    if rng.random() < 0.3:
        time_ -= time_ % (7 * 10**6) + rng.choice([0, 1])
    if rng.random() < 0.05:
        time_ -= 365 * oracle.DAY
    if settings["retention_days"] == 36500 and rng.random() < 0.1:
        time_ = -time_ % oracle.DAY
    return time_


def text_of(rng, time_):
    if rng.random() < 0.3 and time_ % 10**6 == 0:
        return time_ // 10**6
    zone = datetime.timezone(datetime.timedelta(minutes=rng.choice([0, 0, 330, -480])))
    return (EPOCH + datetime.timedelta(microseconds=time_)).astimezone(zone).isoformat()
