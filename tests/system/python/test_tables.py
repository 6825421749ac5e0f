"""Columns of tables from what data teams have, and counts in bins, which must be the service's own."""
import datetime
import decimal
import json
import math
import os
import tempfile
import unittest
import warnings

import numpy as np
from service import Server

import kldiv
from kldiv import columns, counts, sources

try:
    import pandas
except ImportError:
    pandas = None

nan = math.nan


class Columns(unittest.TestCase):
    def check(self, values, expected, dtype=None):
        column = columns.column("x", values)
        if dtype:
            self.assertEqual(column.dtype.name, dtype)
            np.testing.assert_array_equal(column, expected)
        else:
            self.assertEqual((type(column), column), (list, expected))

    def test_numpy_and_lists(self):
        self.check(np.array([1, 2], ">i4"), [1, 2], "int32")
        self.check(np.arange(6.0)[::2], [0, 2, 4], "float64")
        self.check(np.array([True, False]), [True, False], "bool")
        self.check(np.array([1, 2], np.longdouble), [1, 2], "float64")
        self.check(np.array(["a", "bc"]), ["a", "bc"])
        self.check([1, 2], [1, 2], "int64")
        self.check([1, None, 2.5], [1, nan, 2.5], "float64")
        self.check([True, None], [True, None])
        self.check(["a", None, nan, ""], ["a", None, None, ""])
        self.check(["a", 1, True], ["a", 1, True])
        self.check([decimal.Decimal("1.5"), decimal.Decimal("NaN")], [1.5, nan], "float64")
        self.check([2**70, 1], [2.0**70, 1], "float64")

    def test_dates_are_seconds(self):
        day = datetime.datetime(1970, 1, 2)
        zone = datetime.timezone(datetime.timedelta(hours=1))
        self.check([day, day.date(), None], [86400, 86400, nan], "float64")
        self.check([day.replace(tzinfo=zone), datetime.timedelta(minutes=1)], [82800, 60], "float64")
        self.check(np.array(["1970-01-02", "NaT"], "datetime64[ns]"), [86400, nan], "float64")
        self.check(np.array([1500, "NaT"], "timedelta64[ms]"), [1.5, nan], "float64")

    def test_what_is_no_column(self):
        for values in np.zeros((2, 2)), np.array([1j]), [b"bytes"], [[1]]:
            self.assertRaises(TypeError, columns.column, "x", values)
        self.assertRaises(ValueError, columns.table, {"a": [1], "b": [1, 2]})
        self.assertRaises(TypeError, list, sources.batches(np.zeros(3), sources.Progress(False)))
        self.assertRaises(TypeError, list, sources.batches(7, sources.Progress(False)))

    @unittest.skipUnless(pandas, "python3-pandas is not installed")
    def test_pandas(self):
        s = pandas.Series
        self.check(s([1, 2], dtype="Int64"), [1, 2], "int64")
        self.check(s([1, None], dtype="Int64"), [1, nan], "float64")
        self.check(s([True, None], dtype="boolean"), [True, None])
        self.check(s([True, False], dtype="boolean"), [True, False], "bool")
        self.check(s(["a", None], dtype="string"), ["a", None])
        self.check(s(["a", pandas.NA, pandas.NaT, nan]), ["a", None, None, None])
        self.check(s(["b", "a", None], dtype="category"), ["b", "a", None])
        self.check(s([3, 1, None]).astype("category"), [3, 1, nan], "float64")
        self.check(s([3, 1]).astype("category"), [3, 1], "int64")
        self.check(s(["1970-01-02", None], dtype="datetime64[ns]"), [86400, nan], "float64")
        self.check(s(pandas.to_datetime(["1970-01-02T01:00+01:00"])), [86400], "float64")
        self.assertRaises(ValueError, columns.table, pandas.DataFrame([[1, 2]], columns=["a", "a"]))
        self.assertEqual(list(columns.table(pandas.DataFrame({"a": [1], 7: [2]}))), ["a", "7"])

    def test_structured_arrays(self):
        array = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
        self.assertEqual({k: v.tolist() for k, v in columns.table(array).items()}, {"a": [1], "b": [2.5]})

    def test_arrow_and_polars_by_their_calls(self):
        """Neither is in Debian: what is called of them, on stand-ins. With the libraries themselves: see below."""
        array_class = type("ChunkedArray", (), {"__module__": "pyarrow.lib"})
        table_class = type("Table", (), {"__module__": "pyarrow.lib"})
        a, b, table = array_class(), array_class(), table_class()
        a.type, a.null_count, a.to_numpy = "int64", 0, lambda: np.array([1, 2])
        b.type, b.null_count, b.to_pylist = "string", 1, lambda: ["x", None]
        table.schema, table.columns = type("Schema", (), {"names": ["a", "b"]}), [a, b]
        self.assertEqual({k: list(v) for k, v in columns.table(table).items()}, {"a": [1, 2], "b": ["x", None]})

    def test_polars_itself(self):
        try:
            import polars
        except ImportError:
            self.skipTest("polars is not installed")
        table = columns.table(polars.DataFrame({"a": [1, 2], "b": ["x", None], "c": [1.5, None]}))
        self.assertEqual({k: list(v)[0] for k, v in table.items()}, {"a": 1, "b": "x", "c": 1.5})

    def test_arrow_itself(self):
        try:
            import pyarrow.parquet
        except ImportError:
            self.skipTest("pyarrow is not installed")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "x.parquet")
            pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2], "b": ["x", None]}), path)
            table, = sources.batches(path, sources.Progress(False))
        self.assertEqual({k: list(v) for k, v in table.items()}, {"a": [1, 2], "b": ["x", None]})


