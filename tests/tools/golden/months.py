"""Prints months.jsonl: with which windows compare=previous:K@month compares, by Python's calendar and zoneinfo.

Each row has a zone, the seconds of a window, its start, a number of months, and the start of the window so many months before:
the one that holds the same local time on the same day of the month, of a last day on the last, and of no other day. null where that
month has no such day, or the clocks skip the time."""

import calendar
import json
import random
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

ZONES = "UTC Europe/Berlin America/New_York America/Sao_Paulo Asia/Kolkata Australia/Lord_Howe Pacific/Apia".split()
SIZES = (86400, 43200, 21600, 3600, 900)


def utc(local, zone):
    """The first time that a local one may be, in seconds; None if the clocks skip it."""
    there = local.replace(tzinfo=zone)
    second = int(there.timestamp())
    return second if datetime.fromtimestamp(second, zone).replace(tzinfo=None) == local else None


def day_of(second, zone):
    """The start of the local day of a time."""
    start = utc(datetime.combine(datetime.fromtimestamp(second, zone).date(), time()), zone)
    return second // 3600 * 3600 if start is None else start


def before(local, months):
    month = local.year * 12 + local.month - 1 - months
    year, month = month // 12, month % 12 + 1
    length = calendar.monthrange(year, month)[1]
    is_last = local.day == calendar.monthrange(local.year, local.month)[1]
    if local.day >= length and not is_last:
        return None
    return datetime.combine(date(year, month, length if is_last else local.day), local.time())


def main():
    rng = random.Random(64)
    for zone_name in ZONES:
        zone = ZoneInfo(zone_name)
        for _ in range(150):
            day = date(2014, 1, 1) + timedelta(rng.randrange(4500))
            if rng.random() < 0.4:  # the end of a month
                day = day.replace(day=calendar.monthrange(day.year, day.month)[1] - rng.randrange(2))
            size, months = rng.choice(SIZES), rng.choice((1, 1, 2, 3, 11, 12, 13, 100))
            start = utc(datetime.combine(day, time()), zone)
            if start is None:
                continue
            if size < 86400:
                start = (start + rng.randrange(86400)) // size * size
            local = before(datetime.fromtimestamp(start, zone).replace(tzinfo=None), months)
            found = local and utc(local, zone)
            if found is not None:
                found = day_of(found, zone) if size == 86400 else found // size * size
            print(json.dumps({"zone": zone_name, "size": size, "start": start, "months": months, "before": found}))


if __name__ == "__main__":
    main()
