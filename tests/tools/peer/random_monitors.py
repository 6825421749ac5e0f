#!/usr/bin/env python3
"""Random monitors on a running kldivd, compared with their definition.

    /usr/bin/python3 tests/tools/peer/random_monitors.py build/kldivd [N [SEED [STORE]]]

Each of N cases is a group of monitors, made from a random table or from random settings, that is
observed at random times in every format, and may be replaced. Bins and counts must be those of
monitor_oracle.py, scores within 1e-12, tails of chi-squared within 1e-10. At the end the server is
killed, and must answer as before. Needs Debian's python3-numpy and python3-scipy. Exits 1 if
anything disagrees.
"""
import collections
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from urllib.parse import quote

import monitor_bodies as bodies
import monitor_checks as checks
import monitor_draws as draws
import monitor_oracle as oracle


class Server:
    def __init__(self, binary, store):
        self.binary, self.store = binary, store
        self.start()

    def start(self):
        port_file = tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen([self.binary, "--listen", "127.0.0.1:0",
                                         "--port-file", port_file.name, "--store", self.store,
                                         "--log-level", "warning"])
        while not open(port_file.name).read().endswith("\n"):
            if self.process.poll() is not None:
                sys.exit("the server does not start")
            time.sleep(0.01)
        self.connection = http.client.HTTPConnection("127.0.0.1", int(open(port_file.name).read()))

    def stop(self):
        self.process.kill()
        self.process.wait()

    def ask(self, method, path, body=None, content_type=None, **headers):
        if isinstance(body, dict):
            body, content_type = json.dumps(body).encode(), "application/json"
        if content_type:
            headers["Content-Type"] = content_type
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        text = response.read()
        if "json" in response.headers.get("Content-Type", ""):
            text = json.loads(text)
        return response.status, text


def make_table(case, rng, path):
    """Monitors of a random table. Returns them by name, and the drawer of each column."""
    n = rng.choice([1, 3, 30, 200])
    drawers = {f"c{i} é/%": rng.choice([draws.draw_numbers, draws.draw_numbers, draws.draw_texts])
               for i in range(rng.randint(1, 4))}
    table = {name: draw(rng, n) for name, draw in drawers.items()}
    settings, count = draws.draw_settings(rng), rng.choice([10, 10, 10, 1, 3, 50, 1000])
    method = rng.choice(["auto", "quantile", "width", "labels"])
    body, content_type = bodies.encode(rng, table)
    fields = content_type in (None, "text/csv")
    query = draws.as_query(rng, settings) + f"&method={method}&bins={count}"
    status, answer = case.ask("PUT", f"{path}?{query}", body, content_type)
    monitors = {}
    for name, values in table.items():
        values = as_read(values, fields, method)
        bins, counted, choosing = oracle.make_bins(values, method, count)
        if bins:
            reference = oracle.count_values(bins, counted)
            own = json.loads(json.dumps(settings))
            monitors[name] = oracle.Monitor(own, bins, reference, False)
            monitors[name].choosing, monitors[name].values = choosing, values
    if not monitors:
        case.expect(status in (200, 201, 422), path, "nothing", status, answer)
    elif case.expect(status == 201, path, "status", status, answer):
        case.same([m["name"] for m in answer["monitors"]], list(monitors), path, "names")
        for made in answer["monitors"] if case.agree else ():
            monitor = monitors[made["name"]]
            checks.check_made(case, made, monitor, path)
    return monitors, drawers


