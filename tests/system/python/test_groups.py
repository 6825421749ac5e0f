"""Groups of monitors: tables of every kind give the verdicts that the service gives of CSV; sizes, keys, times, pages."""
import contextlib
import csv
import datetime
import io
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from service import Server

import kldiv
from kldiv import group as groups
from kldiv import sources
from kldiv.__main__ import summary_text

try:
    import pandas
except ImportError:
    pandas = None


def data(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    return {"age": rng.normal(40 + shift, 10, n).round(2), "country": rng.choice(["de", "fr", "it"], n).tolist(),
            "member": (rng.random(n) < 0.3)}


class Groups(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.client = kldiv.Client(cls.server.url)
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)

    def setUp(self):
        warnings.simplefilter("ignore")
        self.group = self.client.group(f"test/{self.id()}")

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def write_csv(self, name, table):
        with open(self.path(name), "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            writer.writerows(zip(*([repr(v) if isinstance(v, float) else str(v) for v in
                                    (c.tolist() if isinstance(c, np.ndarray) else c)] for c in table.values())))
        return self.path(name)

    def scores(self, results):
        return {r.name: (r.verdict, r["n"], round(r.kl, 12)) for r in results}

    def test_every_kind_of_table_gives_the_same(self):
        reference, current = data(2000, 1), data(500, 2, 15.0)
        path = self.write_csv("reference.csv", reference)
        kinds = {"dict": lambda t: t, "csv": lambda t: self.write_csv("a.csv", t),
                 "batches": lambda t: iter([{k: v[i:i + 100] for k, v in t.items()} for i in range(0, len(t["age"]), 100)])}
        if pandas:
            kinds["pandas"] = pandas.DataFrame
            kinds["categories"] = lambda t: pandas.DataFrame(t).astype({"country": "category", "age": "Float64"})
            kinds["chunks"] = lambda t: np.array_split(pandas.DataFrame(t), 3)
        seen = set()
        for name, kind in kinds.items():
            group = self.client.group(f"kind {name}")
            configs = group.reference(path if name == "csv" else kind(reference))
            self.assertEqual([c["name"] for c in configs], ["age", "country", "member"], name)
            results = group.observe(kind(current))
            self.assertEqual((results["age"].verdict, results["country"].verdict), ("critical", "ok"))
            self.assertEqual(self.scores(group.evaluate(kind(current))), self.scores(results), name)
            seen.add(repr(sorted(self.scores(results).items())))
        self.assertEqual(len(seen), 1, seen)

    def test_large_tables_are_one_window(self):
        reference = data(2000, 1)
        self.group.reference(reference)
        for number, limit in enumerate([groups.MAX_REQUEST, 1000]):
            with mock.patch.object(groups, "MAX_REQUEST", limit):
                results = self.group.observe(data(500, 3 + number))
                self.assertEqual({r["n"] for r in results}, {500})
                results = self.group.observe(self.write_csv("large.csv", data(700, 5 + number)))
                self.assertEqual({r["n"] for r in results}, {700})
        self.assertEqual(len(self.group.windows("age")), 4)

    def test_counted_and_sent_whole_are_the_same(self):
        self.group.reference(data(2000, 1))
        current = {**data(500, 2), "age": [None, 1e9, -1e9, float("inf"), *data(496, 3)["age"].tolist()]}
        current["country"][:3] = [None, "xx", "NA"]
        whole = self.group.observe(current)
        counted = self.group.evaluate(current)
        for a, b in zip(whole, counted):
            self.assertEqual([x["current"] for x in a["bins"]], [x["current"] for x in b["bins"]])

    def test_a_sample_of_a_large_reference(self):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            configs = self.group.reference((data(1000, i) for i in range(5)), sample=1500)
            self.assertEqual(sum(configs[0]["reference"]["counts"]), 1500)
            self.assertIn("sample of 1,500 of 5,000 rows", str(given[0].message))
        old, groups.MAX_REQUEST = groups.MAX_REQUEST, 1000
        try:
            configs = self.group.reference(self.write_csv("r.csv", data(3000, 1)), sample=2000)
        finally:
            groups.MAX_REQUEST = old
        self.assertEqual([sum(c["reference"]["counts"]) for c in configs], [2000] * 3)
        self.assertEqual(configs[2]["bins"], {"labels": ["false", "true"]})

    def test_files(self):
        self.group.reference(data(2000, 1))
        folder = self.path("folder")
        os.makedirs(folder)
        for i in range(3):
            np.savez(os.path.join(folder, f"{i}.npz"), **{k: np.array(v) for k, v in data(100, i).items()})
        self.assertEqual({r["n"] for r in self.group.observe(folder)}, {300})
        self.assertEqual({r["n"] for r in self.group.observe(os.path.join(folder, "0.npz"))}, {100})
        for wrong in "x.txt", self.path("nothing.csv"), self.write_csv("bad.csv", {}):
            self.assertRaises((ValueError, OSError, kldiv.ServiceError), self.group.observe, wrong)
        os.makedirs(self.path("empty"))
        self.assertRaises(ValueError, self.group.observe, self.path("empty"))

    def test_the_same_content_counts_once(self):
        self.group.reference(data(2000, 1), retention_days=36500)
        when = datetime.datetime(2026, 1, 1)
        for _ in range(2):
            self.group.observe(data(500, 2))
            self.group.observe(data(500, 2), when)
            self.group.observe(iter([data(250, 2), data(250, 3)]))
        self.assertEqual(sorted(w["n"] for w in rows(self.group.windows("age"))), [500] * 3)
        self.group.observe(data(500, 2), key=None)
        self.group.observe(data(500, 2), key="again")
        self.assertEqual(len(self.group.windows("age")), 5)

    def test_memory_is_that_of_a_batch(self):
        code = """if True:
            import resource, sys
            import numpy as np, kldiv
            def resident():
                return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            def batches():
                for i in range(60):
                    yield {"x": np.full(1 << 20, float(i)), "y": np.zeros(1 << 20)}  # 16 MiB
            group = kldiv.Client(sys.argv[1]).group("memory")
            group.reference({"x": np.arange(60.0), "y": np.arange(60.0)})
            list(zip(batches(), range(2)))
            before = resident()
            results = group.observe(batches())
            assert results[0]["n"] == 60 << 20
            assert resident() - before < 80 << 10, (before, resident())  # of 960 MiB
        """
        subprocess.run([sys.executable, "-W", "ignore", "-c", code, self.server.url], check=True, timeout=60)

    def test_times(self):
        self.group.reference(data(2000, 1), window="3600s", retention_days=36500)
        times = ["2026-01-01T00:30:00Z", 1767229200, datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, 3),
                 datetime.datetime(2026, 1, 1, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
                 np.datetime64("2026-01-01T05:00")]
        if pandas:
            times.append(pandas.Timestamp("2026-01-01T06:00"))
        for when in times:
            self.group.observe(data(10, 2), when)
        windows = rows(self.group.windows("age"))
        hours = [str(w["start"])[11:13] for w in reversed(windows)]
        self.assertEqual(hours, ["00", "01", "03", "04", "05", "06"][:len(times) - 1])
        self.assertEqual(windows[-1]["n"], 20)
        between = rows(self.group.windows("age", datetime.datetime(2026, 1, 1, 1), "2026-01-01T04:00:00Z"))
        self.assertEqual(len(between), 2)

    def test_rows_with_times_of_their_own(self):
        start = datetime.datetime(2026, 1, 1)
        times = [start + datetime.timedelta(hours=7 * i) for i in range(30)]
        table = {**data(30, 2), "at": times[::-1]}
        tables = [table, {**table, "at": [f"{t:%d.%m.%Y %H:%M}" for t in times[::-1]]},
                  {**table, "at": np.array(times[::-1], "datetime64[s]")}]
        if pandas:
            frame = pandas.DataFrame(table)
            there = frame.assign(at=frame["at"].dt.tz_localize("Europe/Berlin"))
            tables += [frame, there]
        for i, each in enumerate(tables):
            self.group.reference(data(2000, 1), window="1d", retention_days=36500, timezone="Europe/Berlin")
            results = self.group.observe(each, time="at", key=None)
            self.assertEqual(sum(results.windows.values()), 27, i)
            windows = rows(self.group.windows("age"))
            self.assertEqual([w["n"] for w in windows[:2]], [2, 4], i)
            self.assertEqual(str(windows[0]["start"])[:16].replace("T", " "), "2026-01-08 23:00", i)
            self.group.delete()
        self.group.reference(data(2000, 1), window="1d", retention_days=36500)
        again = [self.group.observe(table, time="at", timezone="Asia/Kolkata") for _ in range(2)]
        self.assertEqual([results.replayed for results in again], [False, True])
        self.assertEqual(again[0].windows, again[1].windows)
        self.group.delete()
        configs = self.group.reference(table, window="1d", retention_days=36500, time="at", kinds={"age": "numbers"})
        self.assertEqual(sorted(config["name"] for config in configs), ["age", "country", "member"])
        self.assertEqual([len(rows(self.group.windows(name))) for name in ("age", "country")], [9, 9])
        self.assertEqual(self.group.summary()["new"], [])
        self.group.delete()
        configs = self.group.reference({**table, "at": [str(t) for t in times]}, window="1d", retention_days=36500,
                                       time="at", include=["age"])
        self.assertEqual([config["name"] for config in configs], ["age"])
        self.assertEqual(self.group.summary()["new"], [])
        self.assertEqual(sum(w["n"] for w in rows(self.group.windows("age"))), 30)
        self.group.reference(table, window="1d", retention_days=36500, time="at", dry_run=True, exclude="country")
        self.assertEqual(sum(w["n"] for w in rows(self.group.windows("age"))), 30)
        with self.assertRaisesRegex(ValueError, "no column 'when'"):
            self.group.reference(table, window="1d", time="when")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            path.write_text("at,age\n" + "".join(f"{t},{i}\n" for i, t in enumerate(times)))
            configs = self.group.reference(path, window="1d", retention_days=36500, time="at")
        self.assertEqual([config["name"] for config in configs], ["age"])
        self.assertEqual(sum(w["n"] for w in rows(self.group.windows("age"))), 60)
        with self.assertRaisesRegex(ValueError, "at most 10 rows"):
            self.group.reference(table, window="1d", time="at", sample=10)
        with self.assertRaisesRegex(ValueError, "leave timestamp out"):
            self.group.observe(table, 5, time="at")
        with self.assertRaisesRegex(kldiv.ServiceError, "column 'when'"):
            self.group.observe(table, time="when")
        with self.assertRaisesRegex(ValueError, "one request"):
            self.group.observe(iter([table, table]), time="at")

    def test_incidents(self):
        self.group.reference({name: [i * 37 % 100 for i in range(100)] for name in "abcdefg"}, window="1h", pool=1)
        shifted = [50 + i * 37 % 50 for i in range(100)]
        self.group.observe({"g": shifted}, "2026-01-01T00:00:00Z")
        self.group.observe({name: shifted for name in "abcdef"}, "2026-01-01T01:00:00Z")
        summary = self.group.summary()
        self.assertEqual(summary.incidents(), ["7 columns since 2026-01-01T01:00:00Z: a, b, c, d, e …; first was g"])
        self.assertIn("<p>7 columns since", summary._repr_html_())
        self.assertRegex(summary_text(summary), r"7 of 7 monitors drift\n  7 columns since .*\n  critical a: KL")
        for name in "cdefg":
            self.client.request("DELETE", f"{self.group._path}/{name}")
        self.assertEqual(self.group.summary().incidents(), ["2 columns since 2026-01-01T02:00:00Z: a, b"])

    def test_windows_events_and_settings(self):
        self.group.reference(data(2000, 1), fire_after=1, retention_days=36500)
        for hour in range(5):
            self.group.observe(data(500, 10 + hour, 15.0 if hour > 2 else 0.0), f"2026-01-01T0{hour}:00:00Z")
        self.assertEqual(len(self.group.windows()), 15)
        first = rows(self.group.windows("age"))[0]
        self.assertEqual((first["name"], first["verdict"], first["n"]), ("age", "critical", 500))
        if pandas:
            self.assertEqual(str(self.group.windows().dtypes["start"]), "datetime64[ns, UTC]")
        self.assertEqual({e["to"] for e in rows(self.group.events())}, {"ok", "critical"})
        self.assertEqual(self.group.summary()["drifting"][0]["name"], "age")
        self.assertEqual(self.group.summary().incidents(), [])
        self.assertIn(self.group.name, [row["group"] for row in self.client.groups()])
        self.group.settings(thresholds={"critical": 50})
        self.group.settings("age", retention_days=10, annotations={"owner": "risk"})
        configs = {c["name"]: c for c in self.group.monitors()}
        self.assertEqual({c["thresholds"]["critical"] for c in configs.values()}, {50})
        self.assertEqual((configs["age"]["retention_days"], configs["country"]["retention_days"]), (10, 36500))
        self.group.settings(thresholds=None)
        self.assertEqual(self.group.monitors()[0]["thresholds"]["critical"], 0.1)
        self.group.delete()
        with self.assertRaises(kldiv.ServiceError) as raised:
            self.group.monitors()
        self.assertEqual((raised.exception.status, raised.exception.code), (404, "group_not_found"))

    def test_new_references_keep_settings(self):
        self.group.reference(data(500, 1), critical=0.5, retention_days=36500)
        for hour in range(3):
            self.group.observe(data(500, 10 + hour), f"2026-01-01T0{hour}:00:00Z")
        by_table = {c["name"]: c for c in self.group.renew(data(900, 2))}
        self.assertEqual({(c["revision"], c["thresholds"]["critical"]) for c in by_table.values()}, {(2, 0.5)})
        self.assertEqual(sum(by_table["age"]["reference"]["counts"]), 900)
        self.group.observe(data(700, 3), "2026-01-02T00:00:00Z")
        by_period = {c["name"]: c for c in self.group.renew(start="2026-01-02", end="2026-01-03")}
        self.assertEqual((sum(by_period["country"]["reference"]["counts"]), by_period["country"]["revision"]), (700, 3))
        self.group.observe(data(600, 4), "2026-01-03T00:00:00Z")
        some = self.group.renew(start="2026-01-03", end="2026-01-04", include=["age", "member"])
        self.assertEqual({c["name"]: c["revision"] for c in some}, {"age": 4, "member": 4})
        self.assertEqual([c["name"] for c in self.group.renew(data(300, 5), include="age")], ["age"])
        for wrong in {}, {"data": data(5, 1), "start": 1}:
            self.assertRaises(ValueError, self.group.renew, **wrong)

    def test_a_window_is_deleted(self):
        self.group.reference(data(2000, 1), retention_days=36500)
        for hour in range(3):
            self.group.observe(data(500, 10 + hour, 30.0 if hour == 2 else 0.0), f"2026-01-01T0{hour}:00:00Z")
        self.assertEqual(self.group.latest("age")["state"], "critical")
        self.group.delete_window("age", rows(self.group.windows("age"))[0]["id"])
        self.assertEqual(self.group.latest("age")["state"], "ok")
        self.assertEqual(len(self.group.windows("age")), 2)
        with self.assertRaises(kldiv.ServiceError) as raised:
            self.group.delete_window("age", 3)
        self.assertEqual(raised.exception.code, "window_not_found")

    def test_windows_of_a_period_are_deleted(self):
        self.group.reference(data(2000, 1), retention_days=36500)
        for hour in range(3):
            self.group.observe(data(500, 10 + hour, 30.0 if hour == 2 else 0.0), f"2026-01-01T0{hour}:00:00Z")
        n = len(self.group.monitors())
        told = self.group.delete_windows("2026-01-01T02:00:00Z", "2026-01-01T03:00:00Z")
        self.assertEqual(told, {"windows": n, "monitors": n})
        self.assertEqual(self.group.latest("age")["state"], "ok")
        self.assertEqual(self.group.delete_windows("2026-01-01", "2026-01-02", "age"), {"windows": 2, "monitors": 1})
        with self.assertRaises(kldiv.ServiceError) as raised:
            self.group.delete_windows("2026-01-01", "2026-01-02", "age")
        self.assertEqual(raised.exception.code, "window_not_found")

    def test_segments(self):
        rng = np.random.default_rng(64)

        def table(n, shift=0.0):
            country = rng.choice(["DE", "FR", "US", "IS"], n, p=[0.5, 0.3, 0.195, 0.005])
            return {"country": country, "amount": rng.normal(50 + shift * (country == "FR"), 10), "x": rng.normal(size=n).astype(np.float32)}

        self.group.reference(table(4000), by="country")
        names = [f"{self.group.name}[country={value}]" for value in ("DE", "FR", "US", "other")]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.npz")
            for kind in ("columns", "npz"):
                columns = table(2000, 20)
                np.savez(path, **columns)
                results = self.group.observe(columns if kind == "columns" else path, by="country", key=None)
                self.assertEqual(sorted(results.segments), names)
                self.assertEqual([results.segments[name]["amount"].verdict == "critical" for name in names], [False, True, False, False], kind)
                self.assertEqual(sum(each["x"]["n"] for each in results.segments.values()), results["x"]["n"])
        self.assertEqual(self.group.observe(table(500), key=None).segments, {})
        with self.assertRaises(kldiv.ServiceError) as raised:
            self.group.observe(table(100), by="amount", key=None)
        self.assertEqual(raised.exception.code, "segments_missing")

    def test_volume(self):
        self.group.reference({"x": ["a", "b"] * 500}, window="1d", volume=(1.5, 3), retention_days=36500)
        levels = []
        for day in range(1, 10):
            result, = self.group.observe({"x": ["a", "b"] * (50 if day == 8 else 500)}, f"2026-01-0{day}")
            levels.append(result["volume"] and result["volume"]["level"])
        self.assertEqual(levels, [None] * 5 + ["ok", "ok", "critical", "ok"])

    def test_rare_bins(self):
        self.group.reference({"label": ["fraud"] * 20 + ["good"] * 9980, "x": np.arange(10000) % 97 / 4}, ratio=(2, 4))
        label, x = self.group.observe({"label": ["fraud"] * 100 + ["good"] * 9900, "x": np.arange(10000) % 97 / 4})
        self.assertEqual((label.verdict, label["pooled"]["ratio"]["bin"]), ("critical", "fraud"))
        self.assertIn("“fraud”: 0.2 % → 1 %, 4.9 times", label.sentence())
        self.assertEqual((x.verdict, x["mean"], x["mean_reference"]), ("ok", x["mean_reference"], x["mean"]))
        self.assertAlmostEqual(x["sd"], np.std(np.arange(10000) % 97 / 4), 12)
        self.assertEqual(self.group.settings("label", ratio=None)["ratio"], None)

    def test_notes(self):
        self.group.reference(data(2000, 1))
        of_group = self.group.note("Version 3 is live", start="2026-11-01T00:00:00Z", end="2026-11-02T00:00:00Z")
        of_age = self.group.note("The form asks for the year of birth now", "age")
        self.assertEqual(self.group.notes(), [of_age, of_group])
        self.assertEqual(self.group.notes("country"), [of_group])
        self.assertEqual(self.group.notes(end="2026-11-01T12:00:00Z"), [of_group])
        for note in of_group, of_age:
            self.group.delete_note(note)
        self.assertEqual(self.group.notes(), [])

    def test_mute(self):
        self.group.reference(data(2000, 1))
        self.group.mute(seconds=60, reason="release")
        self.group.mute("age", until="2100-01-01T00:00:00Z")
        self.group.unmute("age")
        self.group.unmute()

    def test_warnings(self):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            self.group.reference({**data(2000, 1), "id": [f"{i:x}" for i in range(2000)]})
            self.group.observe({**data(500, 2), "new": np.arange(500)})
            self.group.observe(iter([{"age": [1.0, 2], "new": [1, 2]}, {"age": [3.0, None]}]))
            with mock.patch.object(groups, "MAX_REQUEST", 1), mock.patch.object(sources, "PIECE_SIZE", 18):
                self.group.observe(self.write_csv("many.csv", {"age": ["many", "1"], "other": [1, 2]}))
        self.assertEqual([":".join(str(w.message).split(":")[:2]) for w in given],
                         ["nearly_unique: column 'id'", "column_unknown: column 'new'", "column_absent: column 'id'",
                          "column_unknown: column 'new'", "column_absent: column 'country'", "column_absent: column 'id'",
                          "column_absent: column 'member'", "column_unknown: column 'other'", "column_absent: column 'country'",
                          "column_absent: column 'id'", "column_absent: column 'member'",
                          "values_unreadable: column 'age'", "batches_too_small: column 'age'"])
        self.assertEqual({w.filename for w in given}, {__file__})
        self.assertRaises(ValueError, self.group.observe, iter([{"no": [1]}, {"no": [2]}]))
        for table in {"age": ["many", None]}, iter([{"age": ["many"]}, {"age": [1]}]):
            with self.assertRaises(kldiv.ServiceError) as raised:
                self.group.observe(table)
            self.assertEqual((raised.exception.status, raised.exception.code), (422, "value_not_number"))

    def test_pictures(self):
        self.group.reference(data(2000, 1))
        results = self.group.observe(data(500, 2, 15.0))
        self.assertRegex(str(results), "^1 of 3 columns drifts\n\ncolumn .*\nage +critical +[0-9.]+  mean .* → .*\n[a-z]+ +ok +[0-9e.-]+\n[a-z]+ +ok")
        self.assertRegex(results["age"].sentence(), "^age: critical, 500 values; KL .*, p .*: mean ")
        page = results._repr_html_()
        self.assertIn("1 of 3 columns drifts", page)
        self.assertEqual(page.count("<svg"), 1)
        self.assertNotIn("src=", page)
        self.assertNotIn("href", page)
        import xml.etree.ElementTree as tree
        tree.fromstring(results["age"].svg())
        hostile = self.client.group("hostile")
        hostile.reference({"<script>": ["<b>", "x"] * 100})
        page = hostile.observe({"<script>": ["<b>"] * 100})._repr_html_()
        self.assertNotIn("<script>", page)
        self.assertNotIn("<b>", page)
        frame = rows(results.frame())
        self.assertEqual([r["p_value"] for r in frame], [r["g_test"]["p_value"] for r in results])
        self.assertEqual([r["sentence"] for r in frame], [r.sentence() for r in results])
        results.save_html(self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as file:
            self.assertEqual(file.read().count("<svg"), 1)
        page = self.group._repr_html_()
        self.assertIn("3 monitors: 2 ok, 1 critical", page)
        self.assertIn("1 of 3 drift", page)
        tree.fromstring(self.group.summary().svg())
        try:
            import matplotlib
            matplotlib.use("Agg")
            results.plot().savefig(self.path("x.png"))
            results["age"].plot()
        except ImportError:
            print("python3-matplotlib is not installed: plot() is NOT TESTED")
        wide = self.client.group("wide")
        table = {f"c{i:03}": np.arange(100) % 7 for i in range(30)}
        wide.reference(table)
        page = wide.observe(table)._repr_html_()
        self.assertIn("0 of 30 columns drift", page)
        self.assertIn("10 more are not shown", page)
        self.assertEqual((page.count("<tr>"), page.count("<svg")), (21, 0))
        self.assertRaises(KeyError, lambda: results["none"])

    def test_dates_are_shown_as_dates(self):
        days = np.datetime64("2026-01-01") + np.random.default_rng(1).permutation(400)
        later = np.where(days < days.min() + 200, days, days - 200)
        tables = [({"d": a, "x": np.arange(400) % 7 / 2}, {"d": b, "x": np.arange(400) % 7 / 2}) for a, b in (
            (days, later), (days.tolist(), later.tolist()))]
        if pandas:
            tables.append(tuple(pandas.DataFrame(table).astype({"d": "datetime64[ns]"}) for table in tables[0]))
        for reference, current in tables:
            self.group.reference(reference, include=["d", "x"])
            for result in self.group.observe(current, key=None)["d"], self.group.latest("d"), self.group.evaluate(current)["d"]:
                self.assertRegex(result.sentence(), r"\[202[67]-\d\d-\d\d.*, 202[67]-")
                self.assertIn("2026-", result.svg())
            self.assertNotIn("2026-", self.group.latest("x").svg())
            self.group.delete()

    def test_nothing_on_stderr_for_small_tables(self):
        with mock.patch.dict(sys.modules, ipykernel=sys), contextlib.redirect_stderr(io.StringIO()) as said:
            self.group.reference(data(2000, 1))
            self.group.observe(iter([data(500, 2), data(500, 3)]))
            self.assertEqual(said.getvalue(), "")
            progress = sources.Progress(None)
            progress.begin -= 2
            progress.add(5, 0.5)
            progress.end()
        self.assertIn("5 rows [##########", said.getvalue())

    def test_dates_and_missing_values_travel(self):
        columns = {"d": np.arange(0, 200_000, 100, "timedelta64[s]") + np.datetime64("2026-01-01"),
                   "b": [True, None] * 1000, "f": np.arange(2000, dtype="float32"), "h": np.arange(2000, dtype="u1")}
        self.group.reference(columns, include=["d", "b", "f", "h"])
        results = self.group.observe(columns)
        self.assertEqual({r.kl for r in results}, {0.0})
        self.assertEqual(results["b"]["missing_ratio"], 0.5)


def rows(table):
    return table.to_dict("records") if pandas and isinstance(table, pandas.DataFrame) else table


if __name__ == "__main__":
    unittest.main()
