"""Prints zones.jsonl: TZif files, and what Python's zoneinfo makes of random times by them.

Each row has a file as base64; pairs of a time in UTC and the local one, in seconds since 1970; and triples of a local time,
the first time in UTC that it may be, and whether the clocks skip it. Zones are those with half hours, changes at midnight,
days that were left out, negative summer time, rules beyond a day, and files made here with random rules."""

import base64
import io
import json
import random
import struct
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

ZONES = ("Europe/Berlin Europe/Dublin America/New_York America/Sao_Paulo America/St_Johns America/Havana America/Nuuk "
         "Asia/Kolkata Asia/Kathmandu Asia/Jerusalem Asia/Gaza Asia/Tehran Australia/Lord_Howe Pacific/Apia Pacific/Kwajalein "
         "Africa/Casablanca Africa/Monrovia Antarctica/Troll Etc/GMT+9").split()
EPOCH = datetime(1970, 1, 1)
FIRST, LAST = (int((datetime(year, 1, 1) - EPOCH).total_seconds()) for year in (1840, 2250))


def at(seconds):
    return EPOCH + timedelta(seconds=seconds)


def to_local(zone, second):
    there = at(second).replace(tzinfo=timezone.utc).astimezone(zone).replace(tzinfo=None)
    return int((there - EPOCH).total_seconds())


def to_utc(zone, local):
    there = at(local).replace(tzinfo=zone)
    second = int((there.astimezone(timezone.utc).replace(tzinfo=None) - EPOCH).total_seconds())
    return second, to_local(zone, second) != local


def changes(zone):
    """Times right before which the offset changes."""
    step, found = 20 * 86400, []
    offset = to_local(zone, FIRST) - FIRST
    for second in range(FIRST, LAST, step):
        now = to_local(zone, second) - second
        if now == offset:
            continue
        low, high, offset = second - step, second, now
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if to_local(zone, middle) - middle != now else (low, middle)
        found.append(high)
    return found


def times(zone, rng):
    near = changes(zone)
    near = rng.sample(near, min(len(near), 12)) + near[:2] + near[-2:]
    return ([rng.randrange(FIRST, LAST) for _ in range(25)] + [second + d for second in near for d in (-1, 0)]
            + [second + rng.randrange(-7200, 7200) for second in near])


def row(name, content, rng, last=None):
    """`last` is a transition to a rule that does not go on from it: around it readers may differ."""
    zone = ZoneInfo.from_file(io.BytesIO(content))
    utc = [second for second in times(zone, rng) if last is None or abs(second - last) > 3 * 86400]
    local = [to_local(zone, second) + rng.choice((0, 1800, 3600)) for second in utc]
    return {"name": name, "file": base64.b64encode(content).decode(), "utc": [[s, to_local(zone, s)] for s in utc],
            "local": [[s, *to_utc(zone, s)] for s in local]}


def block(version, size, transitions, types, leaps=0):
    """A header and its data: transitions are (time, type), types (offset, is_summer)."""
    form = ">i" if size == 4 else ">q"
    return (b"TZif" + version + bytes(15) + struct.pack(">6I", 0, 0, leaps, len(transitions), len(types), 4)
            + b"".join(struct.pack(form, time) for time, _ in transitions) + bytes(index for _, index in transitions)
            + b"".join(struct.pack(">iBB", offset, summer, 0) for offset, summer in types) + b"XYZ\0"
            + b"".join(struct.pack(form, 10 ** 8 * (i + 1)) + struct.pack(">i", i + 1) for i in range(leaps)))


def random_time(rng, hours):
    text = str(rng.randrange(-hours, hours + 1))
    return text + rng.choice(("", ":30", ":15:05")) if rng.random() < 0.4 else text


def random_day(rng, first, last):
    """A day from one month to another. Python of 2023 takes the form n for a day later, and J59 for the 29th of February."""
    month = rng.randrange(first, last + 1)
    if rng.random() < 0.5:
        return f"M{month}.{rng.randrange(1, 6)}.{rng.randrange(7)}"
    return f"J{max(61, 30 * month - rng.randrange(20))}"


def made(rng):
    offset = rng.randrange(-12, 15)
    rule = f"<S>{offset}".replace("S", "STD") + "<+DST>" + (str(offset - rng.choice((1, 2, -1))) if rng.random() < 0.5 else "")
    spring, autumn = random_day(rng, 2, 5), random_day(rng, 7, 10)
    if rng.random() < 0.5:
        spring, autumn = autumn, spring
    return f"{rule},{spring}/{random_time(rng, 100)},{autumn}/{random_time(rng, 100)}"


def files(rng):
    for name in ZONES:
        yield name, Path("/usr/share/zoneinfo", name).read_bytes(), None
    old = [(-10 ** 9, 1), (0, 0), (10 ** 9, 2)]
    types = [(3600, 0), (7200, 1), (-1800, 0)]
    yield "made/version1", block(b"\0", 4, old, types), None
    yield "made/summer_first", block(b"\0", 4, old, [(7200, 1), (3600, 0), (-1800, 0)]), None
    for i in range(12):
        rule = f"\n{made(rng)}\n".encode()
        before = old[:1 + rng.randrange(3)]
        content = block(b"2", 4, [], types[:1]) + block(b"2", 8, before, types, leaps=i % 3) + rule
        yield f"made/rule{i}", content, before[-1][0]


def main():
    rng = random.Random(44)
    for name, content, last in files(rng):
        print(json.dumps(row(name, content, rng, last), separators=(",", ":")))


if __name__ == "__main__":
    sys.exit(main())
