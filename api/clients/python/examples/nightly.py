"""A nightly job, for cron or a systemd timer: observes a day's file, prints what drifts, and ends with status 2 if a
monitor is critical, so that cron writes a mail.

    5 0 * * * python3 nightly.py http://127.0.0.1:8080 sales /data/sales-%s.csv

%s is yesterday's date. It may run again after a failure: the same file counts once in 24 hours."""
import datetime
import sys

import kldiv


def main(url, group, pattern, day=None):
    day = day or (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)).date().isoformat()
    results = kldiv.Client(url).group(group).observe(pattern % day, timestamp=f"{day}T12:00:00Z")
    for result in results.drifting:
        print(result.sentence())
    return 2 if any(result.state == "critical" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
