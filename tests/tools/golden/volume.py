"""The rule by which monitors judge the number of rows of a window, and volume.jsonl: cases of it.

    python3 tests/tools/golden/volume.py > tests/tools/golden/volume.jsonl
    python3 tests/tools/golden/volume.py --rates        # false alarms in 1,000 windows, and halvings that are seen

Counts of rows vary more than a Poisson variable does. Their logarithms are taken as normal, as counts of traffic are products of many
factors, with a mean and a variance that are known from few windows. So a count is judged by Student's t of its logarithm (a prediction
interval, Hahn and Meeker, "Statistical intervals", 1991, section 4.8). The variance within the windows of each weekday is pooled, by which a
halving is seen in counts that vary by 10 %. It is at least that of the windows of this weekday, and twice that of the logarithm of a Poisson
variable, which is skewed to the left where it is small. Needs scipy."""

import json
import math
import statistics
import sys

import numpy
from scipy import stats

SIGNIFICANCE, LEAST, SEASON, LAST, DAYS = 0.001, 5, 8, 8, 7
DAY, WEEK = 24, 168


def usual_of(windows):
    """The median, of all windows: of [rows, is_alarm]."""
    return statistics.median(n for n, _ in windows)


def ratio_of(n, usual):
    return n / usual if usual > 0 else (n + 0.5) / 0.5


def logs(windows):
    """Of windows without alarms, if there are two or more: an outage that lasts would else be usual by its own variance."""
    calm = [n for n, is_alarm in windows if not is_alarm]
    return [math.log(n + 0.5) for n in (calm if len(calm) > 1 else [n for n, _ in windows])]


def p_value_of(n, windows, others):
    own = logs(windows)
    groups = [g for g in map(logs, (windows, *others)) if len(g) > 1]
    df = sum(len(g) - 1 for g in groups)
    pooled = sum(statistics.variance(g) * (len(g) - 1) for g in groups) / df
    least = 2 / statistics.mean(math.exp(x) for x in own)
    variance = max(pooled, statistics.variance(own), least)
    t = (math.log(n + 0.5) - statistics.mean(own)) / math.sqrt(variance * (1 + 1 / len(own)))
    return 2 * stats.t.sf(abs(t), df)


def weaker(a, b):
    """The ratio that is nearer to 1; 1 if one is above and the other below."""
    return 1 if (a - 1) * (b - 1) < 0 else min(a, b, key=lambda x: abs(math.log(x)) if x > 0 else math.inf)


def judge(n, season, last, warning, critical):
    """`season`: [rows, is_alarm] of windows at the same time of the season, a week if none is set; behind them lists of the same for each of the
    six days before, if the season is of days. `last`: of the last windows, if no season is set. Gives None, or what is usual, of how many
    windows, the ratio to that, its p-value, and the level."""
    same, days = season[0], season[1:]
    has_season = len(same) >= LEAST
    windows = same if has_season else last
    if len(windows) < LEAST:
        return None
    usual = usual_of(windows)
    ratio = weakest = ratio_of(n, usual)
    if not has_season:  # what may be usual at this time of the week, or of the day
        for others in same, sum(days, []):
            if others:
                weakest = weaker(weakest, ratio_of(n, usual_of(others)))
    p_value = p_value_of(n, windows, days if has_season else [])
    far = (max(weakest, 1 / weakest) if weakest > 0 else math.inf) if p_value < SIGNIFICANCE else 1
    level = "critical" if far >= critical else "warning" if far >= warning else "ok"
    return usual, len(windows), ratio, p_value, level


def cases(rng):
    for _ in range(600):
        mean, sd = 10 ** rng.uniform(0, 6), rng.choice((0, 0.05, 0.1, 0.3, 1))

        def some(most):
            return [[int(rng.poisson(mean * math.exp(rng.normal(0, sd)))), bool(rng.random() < 0.2)] for _ in range(rng.integers(0, most))]

        season, last = [some(9) for _ in range(rng.choice((1, DAYS)))], some(9)
        n = int(rng.poisson(mean * rng.choice((1, 1, 0, 0.1, 0.3, 0.5, 0.7, 1.5, 2, 3, 10))))
        warning = rng.choice((1.2, 1.5, 2))
        yield n, season, last, warning, warning * rng.choice((1, 2, 8))


def traffic(hours, mean, sd, kind, rng, width=1):
    """Rows of windows of so many hours, with a season of the day and weekends of a third."""
    shapes = {"waves": lambda t: math.exp(1.15 * math.sin((t - 9) / 24 * 2 * math.pi)), "office hours": lambda t: 10 if 8 <= t < 20 else 1}
    shape = shapes.get(kind, lambda t: 1)
    busy = rng.normal(0, sd / math.sqrt(2), hours // 24 + 1) if kind == "busy days" else None
    for h in range(0, hours, width):
        weekend = h // 24 % 7 >= 5
        rate = mean * (0.35 if weekend else 1) * sum(shape(t % 24) for t in range(h, h + width))
        noise = rng.normal(0, sd / math.sqrt(2)) + busy[h // 24] if kind == "busy days" else rng.normal(0, sd * (3 if weekend and kind == "odd weekends" else 1))
        yield int(rng.poisson(rate * math.exp(noise)))


def rates(rng):
    """False alarms in 1,000 windows, with a season of a week that is set and without, and how many of windows with half of the rows are seen."""
    print("| windows | traffic | rows an hour | sd | a week is set: false alarms | halvings seen | no season is set: false alarms |\n|---|---|---|---|---|---|---|")
    for width, kind in (1, "flat"), (1, "waves"), (1, "office hours"), (1, "busy days"), (1, "odd weekends"), (24, "flat"):
        for mean, sd in (30, 0.1), (3000, 0.1), (3000, 0.15), (3000, 0.3):
            windows, alarms, seen, week = [0, 0], [0, 0], [], WEEK // width
            for _ in range(8):
                n = list(traffic((14 if width == 1 else 60) * WEEK, mean, sd, kind, rng, width))
                alarmed = [set(), set()]

                def level(i, value, is_set):
                    starts = [i - day * DAY // width for day in range(DAYS)]
                    of = lambda at: [n[at], at in alarmed[is_set]]
                    season = [[of(at - j * week) for j in range(SEASON) if at >= j * week] for at in starts]
                    season[0] = [of(i - j * week) for j in range(1, SEASON + 1) if i >= j * week]
                    got = judge(value, season, [] if is_set else [of(at) for at in range(max(0, i - LAST), i)], 1.5, 3)
                    return got and got[4] != "ok"

                for i, value in enumerate(n):
                    for is_set in False, True:
                        got = level(i, value, is_set)
                        windows[is_set] += got is not None
                        alarms[is_set] += got is True
                        if got:
                            alarmed[is_set].add(i)
                    if i % 7 == 0 and i > len(n) / 2:
                        seen.append(level(i, value // 2, True))
            print(f"| {width} h | {kind} | {mean} | {sd} | {1000 * alarms[1] / windows[1]:.2f} | {statistics.mean(seen):.0%} | {1000 * alarms[0] / windows[0]:.2f} |", flush=True)


def main():
    rng = numpy.random.default_rng(64)
    if "--rates" in sys.argv:
        return rates(rng)
    for case in cases(rng):
        print(json.dumps({"case": case, "judged": judge(*case)}, default=float))


if __name__ == "__main__":
    main()
