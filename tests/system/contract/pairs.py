"""Equal data, equal verdict: one table, put as a reference and observed by each pair of Python, TypeScript, R, and curl with
CSV, JSON and .npz. Each gives what its users have: data frames, typed arrays, dates, factors, files. KL is 0 in all.

usage: pairs.py URL FOLDER, in which node_modules has the package of TypeScript, and R_LIBS that of R"""
import datetime
import itertools
import json
import os
import subprocess
import sys
import urllib.parse
import zoneinfo

import numpy
import pandas

import kldiv

HERE = os.path.dirname(os.path.abspath(__file__))
URL, FOLDER = sys.argv[1:]
N = 97 * 12
ZONES = "Europe/Berlin", "Asia/Kolkata", "UTC"


def cycle(*values):
    return list(itertools.islice(itertools.cycle(values), N))


# Of each column what JSON can say: of times seconds since 1970, of ids their digits, of missing values null.
TABLE = {
    "code": cycle("00501", "10001", "00000", "501"),
    "factor": cycle(*map(str, range(1, 98))),
    "flag": cycle(True, False, True),
    "narrow": [i % 41 / 10 for i in range(N)],
    "tenths": [sum([0.1] * (i % 43), 0.0) for i in range(N)],
    "time": [1767225600.25 + i % 53 * 4321 for i in range(N)],
    "midnight": [1767225600 + i % 31 * 86400 for i in range(N)],
    "ünïcode 日本": cycle("Müller", "日本", "a,\"b\"; c", "e\u0301", "x y"),
    "id": cycle(str(2**53 + 1), str(2**53 + 4), str(2**53 + 9)),
    "holes": [None if i % 7 < 2 else i % 29 / 4 for i in range(N)],
    "gaps": cycle("a", None, "b", "a", None, "c"),
    "digits": cycle("1.0", "2", "1e3", "-0.50", "7"),
}


def from_python():
    """A data frame."""
    zones = itertools.cycle(map(zoneinfo.ZoneInfo, ZONES))
    times = [datetime.datetime.fromtimestamp(seconds, next(zones)) for seconds in TABLE["time"]]
    holes = itertools.cycle([None, float("nan"), pandas.NA])
    return pandas.DataFrame({
        **TABLE, "factor": pandas.Categorical(TABLE["factor"]), "narrow": numpy.float32(TABLE["narrow"]), "time": times,
        "midnight": pandas.to_datetime(TABLE["midnight"], unit="s"), "id": numpy.array(TABLE["id"], numpy.int64),
        "holes": pandas.Series([next(holes) if x is None else x for x in TABLE["holes"]], dtype=object),
        "gaps": [next(holes) if x is None else x for x in TABLE["gaps"]]})


def write_files():
    """The files that curl sends: without types as CSV, with those of JSON, and with those of numpy."""
    missing = itertools.cycle(["", "NA", "NaN", "null", "None"])
    plain = {True: "true", False: "false", None: ""}

    def field(name, value):
        if value is None and name == "holes":
            return next(missing)
        text = plain[value] if value is None or isinstance(value, bool) else str(value)
        return '"' + text.replace('"', '""') + '"' if set(text) & set(',";') else text

    rows = zip(*([field(name, value) for value in values] for name, values in TABLE.items()))
    with open(f"{FOLDER}/table.csv", "w", encoding="utf-8") as out:
        out.writelines(",".join(row) + "\n" for row in [TABLE, *rows])
    with open(f"{FOLDER}/table.json", "w", encoding="utf-8") as out:
        json.dump({"columns": TABLE}, out)
    arrays = {name: numpy.array([x or "" for x in values] if isinstance(values[0], str) else values)
              for name, values in TABLE.items()}
    numpy.savez(f"{FOLDER}/table.npz", **{**arrays, "holes": numpy.array(TABLE["holes"], float),
                                          "narrow": numpy.float32(TABLE["narrow"])})


def python(verb, groups):
    for name in groups:
        group = kldiv.Client(URL).group(name)
        if verb == "put":
            group.reference(from_python(), include=list(TABLE))
        else:
            yield name, {result.name: result.kl for result in group.observe(from_python(), key=None)}


def program(*command):
    def called(verb, groups):
        done = subprocess.run([*command, URL, f"{FOLDER}/table.json", verb, *groups], capture_output=True, text=True, cwd=FOLDER)
        if done.returncode != 0:
            sys.exit(f"{command} {verb}: {done.stdout}{done.stderr}")
        if verb == "observe":
            yield from json.loads(done.stdout).items()
    return called


def curl(form):
    def ask(path, *options):
        done = subprocess.run(["curl", "-sS", "--fail-with-body", "-H", "Content-Type:", *options, f"{URL}/monitors/{path}"],
                              capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else sys.exit(f"curl {path}: {done.stdout}{done.stderr}")

    def called(verb, groups):
        for name in groups:
            if verb == "put":
                ask(f"{name}?include={urllib.parse.quote(','.join(TABLE))}", "-T", f"{FOLDER}/table.{form}")
                for column in ["factor", "digits"] if form == "csv" else []:  # CSV cannot say that these are no numbers
                    ask(f"{name}/{column}?method=labels", "-T", f"{FOLDER}/table.csv")
            else:
                results = ask(f"{name}/observations", "--data-binary", f"@{FOLDER}/table.{form}")
                yield name, {result["name"]: result["kl"] for result in results["monitors"]}
    return called


CLIENTS = {"python": python, "typescript": program("node", f"{FOLDER}/pairs.mjs"), "r": program("Rscript", f"{HERE}/pairs.R"),
           "csv": curl("csv"), "json": curl("json"), "npz": curl("npz")}


def main():
    write_files()
    for name, client in CLIENTS.items():
        list(client("put", [name]))
    pairs, wrong = 0, []
    for name, client in CLIENTS.items():
        for group, found in client("observe", list(CLIENTS)):
            pairs += 1
            wrong += [f"put by {group}, observed by {name}: {column} has KL {found.get(column)}"
                      for column in TABLE if found.get(column) != 0]
    if wrong or pairs != len(CLIENTS) ** 2:
        sys.exit("\n".join([f"{pairs} pairs", *wrong]))
    print(f"{pairs} pairs of clients agree on {len(TABLE)} columns: KL 0")


main()
