"""Rows that are counted here and rows that the service reads: the same counts, each row once, replays told."""
import base64
import gzip
import io
import json
import math
import os
import pathlib
import pickle
import random
import tempfile
import time
import unittest
import warnings
from unittest import mock

import numpy as np
from service import Server

import kldiv
from kldiv import _transport, sources
from kldiv import group as groups

TABLES = next(path for folder in pathlib.Path(__file__).resolve().parents
              for pattern in ("golden/tables.jsonl", "*/golden/tables.jsonl") for path in folder.glob(pattern))
WORDS = ["", "NA", "None", "null", "NaN", "nan", "true", "False", "TRUE", "1", "1.0", "2.5", "-0", "1e3", "Inf", "-Infinity",
         "inf", "١", "１２", "1,5", "1_000", "a", "ü", "a b", " 1", "0x1", "+1", "007", "x" * 70]
BINS = {"a": {"edges": [-1, 0, 1, 2.5, 1000]}, "b": {"labels": ["a", "1", "true", "false", "2.5", "ü", "1,5", "x"]},
        "c": {"labels": ["True", "False"]}, "d": {"labels": ["NA", "Infinity", "", "12"]},
        "e": {"presence": True}}


class Counting(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.client = kldiv.Client(cls.server.url)
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)

    def setUp(self):
        warnings.simplefilter("ignore")
        self.group = self.client.group(f"counting/{self._testMethodName}")

    def path(self, body, name="x.csv"):
        path = os.path.join(self.directory.name, name)
        with open(path, "wb") as file:
            file.write(body)
        return path

    def monitors(self, bins):
        for name, each in bins.items():
            n = len(each.get("labels", each.get("edges", ["present"]))) - ("edges" in each)
            self.client.request("PUT", f"/monitors/{groups.segment(self.group.name)}/{name}",
                                json_body={"bins": each, "reference": {"counts": [1] * n}})

    @staticmethod
    def counted(results):
        return {r.name: [round(b["current"] * r["n"]) for b in r["bins"]] for r in results}

    def outcome(self, function, *arguments):
        """Counts, or the error's code without its place."""
        try:
            return [(name, counts) for name, counts in self.counted(function(*arguments)).items() if sum(counts)]
        except kldiv.ServiceError as error:
            return error.code
        except ValueError as error:
            return [] if "no rows" in str(error) else str(error)

    def in_pieces(self, path, size):
        with mock.patch.object(groups, "MAX_REQUEST", -1), mock.patch.object(sources, "PIECE_SIZE", size):
            return self.outcome(self.group.evaluate, path)

    def test_csv_in_pieces_is_csv_sent_whole(self):
        self.monitors({name: BINS["b"] if name == "a" else BINS["d"] for name in "ab"})
        with open(TABLES, encoding="utf-8") as file:
            bodies = [base64.b64decode(json.loads(line)["body"]) for line in file]
        bodies += [b"a;b\n1,5;x\n2;ja\n", b"sep=;\na;b\n1,5;2\n", b'"sep=|"\r\na|b\r\n1|2\r\n', b"a,a\n1,2\n", b"a\n\n1\n\n2\n",
                   b"a,b\n\n1,2\n\n\n3,4\n", "a,b\n١,１２\n".encode(), b"a\tb\n1\t2\n", b"\xef\xbb\xbfa,b\n1,2", b"a,b\r1,2\r3,4",
                   b'a,"b\n"\n1,2\n', b'a,b\n"x\n\n""y",1\n2,3\n', b"a,b\n1,2\n3\n", b'a,b\n1,2\n"3,4\n5,6\n', b"", b"\n\n", b"a,b\n",
                   b"a,b", b"SEP=;\na;b\n1;2\n", b"sep=;\nsep=;\n1\n", b"\n\nsep=;\na;b\n1;2\n", b"a\n\xff\n", b"a,b\n1,x\"y\n",
                   b'a,b\nx"y,1\n"x\ny",2\n', b'a;b\nx,"y;1\n"x\ny";2\n', b'sep=|\na|b\nx,"y|1\n"x\n|y"|2\n', b',,\na,b\n1,2\n']
        self.assertGreater(len(bodies), 900)
        rng = random.Random(1)
        for body in bodies:
            path = self.path(body)
            whole = self.outcome(self.group.evaluate, path)
            self.assertEqual(self.in_pieces(path, rng.choice([1, 7, 30]) if len(body) < 60 else 40), whole, body)
        self.assertEqual(self.outcome(self.group.evaluate, self.path(gzip.compress(b"a,b\n1,2\n"), "x.csv.gz")),
                         self.outcome(self.group.evaluate, self.path(b"a,b\n1,2\n")))

    def test_open_files(self):
        self.monitors({"a": BINS["a"]})
        body = b"a\n" + b"0.5\n" * 500

        class Trickle(io.BytesIO):
            def read(self, size=-1):
                return super().read(min(size, 7))

        for size in 100, 1 << 20:
            with mock.patch.object(sources, "PIECE_SIZE", size):
                for file in io.BytesIO(body), Trickle(body), io.BufferedReader(io.BytesIO(body)), open(self.path(body), "rb"), \
                        open(self.path(body), encoding="utf-8"):
                    with file:
                        self.assertEqual(self.group.evaluate(file)["a"]["n"], 500)
        self.assertRaises((TypeError, ValueError), self.group.evaluate, io.StringIO("a\n1\n"))
        self.assertRaises((ValueError, kldiv.ServiceError), self.group.evaluate, io.BytesIO())

    def column(self, rng):
        n = 40
        kind = rng.integers(0, 7)
        if kind == 0:
            return rng.standard_normal(n).astype(rng.choice(["f8", "f4", "f2"]))
        if kind == 1:
            return rng.integers(-2, 3, n).astype(rng.choice(["i1", "i8", "u1", "f8"]))
        if kind == 2:
            return rng.random(n) < 0.5
        values = {3: WORDS, 4: [True, False, None], 5: [1, 2.5, None, math.inf, -math.inf, 10**17],
                  6: [*WORDS, 1, 2.5, True, None, math.inf]}[int(kind)]
        return [values[i] for i in rng.integers(0, len(values), n)]

    def test_random_frames_by_two_ways(self):
        self.monitors(BINS)
        monitors = self.group.monitors()
        rng = np.random.default_rng(7)
        seen = {"refused": 0, "counted": 0}
        for number in range(300):
            table = {name: self.column(rng) for name in BINS if rng.random() < 0.7}
            if not table:
                continue
            whole = self.outcome(self.group.evaluate, table)
            counted = self.outcome(lambda t: self.group.evaluate(pickle.loads(pickle.dumps(kldiv.count(monitors, t)))), table)
            self.assertEqual(counted, whole, (number, table))
            seen["refused" if isinstance(whole, str) else "counted"] += 1
        self.assertGreater(min(seen.values()), 50, seen)

    def test_narrow_numbers_by_two_ways(self):
        labels = ["0.1", "-0.1", "16777216", "-123456790", "1e16", "0.00001", "-65500"]
        self.monitors({"x": {"labels": labels}})
        for dtype in "f2", "f4", "f8":
            with np.errstate(over="ignore"):
                table = {"x": np.array([*map(float, labels), -123456789, 65504, math.inf, math.nan, -0.0], dtype)}
            whole = self.outcome(self.group.evaluate, table)
            self.assertEqual(self.outcome(lambda t: self.group.evaluate(kldiv.count(self.group.monitors(), t)), table), whole)
            self.assertGreater(whole[0][1][0], 0, dtype)

    def test_names_by_two_ways(self):
        texts = {name: ["a", "b", None] * 20 for name in ("x", "a/b", "ü", "../x", "x.npy", "a b", "\\", "n" * 120, "%2F", "'", '"')}
        for added in {}, {"": ["a"] * 60}, {"m" * 1100: ["a"] * 60}, {"n": [1, "a", None] * 20}, {"f": [1.5, None, 2] * 20}:
            table = {**texts, **added}
            self.group.reference(texts)
            whole = self.outcome(self.group.evaluate, table)
            self.assertEqual(self.outcome(lambda t: self.group.evaluate(kldiv.count(self.group.monitors(), t)), table), whole)
            self.assertEqual(len(whole), len(texts), added)

    def test_each_row_counts_once(self):
        """Random frames of which some columns are constant, so that monitors see the same counts again."""
        rng = np.random.default_rng(3)
        self.group.reference({"x": rng.standard_normal(500), "k": ["a", "b"] * 250}, pool=1)
        n = 0
        for number in range(6):
            rows = int(rng.integers(50, 80))
            table = {"x": rng.standard_normal(rows), "k": ["a"] * rows}
            for again in range(2):
                whole = self.group.observe(table)
                counted = self.group.observe(iter([table, {"x": table["x"][:0], "k": []}]))
                self.assertEqual((whole.replayed, counted.replayed), (bool(again),) * 2)
            n += 2 * rows
        for name in "xk":
            self.assertEqual(sum(int(n) for n in self.sizes(name)), n)

    def sizes(self, name):
        table = self.group.windows(name)
        return table["n"].tolist() if hasattr(table, "tolist") or hasattr(table, "columns") else [w["n"] for w in table]

    def test_large_files_with_a_constant_column(self):
        self.group.reference(self.path(b"x,k\n" + b"".join(b"%d,%d\n" % (i, i % 2) for i in range(1000))),
                             include=["x", "k"])
        with mock.patch.object(groups, "MAX_REQUEST", 1000), mock.patch.object(sources, "PIECE_SIZE", 4000):
            for day in range(3):
                body = b"x,k\n" + b"".join(b"%d,1\n" % ((i * 7 + day) % 1000) for i in range(3000))
                for again in range(2):
                    results = self.group.observe(self.path(body, "day.csv"))
                    self.assertEqual(results.replayed, bool(again))
        self.assertEqual([sum(self.sizes(name)) for name in "xk"], [9000, 9000])

    def test_a_new_reference_is_judged_anew(self):
        rng = np.random.default_rng(5)
        today = {"x": rng.standard_normal(500)}
        for counted in lambda t: t, lambda t: iter([t, {"x": t["x"][:0]}]):
            self.group.reference({"x": rng.standard_normal(2000)})
            self.assertEqual(self.group.observe(counted(today))["x"].verdict, "ok")
            self.group.reference({"x": rng.standard_normal(2000) + 3})
            results = self.group.observe(counted(today))
            self.assertEqual((results["x"].verdict, results.replayed), ("critical", False))
            self.group.delete()

    def test_replays_are_told(self):
        self.group.reference({"x": np.arange(100.0)}, pool=1)
        today = {"x": np.arange(50.0)}
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            for key, replayed in ("content", False), ("content", True), (None, False), ("mine", False), ("mine", True):
                self.assertEqual(self.group.observe(today, key=key).replayed, replayed)
        self.assertEqual(["key=None" in str(w.message) for w in given], [True, True])
        self.assertEqual({w.filename for w in given}, {__file__})

    def test_a_monitor_of_another_column_does_not_make_rows_new(self):
        mixed = np.arange(100.0) * 37 % 100  # numbers that only rise or fall are ids
        self.group.reference({"x": mixed, "y": mixed}, pool=1)
        today = {"x": np.arange(50.0)}
        self.group.observe(today)
        self.group.reference({"y": mixed + 1}, pool=1)
        self.assertTrue(self.group.observe(today).replayed)
        self.group.reference({"x": mixed + 1}, pool=1)
        self.assertFalse(self.group.observe(today).replayed)

    def test_a_repeat_by_the_transport_is_no_replay(self):
        self.group.reference({"x": np.arange(100.0)})
        exchange = _transport.Transport._exchange
        for table in {"x": np.arange(50.0)}, iter([{"x": np.arange(9.0)}] * 2):
            lost = []

            def losing(transport, connection, method, target, *rest):
                response = exchange(transport, connection, method, target, *rest)
                if method == "POST" and not lost:
                    lost.append(target)
                    transport.idle.remove(connection)
                    raise ConnectionResetError
                return response

            with mock.patch.object(_transport.Transport, "_exchange", losing), warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always")
                self.assertFalse(self.group.observe(table).replayed)
            self.assertEqual((len(lost), [str(w.message) for w in given]), (1, []))

    def test_counts_know_their_monitors(self):
        self.monitors({"a": BINS["a"]})
        old = kldiv.count(self.group.monitors(), {"a": [1.0]})
        self.monitors({"a": BINS["b"]})
        new = kldiv.count(self.group.monitors(), {"a": ["x"]})
        for wrong in (lambda: old + new), (lambda: new + 1), (lambda: self.group.observe(old)), \
                (lambda: self.group.evaluate(old)):
            self.assertRaises((ValueError, TypeError), wrong)
        self.assertRaises(ValueError, kldiv.count, list(self.group.monitors()), self.path(b"a\n1\n"))

    def test_a_monitor_that_is_replaced_between_batches_is_told(self):
        for call in self.group.observe, self.group.evaluate:
            self.monitors({"a": BINS["a"]})

            def parts():
                yield {"a": [1.0]}
                yield {"a": [1.0]}
                self.monitors({"a": {"edges": [-1, 0, 1, 5, 9]}})
                yield {"a": [1.0]}

            with self.assertRaisesRegex(ValueError, "was replaced"):
                call(parts())
        self.assertEqual(len(self.group.windows("a")), 0)

    def test_names_with_commas(self):
        table = {name: np.arange(200.0) * 37 % 200 for name in ("a,b", "a", "b", "c", "d")}
        table["d"] = np.arange(200.0)  # an id
        for chosen, names in ({"exclude": ["c", "a,b"]}, "a b d"), ({"include": ["a", "b", "a,b"]}, "a a,b b"), \
                ({"include": ["d", "a,b"]}, "a,b d"), ({"kinds": {"c": "labels", "a,b": "labels"}}, "a a,b b c d"), \
                ({"include": "a,b"}, "a b"):
            self.assertEqual(sorted(config["name"] for config in self.group.reference(table, **chosen)), names.split(), chosen)
        path = self.path(b'"a,b",a,c\n' + b"1,2,3\n4,5,6\n" * 9)
        for chosen in {"exclude": ["a,b"]}, {"include": ["a,b"]}, {"kinds": {"a,b": "labels"}}:
            self.assertRaisesRegex(ValueError, "'a,b' has a comma", self.group.reference, path, **chosen)

    def test_a_sample_of_a_large_file(self):
        body = b"x,t\n" + b"".join(b'%d,"a\n%d"\r\n' % (i, i % 5) for i in range(5000))
        with mock.patch.object(groups, "MAX_REQUEST", 1000), mock.patch.object(sources, "PIECE_SIZE", 9000):
            configs = self.group.reference(self.path(body), sample=1000, include=["x", "t"])
        self.assertEqual([sum(c["reference"]["counts"]) for c in configs], [1000, 1000])
        self.assertEqual(sorted(configs[1]["bins"]["labels"]), [f"a\n{i}" for i in range(5)])

    def test_headers_of_several_files(self):
        bodies = [b"x,k\n" + b"1,a\n2,b\n" * 9, b"\xef\xbb\xbfx,k\r\n" + b"3,a\r\n" * 2, b"x,k\r" + b"5,b\r" * 2, b"x,k"]
        for order in bodies, bodies[::-1]:
            configs = self.group.reference(iter([self.path(body, f"{i}.csv") for i, body in enumerate(order)]))
            self.assertEqual([sum(c["reference"]["counts"]) for c in configs], [22, 22])
        for other in self.path(b"x;k\n1;a\n"), self.path(b"x,k\n1,a\n", "x.tsv"), {"x,k\n": [1.5]}:
            self.assertRaises(ValueError, self.group.reference, iter([self.path(bodies[0], "0.csv"), other]))

    def test_warnings_of_pieces(self):
        self.monitors({"a": BINS["a"]})
        counts = kldiv.counts.TableCounts(self.group.monitors())
        warning = {"code": "row_short", "column": "a", "count": None, "message": "m"}
        for column, code in ("a", "row_short"), ("b", "row_short"), ("gone", "values_unreadable"), ("a", "column_absent"):
            for _ in range(2):
                counts._add_evaluation({"monitors": [], "warnings": [{**warning, "code": code, "column": column, "count": 3}]})
        merged = pickle.loads(pickle.dumps(counts)) + counts
        given = [(each["code"], each["column"]) for each in merged.warnings()]
        self.assertEqual(sorted(given), [("column_absent", "a"), ("row_short", "a"), ("row_short", "b")])

    def test_no_cliff(self):
        """A frame of 200 columns with texts, booleans with missing values and mixed values, as a reference and observed: at
        least 80 MB/s of processor time on an idle machine; here a tenth, which JSON of the numbers does not reach."""
        rng, n = np.random.default_rng(0), 20_000
        table = {f"c{i}": rng.standard_normal(n) for i in range(190)}
        table.update({f"t{i}": rng.choice(["a", "b", None], n).tolist() for i in range(5)})
        table.update({f"b{i}": rng.choice([True, False, None], n).tolist() for i in range(5)})
        for call in self.group.reference, self.group.observe, self.group.evaluate:
            began = time.process_time()
            call(table)
            self.assertLess(time.process_time() - began, 32 / 8)
        self.assertEqual({r.kl for r in self.group.evaluate(table)}, {0.0})
        texts = ["x" * (1 << 16), *["a", "b"] * (n // 2)]
        self.group.reference({name: column[:1000] for name, column in {**table, "m": ["a", "b"] * (n // 2)}.items()})
        began = time.process_time()
        results = self.group.observe({**table, "m": texts[:n]})
        self.assertLess(time.process_time() - began, 32 / 8)
        self.assertEqual(len(results), 201)


if __name__ == "__main__":
    unittest.main()
