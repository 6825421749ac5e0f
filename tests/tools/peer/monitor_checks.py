"""Answers of a server compared with what the definition gives."""
import datetime
import time
from decimal import Decimal

import monitor_oracle as oracle
from monitor_draws import EPOCH, members_of

SCORES = ("kl", "kl_reverse", "js", "psi", "noise_floor", "unseen_ratio", "missing_ratio")


def check_made(case, made, monitor, label):
    """A config that was made of values. Edges lie somewhere between the values that those of the definition part; the
    monitor takes them."""
    if "edges" in monitor.bins:
        edges = made["bins"].get("edges", [])
        case.same(len(edges), len(monitor.bins["edges"]), label, "number of edges")
        case.same(oracle.count_values(made["bins"], monitor.values) if edges else None, monitor.reference, label,
                  "counts by the edges", made["bins"], monitor.bins)
        monitor.bins = made["bins"]
    case.same(made["bins"], monitor.bins, label, "bins")
    want = members_of("counts", monitor.bins, monitor.reference)
    if monitor.choosing:
        want["choosing"] = monitor.choosing
    reference = dict(made["reference"])
    if "edges" in monitor.bins:
        spread = oracle.spread_of(monitor.values)
        overflows = spread[1] is None or spread[1] > Decimal("1e150")
        for got, exact in zip((reference.pop("mean", None), reference.pop("sd", None)), spread):
            fine = got is None if overflows else got is not None and \
                abs(Decimal(got) - exact) <= max(abs(spread[0]), spread[1]) * Decimal("1e-9") + Decimal("1e-300")
            case.expect(fine, label, "mean or sd", made["reference"], spread)
    case.same(reference, want, label, "reference")


class Case:
    """Questions of one case, for the report, and if all answers agreed."""

    def __init__(self, server):
        self.server, self.agree, self.asked = server, True, []

    def ask(self, *question):
        self.asked.append(question)
        return self.server.ask(*question)

    def expect(self, condition, *what):
        if not condition and self.agree:
            print("disagree:", *what)
            for question in self.asked:
                print("   ", *(str(part)[:1500] for part in question))
            self.agree = False
        return condition

    def same(self, got, want, *what):
        return self.expect(got == want, *what, "got", got, "want", want)


def close(got, exact):
    """True if a number of an answer is the exact one; null is infinity there."""
    if exact == oracle.INFINITY or got is None:
        return got is None and exact == oracle.INFINITY
    return abs(Decimal(got) - exact) <= max(abs(exact) * Decimal("1e-12"), Decimal("4e-15"))


def time_of(text):
    delta = datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) - EPOCH
    return delta // datetime.timedelta(microseconds=1)


def facts_of(window):
    return (time_of(window["start"]), time_of(window["end"]), window["closed"], window["restated"])


def facts_wanted(window):
    return tuple(window[name] for name in ("start", "end", "closed", "restated"))


def check_scores(case, answer, monitor, window, label):
    """An answer against the score of a window, whose verdict is set."""
    want, p_value = window["score"], Decimal(1)
    case.same(answer["n"], sum(window["counts"]), label, "n")
    if want is None:
        case.same((answer["kl"], answer["infinite"]), (None, False), label, "kl of nothing")
    else:
        for name in SCORES:
            case.expect(close(answer[name], want[name]), label, name, answer[name], want[name])
        case.same(answer["infinite"], want["kl"] == oracle.INFINITY, label, "infinite")
        p_value = check_test(case, answer["g_test"], monitor, want, label)
    window["verdict"] = oracle.verdict(window, monitor, p_value)
    case.same(answer["verdict"], window["verdict"], label, "verdict")
    check_bins(case, answer["bins"], monitor, window, label)
    if want is not None:
        check_shares(case, answer, want, label)


def check_test(case, test, monitor, want, label):
    """The test of an answer. Returns its p-value, with which verdicts are compared."""
    size = want["n"] if want["N"] == oracle.INFINITY else want["n"] + want["N"]
    got, statistic = test["statistic"], want["statistic"]
    fine = close(got, statistic) or (got is not None and statistic != oracle.INFINITY
                                     and abs(Decimal(got) - statistic) <= size * Decimal("8e-15"))
    if not (case.expect(fine, label, "statistic", test, statistic)
            and case.same(test["df"], want["df"], label, "df")):
        return Decimal(1)
    tail = oracle.chi_squared_tail(test["df"], oracle.INFINITY if got is None else got)
    difference = abs(Decimal(test["p_value"]) - tail)
    fine = difference <= tail * Decimal("1e-10") or tail < 1e-300
    case.expect(fine, label, "p_value", test, tail)
    significance = monitor.settings["thresholds"]["significance"]
    if test["df"] == 0 or significance == 1:
        case.same(test["critical_kl"], 0, label, "critical_kl")
    else:
        point = Decimal(test["critical_kl"]) * 2 / want["spread"]
        ratio = oracle.chi_squared_tail(test["df"], point) / Decimal(significance)
        case.expect(abs(ratio - 1) < Decimal("1e-9"), label, "critical_kl", test, ratio)
    return Decimal(test["p_value"])


