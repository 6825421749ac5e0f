"""A histogram of Prometheus as a monitor: the buckets of one time are the reference, what was added since then are
observations. Buckets of Prometheus are cumulative and hold their upper bound, (a, b]; bins here are counts, and hold their
lower one: each edge moves to the next double.

    python3 prometheus_histogram.py http://127.0.0.1:8080 web latency before.txt after.txt

The files have lines of /metrics, such as latency_bucket{le="0.1"} 8."""
import math
import re
import sys

import numpy as np

import kldiv


def buckets(lines, metric):
    """Upper bounds and cumulative counts, summed over the other labels."""
    found = {}
    for line in lines:
        match = re.match(rf'{re.escape(metric)}_bucket{{(?:.*,)?le="([^"]+)".*}} ([0-9.eE+]+)', line)
        if match:
            bound = float(match[1])
            found[bound] = found.get(bound, 0) + round(float(match[2]))
    return dict(sorted(found.items()))


def counts(found, before=None):
    """What the API takes: the counts of the buckets, less those of before."""
    if math.inf not in found or len(found) < 3:
        raise ValueError("the histogram has no +Inf bucket, or fewer than three buckets")
    cumulative = np.array(list(found.values())) - (np.array([before[bound] for bound in found]) if before else 0)
    each = np.diff(cumulative, prepend=0)
    if (each < 0).any():
        raise ValueError("a cumulative count falls: the counter was reset, or these are not cumulative")
    return {"underflow": int(each[0]), "counts": each[1:-1].tolist(), "overflow": int(each[-1])}


def edges(found):
    return [math.nextafter(bound, math.inf) for bound in found if bound < math.inf]


def main(url, group, metric, before, after):
    with open(before, encoding="utf-8") as first, open(after, encoding="utf-8") as second:
        old, new = buckets(first, metric), buckets(second, metric)
    client, path = kldiv.Client(url), f"/monitors/{group}/{metric}"
    client.request("PUT", path, json_body={"bins": {"edges": edges(old)}, "reference": counts(old)})
    result = client.request("POST", f"{path}/observations", json_body=counts(new, old))
    print(result["verdict"], result["kl"])


if __name__ == "__main__":
    main(*sys.argv[1:])
