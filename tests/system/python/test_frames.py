"""Frames as people have them: columns that cannot be read, categories, times, rows, names that are numbers; wrong types."""
import datetime
import enum
import math
import tempfile
import unittest
import uuid
import warnings
from decimal import Decimal
from unittest import mock

import numpy as np
from service import Server

import kldiv
from kldiv import columns, sources

try:
    import pandas
except ImportError:
    pandas = None

Colour = enum.Enum("Colour", "red")
UNREADABLE = {"lists": [[1], [2, 3]], "ids": [uuid.uuid4(), uuid.uuid4()], "nested": [{"a": 1}, {}], "bytes": [b"a", b"b"],
              "complex": np.array([1j, 2]), "axes": np.zeros((2, 2)), "mixed": [1.0, [2]], "enum": [Colour.red] * 2,
              "objects": [object(), None], "sets": [{1}, {2}], "text": "ab", "scalar": 5, "arrays": [np.zeros(2), np.zeros(2)]}


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.client = kldiv.Client(cls.server.url)

    def setUp(self):
        warnings.simplefilter("ignore")
        self.group = self.client.group(f"frames {self._testMethodName}")

    def told(self, function, *arguments, **options):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            value = function(*arguments, **options)
        self.assertEqual({w.filename for w in given} - {__file__}, set())
        return value, [str(w.message) for w in given]

    def test_columns_that_cannot_be_read_are_left_out_and_named(self):
        good = {"x": [1.5, 2.5] * 10, "k": ["a", "b"] * 10}  # each label as often as a reference wants
        for name, values in UNREADABLE.items():
            values = (values * 10 if isinstance(values, list) else np.repeat(values, 10, 0) if isinstance(values, np.ndarray)
                      else values)
            tables = [{**good, name: values}]
            if pandas and not isinstance(values, (str, int, np.ndarray)):
                tables.append(pandas.DataFrame({**good, name: pandas.Series(values, dtype=object)}))
            for table in tables:
                for call in self.group.reference, self.group.observe, self.group.evaluate:
                    answer, said = self.told(call, table)
                    self.assertEqual(len(answer), 2, name)
                    self.assertTrue(any(f"column {name!r}" in text and "left out" in text for text in said), (name, said))
                for chosen in {"exclude": [name]}, {"include": ["x", "k"]}, {"include": "x,k"}, {"exclude": name}:
                    self.assertEqual(self.told(self.group.reference, table, **chosen)[1], [])

    def test_rows(self):
        rng = np.random.default_rng(1)
        table = {"x": rng.standard_normal(300).tolist(), "k": rng.choice(["a", "b"], 300).tolist()}
        rows = [dict(zip(table, values)) for values in zip(*table.values())]
        self.group.reference(table)
        expected = [r.kl for r in self.group.evaluate(table)]
        with mock.patch.object(sources, "ROWS", 70):
            for data in rows, tuple(rows), iter(rows):
                results = self.group.evaluate(data)
                self.assertEqual([r.kl for r in results], expected)
        self.assertEqual(self.group.evaluate({"x": 1.5, "k": "a"})["x"]["n"], 1)
        results = self.group.evaluate([{"x": 1.5}, {"k": "a"}, {"x": None, "k": "b"}])
        self.assertEqual((results["x"]["n"], results["x"]["missing_ratio"]), (3, 2 / 3))

    @unittest.skipUnless(pandas, "python3-pandas is not installed")
    def test_types_of_pandas(self):
        s, nan = pandas.Series, math.nan
        cases = [
            (s([True, False, None]).astype("category"), [True, False, None]),
            (s([True, False]).astype("category"), [True, False]),
            (s([1.0, 0, nan]).astype(pandas.SparseDtype("float64", 0)), [1, 0, nan]),
            (s([1, 0]).astype(pandas.SparseDtype("int64", 0)), [1, 0]),
            (pandas.cut(s([1, 15, 99]), [0, 10, 20]), ["(0, 10]", "(10, 20]", None]),
            (s(pandas.interval_range(0, 2)), ["(0, 1]", "(1, 2]"]),
            (s(pandas.period_range("1970-01-02", periods=2, freq="D")), [86400, 172800]),
            (s([datetime.time(1, 0, 0, 500_000), None]), [3600.5, nan]),
            (s([Decimal("1.5"), 2]), [1.5, 2]),
            (s(pandas.to_timedelta([1, None], "s")), [1, nan]),
            (s([np.int64(3), np.float32(2), np.bool_(True)]), [3, 2, True]),
            (s(["a", np.str_("b"), pandas.NA]), ["a", "b", None]),
            (s([1, 2, None], dtype="Int8"), [1, 2, nan]), (s([], dtype="float64"), []), (s([None, None]), [None, None]),
        ]
        for series, expected in cases:
            got = columns.column("x", series)
            got = got.tolist() if isinstance(got, np.ndarray) else got
            self.assertEqual(repr([float(v) if isinstance(v, (int, float)) and not isinstance(v, bool) else v for v in got]),
                             repr([float(v) if isinstance(v, (int, float)) and not isinstance(v, bool) else v for v in expected]))

    @unittest.skipUnless(pandas, "python3-pandas is not installed")
    def test_kinds(self):
        rng = np.random.default_rng(2)
        frame = pandas.DataFrame({"zip": rng.integers(10_000, 10_030, 900), "n": rng.integers(0, 5, 900),
                                  "c": pandas.Categorical(rng.integers(0, 40, 900)), "x": rng.standard_normal(900)})
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            frame.to_csv(file.name, index=False)
            for data in frame, dict(frame.astype(int)), file.name:
                for chosen, names in ({}, "zip n c x"), ({"include": ["zip", "x"]}, "zip x"), ({"exclude": ["c"]}, "zip n x"):
                    self.client.group("kinds").reference({"q": [1.5]})
                    self.client.group("kinds").delete()
                    configs = {c["name"]: c for c in self.client.group("kinds").reference(
                        data, kinds={"zip": "labels", "n": "numbers"}, critical=0.3, **chosen)}
                    self.assertEqual(set(configs), set(names.split()))
                    self.assertEqual(len(configs["zip"]["bins"]["labels"]), 30)
                    self.assertEqual({c["thresholds"]["critical"] for c in configs.values()}, {0.3})
                    if "n" in configs:
                        self.assertIn("edges", configs["n"]["bins"])
                    if "c" in configs:
                        self.assertEqual("labels" in configs["c"]["bins"], data is frame)
                    results = self.client.group("kinds").observe(data)
                    self.assertEqual({r.kl for r in results if r.name != "x"}, {0.0})
            for data in frame, file.name:
                configs = self.client.group("only").reference(data, kinds={"zip": "labels"}, include=["zip"])
                self.assertEqual([(c["name"], len(c["bins"]["labels"])) for c in configs], [("zip", 30)])
            frame[["zip"]].to_csv(file.name, index=False)
            for data in frame[["zip"]], file.name:
                self.assertEqual(len(self.client.group("only").reference(data, kinds={"zip": "labels"})), 1)
        for wrong in {"zip": "text"}, {"nothing": "labels"}:
            self.assertRaises((ValueError, kldiv.ServiceError), self.group.reference, frame, kinds=wrong)

    @unittest.skipUnless(pandas, "python3-pandas is not installed")
    def test_numpy_integers_are_names_times_and_settings(self):
        frame = pandas.DataFrame(np.random.default_rng(3).standard_normal((100, 2)), columns=np.arange(2))
        self.group.reference({np.int64(0): frame[0], np.int32(1): frame[1]}, retention_days=np.int64(36500),
                             critical=np.float32(0.5), stale_after=datetime.timedelta(days=2), window=datetime.timedelta(hours=1))
        config = self.group.monitors()[0]
        self.assertEqual((config["name"], config["retention_days"], config["stale_after"], config["window"]),
                         ("0", 36500, 172800, {"seconds": 3600, "grace": config["window"].get("grace")}))
        for when in np.int64(1767225600), np.float64(1767225600), pandas.Period("2026-01-01", "D"), np.datetime64("2026-01-01"):
            self.group.observe(frame, when, key=None)
        self.assertEqual(len(self.group.windows(np.int64(0))), 1)
        self.assertEqual(self.group.latest(1)["n"], 400)

    def test_wrong_types(self):
        """Each call says what it takes, in words, and neither fails in the depth nor goes on."""
        self.group.reference({"x": [1.5, 2.5] * 50})
        nothing = [None, 5, 2.5, True, object(), b"x,y\n1,2\n", np.zeros(3), np.zeros((3, 2)), [1, 2], ["no.csv"], [None], {},
                   lambda: 1, datetime.date(2026, 1, 1), "", "table", [[1, 2]], {1, 2}, float("nan"), np.float64(1)]
        for data in nothing:
            for call in self.group.reference, self.group.observe, self.group.evaluate, \
                    lambda each: kldiv.count(self.group.monitors(), each).found():
                with self.assertRaises((TypeError, ValueError, OSError, kldiv.ServiceError), msg=repr(data)):
                    call(data)
        for when in [True, [1], {}, object(), b"2026", (2026, 1), 1j, np.zeros(2), "yesterday", float("nan"), "NaT"]:
            for call in (lambda each: self.group.observe({"x": [1.0]}, each), lambda each: self.group.windows("x", each),
                         lambda each: self.group.events(each), lambda each: self.group.note("text", start=each)):
                with self.assertRaises((TypeError, ValueError, kldiv.ServiceError), msg=repr(when)):
                    call(when)
        for settings in {"critical": "x"}, {"window": object()}, {"thresholds": {"critical": 1}}, {"bins": [1, object()]}, {"windw": 1}:
            for call in (lambda: self.group.reference({"x": [1.5] * 10}, **settings), lambda: self.group.settings(**{
                    **settings, "thresholds": 5})):
                with self.assertRaises((TypeError, ValueError, kldiv.ServiceError), msg=settings):
                    call()
        for arguments in ("127.0.0.1", 5, None, b"http://x", "http://x:port"):
            self.assertRaises((TypeError, ValueError), kldiv.Client, arguments)
        for wrong in {"timeout": "1"}, {"timeout": -1}, {"retries": "x"}, {"retries": -1}, {"token": 5}, {"ca_file": 5}:
            self.assertRaises((TypeError, ValueError, OSError), kldiv.Client, "http://127.0.0.1:9", **wrong)
        for key in 5, "", b"x", "x" * 300, object(), "ü\n":
            with self.assertRaises((TypeError, ValueError, kldiv.ServiceError), msg=repr(key)):
                self.group.observe({"x": [1.0]}, key=key)
        for name in "", ".", "..", [], {}, object(), True, 2.5, b"x":
            for call in (lambda each: self.group.mute(each, seconds=60), self.group.unmute, self.group.latest, self.client.group,
                         self.group.notes, lambda each: self.group.settings(each, retention_days=5), self.group.windows):
                with self.assertRaises((TypeError, ValueError), msg=repr(name)):
                    call(name)
        for names in [1.5], object(), 2.5, [object()], datetime.date(2026, 1, 1):
            for argument in "include", "exclude":
                self.assertRaises(TypeError, self.group.reference, {"x": [1.5, 2]}, **{argument: names})
        for note in None, 5, {}, "x", np.zeros(3):
            self.assertRaises(TypeError, self.group.delete_note, note)
        for query in 5, "x", ["x"]:
            self.assertRaises(TypeError, self.client.request, "GET", "/groups", query)
        for wrt in [], "x", 5, [5], None:
            self.assertRaises((TypeError, ValueError), self.client.value_and_grad, [-1.0], [1.0], wrt)
        for wrong in ("x", 0, -1, 2.5, None):
            self.assertRaises((TypeError, ValueError), self.group.reference, {"x": [1.0, 2]}, sample=wrong)
        for wrong in (None, 5, [{}], [5], ["x"], {}, "x"):
            self.assertRaises((TypeError, ValueError), kldiv.count, wrong, {"x": [1.0]})
        for wrong in ("4", 0, 2.5, None):
            self.assertRaises((TypeError, ValueError), kldiv.threads, wrong)
        for wrong in ("sse", 4, None):
            self.assertRaises((TypeError, ValueError), kldiv.simd, wrong)
        part = kldiv.partial([-1.0], [1.0])
        for wrong in (lambda: part + 1, lambda: part + "x", lambda: part.loss("x"), lambda: part.loss(None), lambda: part.merge(1),
                      lambda: part.loss("mean", "int8"), lambda: kldiv.Partial("x"), lambda: kldiv.Partial(5),
                      lambda: part.divisor("x"), lambda: part.loss("none")):
            self.assertRaises((TypeError, ValueError), wrong)


if __name__ == "__main__":
    unittest.main()