def check_bins(case, bins, monitor, window, label):
    """Names, bounds and counts of bins."""
    case.same([b["kind"] for b in bins], oracle.bin_kinds(monitor.bins), label, "kinds")
    n = sum(window["counts"])
    if n < 2**50:
        case.same([round(b["current"] * n) for b in bins], window["counts"], label, "counts")
    if "edges" in monitor.bins:
        edges = monitor.bins["edges"]
        case.same([b["lower"] for b in bins], [None, *edges, None], label, "lower")
        case.same([b["upper"] for b in bins], [*edges, None, None], label, "upper")
    else:
        names = monitor.bins["labels"] + ["other", "missing"]
        case.same([b["name"] for b in bins], names, label, "names")


def check_shares(case, answer, want, label):
    """Fractions and contributions of bins, and which are the greatest."""
    for i, each in enumerate(answer["bins"]):
        for name in ("reference", "current", "contribution"):
            exact = want[name][i]
            case.expect(close(each[name], exact), label, name, i, each, exact)
        if want["kl"] != oracle.INFINITY and abs(want["kl"]) > Decimal("1e-9"):
            share = want["contribution"][i] / want["kl"]
            fine = abs(Decimal(each["share"]) - share) < Decimal("1e-6")
            case.expect(fine, label, "share", each, share)
    sizes = [(b["contribution"] is None, b["contribution"] or 0) for b in answer["bins"]]
    greatest = [size for size in sorted(sizes, reverse=True)[:3] if size > (False, 0)]
    named = [[size for size, b in zip(sizes, answer["bins"]) if b["name"] == name]
             for name in answer["top"]]
    case.expect(len(named) == len(greatest) and all(s in n for s, n in zip(greatest, named)),
                label, "top", answer["top"], greatest)


def check_windows(case, path, monitor):
    """The list of windows, without those that retention may have let go."""
    status, answer = case.ask("GET", f"{path}/windows?limit=1000")
    if not case.expect(status == 200, path, "windows", status, answer):
        return
    horizon = monitor.horizon()
    wanted = [w for w in monitor.windows if w["end"] >= horizon]
    wanted.sort(key=lambda w: (w["start"], w["made"]), reverse=True)
    got = [w for w in answer["windows"] if time_of(w["window"]["end"]) >= horizon]
    if not case.expect(len(got) == len(wanted), path, "windows", answer, wanted):
        return
    case.same(answer["next"], None, path, "next")
    for have, want in zip(got, wanted):
        case.same(facts_of(have["window"]), facts_wanted(want), path, "window")
        numbers = want["revision"], sum(want["counts"])
        case.same((have["revision"], have["n"]), numbers, path, "numbers of a window")
        if want["closed"]:
            case.same(have["verdict"], want["verdict"], path, "verdict in the list")
    check_ends(case, path, wanted, monitor)
    case.same(case.ask("GET", path)[1]["state"], monitor.state(), path, "state of the monitor")
    events = case.ask("GET", f"{path}/events?limit=1000")[1]["events"]
    case.expect(all(event["from"] != event["to"] for event in events), path, "events", events)


def check_ends(case, path, wanted, monitor):
    """The two windows of this revision that have names."""
    for name, closed in (("latest", True), ("current", False)):
        status, answer = case.ask("GET", f"{path}/windows/{name}")
        those = [w for w in wanted if w["closed"] == closed and w["revision"] == monitor.revision]
        case.same(status, 200 if those else 404, path, name)
        if those and status == 200:
            case.same(facts_of(answer["window"]), facts_wanted(those[0]), path, name)


def settle(case, result, monitor, counts, time_, label, unseen=()):
    """Adds counts to the model of a monitor, and compares what was answered."""
    window = monitor.observe(counts, time_, time.time() * 10**6, unseen)
    check_scores(case, result, monitor, window, label)
    case.same(facts_of(result["window"]), facts_wanted(window), label, "window")
    if window in monitor.before(None)[-1:]: # one that comes late has the state that was then
        case.same(result["state"], monitor.state(), label, "state")