def as_read(values, fields, method):
    """Values as a new monitor sees them: fields of CSV are numbers if half of those present are, or nine tenths beside
    categories, and do not become labels, beside which texts are labels, too; strings of JSON only if all present are
    numbers, or the names of those that JSON has no other form for."""
    if not fields:
        named = [v for v in values if isinstance(v, str) and not oracle.missing(v)]
        if set(named) <= {"Infinity", "-Infinity"}:
            return [oracle.number_of(v) if v in named else v for v in values]
        return values
    present = [v for v in values if not oracle.missing(v)]
    numbers = [oracle.number_of(v) for v in present]
    texts = collections.Counter(v for v, number in zip(present, numbers) if number is None)
    known = sum(v is not None for v in numbers)
    categories = sum(n >= 2 for n in texts.values()) >= 5 and 10 * known < 9 * len(numbers)
    codes = any(isinstance(v, str) and re.fullmatch(r"[+-]?0[0-9]+", v) for v in present)
    some = [number for number in numbers if number is not None]
    labels = method == "labels" or method == "auto" and oracle.few_whole(some, max(len(some) // 10, 2))
    if 2 * known < max(1, len(numbers)) or categories or codes:
        return [v if oracle.missing(v) else oracle.label_of(v) for v in values]
    if labels:
        return [v if oracle.missing(v) or oracle.number_of(v) is None else oracle.number_of(v) for v in values]
    return [None if oracle.missing(v) else oracle.number_of(v) for v in values]


def observe_table(case, rng, path, monitors, drawers):
    n = rng.choice([0, 1, 10, 60])
    names = rng.sample(list(drawers), rng.randint(1, len(drawers)))
    if any(drawers[name] == draws.draw_texts and "edges" in monitors[name].bins
           for name in names if name in monitors):
        return
    table = {name: drawers[name](rng, n) for name in names}
    settings = next(iter(monitors.values())).settings
    body, content_type = bodies.encode(rng, table)
    time_, fields = draws.draw_time(rng, settings), content_type in (None, "text/csv")
    if any(monitor.forgets(time_) for monitor in monitors.values()):
        return
    query = "timestamp=" + quote(str(draws.text_of(rng, time_)))
    status, answer = case.ask("POST", f"{path}/observations?{query}", body, content_type)
    known = {name: table[name] for name in names if name in monitors}
    if any(monitors[name].too_old(time_) for name in known) and n:
        case.expect(status == 422, path, "too old", status, answer)
        return
    if not known or body == b'{"rows": []}': # which name no column
        case.expect((status, answer.get("code")) == (422, "columns_unknown"), path, "no column is known", status, answer)
        return
    if not case.expect(status == 200, path, "observations", status, answer):
        return
    case.same(sorted(m["name"] for m in answer["monitors"]), sorted(known) if n else [],
              path, "observed")
    for result in answer["monitors"]:
        monitor = monitors[result["name"]]
        counts = oracle.count_values(monitor.bins, known[result["name"]], fields)
        unseen = oracle.unseen_texts(monitor.bins, known[result["name"]], fields)
        checks.settle(case, result, monitor, counts, time_, path + " " + result["name"], unseen)


def play_table(case, rng, path):
    monitors, drawers = make_table(case, rng, path)
    for _ in range(rng.randint(1, 8) if monitors and case.agree else 0):
        if case.agree:
            observe_table(case, rng, path, monitors, drawers)
    for name, monitor in monitors.items():
        if case.agree:
            checks.check_windows(case, f"{path}/{quote(name, safe='')}", monitor)


def put_given(case, rng, path, model):
    bins, reference, counts, exact = draws.draw_given(rng)
    settings = draws.draw_settings(rng)
    if model:
        settings["retention_days"] = model.settings["retention_days"]
    if model and rng.random() < 0.5:
        bins, reference, counts, exact = model.given
        for name in ("window", "fire_after", "clear_after"):
            settings[name] = model.settings[name]
    elif settings["compare"] != "reference" and rng.random() < 0.4:
        reference, counts, exact = None, None, False
    if reference is None and settings["compare"] == "reference":
        settings["compare"] = {"previous": 2}
    status, answer = case.ask("PUT", path, {**settings, "bins": bins, "reference": reference})
    if not case.expect(status == (200 if model else 201), path, status, answer):
        return model
    if model:
        model.replace(settings, bins, counts, exact)
    else:
        model = oracle.Monitor(settings, bins, counts, exact)
    model.given = bins, reference, counts, exact
    case.same(answer["revision"], model.revision, path, "revision")
    case.same(case.ask("PUT", path, answer), (200, answer), path, "idempotent")
    return model


def take_reference(case, rng, path, model):
    """Makes a reference of the windows between two times."""
    bounds = sorted(draws.draw_time(rng, model.settings) for _ in range(2))
    start, end = (bound // 10**6 for bound in bounds)
    summed = [w["counts"] for w in model.before(None) if start * 10**6 <= w["start"] < end * 10**6]
    counts = [sum(column) for column in zip(*summed)]
    if sum(counts) > 2**53:
        return
    group, name = path.rsplit("/", 1)
    status, answer = case.ask("POST", f"{group}/reference?include={name}", {"from": start, "to": end})
    case.same(status, 200 if summed else 422, path, "reference of windows")
    if summed and status == 200:
        answer = answer["monitors"][0]
        model.replace(model.settings, model.bins, counts, False)
        reference = draws.members_of("counts", model.bins, counts)
        model.given = model.bins, answer["reference"], counts, False
        without = {name: value for name, value in answer["reference"].items() if name not in ("mean", "sd")}
        case.same(without, reference, path, "reference")
        case.same(answer["revision"], model.revision, path, "revision of a reference")


def play_given(case, rng, path):
    path += "/m%2F1"
    model = put_given(case, rng, path, None)
    for _ in range(rng.randint(1, 12)):
        if not case.agree:
            return
        if rng.random() < 0.1:
            model = put_given(case, rng, path, model)
        if rng.random() < 0.1:
            take_reference(case, rng, path, model)
        members, counts, unseen = draws.draw_observation(rng, model)
        evaluated = case.ask("POST", f"{path}/evaluate", members)[1]
        time_ = draws.draw_time(rng, model.settings)
        if model.forgets(time_):
            continue
        members["timestamp"] = draws.text_of(rng, time_)
        status, answer = case.ask("POST", f"{path}/observations", members)
        if model.too_old(time_):
            case.expect(status == 422, path, "too old", status, answer)
        elif case.expect(status == 200, path, status, answer):
            case.same(evaluated["n"], sum(counts), path, "evaluate")
            checks.settle(case, answer, model, counts, time_, path, unseen)
    checks.check_windows(case, path, model)


def all_answers(server):
    """Everything that can be asked about all monitors."""
    answers, cursor = {}, ""
    while cursor is not None:
        page = server.ask("GET", "/monitors?limit=100" + cursor)[1]
        answers["list" + cursor] = page
        cursor = page["next"] and "&cursor=" + quote(page["next"])
        for each in page["monitors"]:
            path = f"/monitors/{quote(each['group'], safe='')}/{quote(each['name'], safe='')}"
            for end in ("", "/windows?limit=1000", "/events",
                        "/windows/latest", "/windows/current"):
                answers[path + end] = server.ask("GET", path + end)
    metrics = server.ask("GET", "/metrics")[1].decode().splitlines()
    answers["metrics"] = sorted(line for line in metrics if line.startswith("kldiv_monitor_"))
    return answers


def compare_restarted(server):
    before = all_answers(server)
    server.stop()
    server.start()
    after = all_answers(server)
    differing = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    for key in differing[:5]:
        print("changed by a restart:", key, before.get(key), after.get(key))
    print(len(before), "answers before and after a kill,", len(differing), "differ")
    return not differing


def main():
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory() as folder:
        store = sys.argv[4] if len(sys.argv) > 4 else f"sqlite:{os.path.join(folder, 'store')}"
        server, good, same = Server(sys.argv[1], store), 0, True
        try:
            for i in range(n):
                rng, case = random.Random(f"{seed} {i}"), checks.Case(server)
                play = rng.choice([play_table, play_given])
                try:
                    play(case, rng, f"/monitors/{seed}%20{i}")
                except (http.client.HTTPException, ConnectionError) as error:
                    case.expect(False, "no answer:", error)
                    server.stop()
                    server.start()
                if not case.agree:
                    print("the case is", seed, i)
                good += case.agree
            same = store == "memory" or compare_restarted(server)
        finally:
            server.stop()
    print(f"monitors: {good} passed, {n - good} failed")
    return good != n or not same


if __name__ == "__main__":
    sys.exit(main())