class Samples(unittest.TestCase):
    def test_all_rows_if_there_are_few(self):
        sample = sources.Sample(100, 0)
        for begin in 0, 50:
            sample.add({"x": np.arange(begin, begin + 50), "y": ["a"] * 50})
        self.assertEqual(sample.columns()["x"].tolist(), list(range(100)))
        self.assertRaises(ValueError, sample.add, {"z": [1]})

    def test_uniform_and_in_order(self):
        n = np.zeros(10_000)
        for seed in range(200):
            sample = sources.Sample(500, seed)
            for begin in range(0, 10_000, 100):
                sample.add({"x": np.arange(begin, begin + 100)})
                self.assertLessEqual(len(sample.keys), 1100)
            rows = sample.columns()["x"]
            self.assertEqual((len(rows), bool((np.diff(rows) > 0).all())), (500, True))
            n[rows] += 1
        by_tenth = n.reshape(10, 1000).sum(1)
        self.assertLess(abs(by_tenth - 10_000).max(), 500)  # 5 standard deviations


class Counts(unittest.TestCase):
    """The service's counts are read back from a dry evaluation: fractions of n."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.client = kldiv.Client(cls.server.url)

    def same(self, bins, values):
        n = len(bins.get("labels", bins.get("edges")))
        n -= "edges" in bins
        config = self.client.request("PUT", "/monitors/counts/x", json_body={
            "bins": bins, "reference": {"counts": [1] * n, "missing": 1}})
        own = counts.Counts(config)
        own.add(columns.column("x", values))
        body = own.body()
        theirs = self.client.request("POST", "/monitors/counts/x/evaluate", json_body={
            "values": [None if isinstance(v, float) and math.isnan(v) else
                       "Infinity" if v == math.inf else "-Infinity" if v == -math.inf else v for v in values]})
        current = {b["name"]: round(b["current"] * theirs["n"]) for b in theirs["bins"]}
        mine = [body.get("underflow"), *body["counts"], body.get("overflow"), body.get("other"), body["missing"]]
        self.assertEqual([c for c in mine if c is not None], list(current.values()), json.dumps(values)[:300])

    def test_numbers_in_intervals(self):
        rng = np.random.default_rng(1)
        self.same({"edges": [-1, 0, 0.1, 2]}, [-1, 0, 0.1, 2, -1.5, 3, nan, math.inf, -math.inf, 0.05, None])
        edges = sorted(rng.standard_normal(20).tolist())
        self.same({"edges": edges}, rng.standard_normal(3000).tolist() + edges)

    def test_texts_numbers_and_booleans_as_labels(self):
        self.same({"labels": ["a", "NA", "ü", "1"]}, ["a", "a", "b", "NA", "NaN", "", "null", "None", "ü", None, "1"])
        self.same({"labels": ["a", "NULL"]}, ["nan", "N/A", "n/a", "NULL", "\\N", "-NaN", "-nan", "#N/A", "#N/A N/A", "#NA", "<NA>",
                                              "-1.#IND", "1.#IND", "-1.#QNAN", "1.#QNAN", "N/a", "#n/a", "na", "-", "."])
        self.same({"labels": ["1", "2.5", "-3", "1e+300", "0", "1e-7"]},
                  [1, 2.5, -3.0, 1e300, -0.0, 0.0, 1.5, nan, math.inf, 1e-7, 1e16, 123456789012345678])
        self.same({"labels": ["1.0", "x"]}, [1.0, 1])
        self.same({"labels": ["true", "false"]}, [True, False, True, None])
        self.same({"labels": ["True", "False"]}, [True, False, True])
        self.same({"labels": ["true", "false"]}, ["TRUE", "False", "true", "x", None])
        self.same({"labels": ["true"]}, [True, False, "True"])
        self.same({"labels": ["Infinity", "x"]}, [math.inf, 1.0, -math.inf])
        self.same({"labels": ["no", "Yes"]}, ["NO", "y", True, 0, 1, 1.0, 2, "T", "0", "1.0", "x", None])
        self.same({"labels": ["no", "yes", "3"]}, ["NO", "y", True, 0, 1, 3, "3.0", None])
        self.same({"labels": ["f", "t", "unknown"]}, ["F", "yes", False, 0, 1, "1", "-0", "+1", None])
        self.same({"labels": ["007", "1,50", "+2", "02", "inf", ".5"]},
                  [7, 1.5, 2, "2", "02", "1.5", " 7 ", math.inf, "Inf", -math.inf, "INFINITY", 0.5, "5e-1", "0x7", "nan", "1_5"])

    def test_decimals_as_labels(self):
        rng = np.random.default_rng(2)
        values = [float(f"{m:.{d}e}") for m, d in zip(10.0 ** rng.uniform(-25, 25, 200), rng.integers(0, 6, 200))] * 10
        config = self.client.request("PUT", "/monitors/counts/y", json_body={"reference": {"values": values},
                                                                             "binning": {"method": "labels"}})
        own = counts.Counts(config)
        own.add(columns.column("y", values))
        self.assertEqual(own.body()["other"], 0)
        self.assertEqual(own.body()["counts"], config["reference"]["counts"])


if __name__ == "__main__":
    unittest.main()
