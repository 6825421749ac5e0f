"""Dask without a cluster; and what Spark and Ray are given, by their calling conventions: iterators of pandas' DataFrames,
functions and their arguments."""
import pickle
import sys
import types
import unittest
import warnings

import numpy as np
from service import Server

import kldiv

try:
    import pandas
except ImportError:
    pandas = None


class Frame:
    """What kldiv.spark calls of a DataFrame of Spark, over partitions of batches; functions and rows are pickled, as on
    their way to executors."""

    def __init__(self, partitions):
        self.partitions = partitions

    def mapInPandas(self, function, schema):
        assert schema == "part binary"
        self.rows = [{"part": row} for partition in self.partitions
                     for frame in function(iter(partition)) for row in frame["part"]]
        assert all(type(row["part"]) is bytes for row in self.rows)
        return self

    def collect(self):
        return self.rows


class Reference:
    """What Ray's put() and remote() give, pickled as on its way to a worker and back."""

    def __init__(self, value):
        self.value = pickle.dumps(value)


def get(references):
    return [pickle.loads(reference.value) for reference in references]


def remote(function):
    """Tasks run at once. References among their arguments come as what they refer to; those within lists do not."""
    def call(*arguments):
        return Reference(function(*(pickle.loads(a.value) if isinstance(a, Reference) else pickle.loads(pickle.dumps(a))
                                    for a in arguments)))
    return types.SimpleNamespace(remote=call)


@unittest.skipUnless(pandas, "python3-pandas is not installed")
class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.group = kldiv.Client(cls.server.url).group("engines")
        rng = np.random.default_rng(1)
        cls.table = pandas.DataFrame({"x": rng.standard_normal(900), "k": rng.choice(["a", "b"], 900)})
        cls.group.reference(cls.table)
        cls.alone = cls.group.evaluate(cls.table)

    def check(self, results):
        self.assertEqual([(r["n"], r["kl"]) for r in results], [(r["n"], r["kl"]) for r in self.alone])

    def test_spark_observes(self):
        import kldiv.spark
        chunks = np.array_split(self.table, 9)
        self.check(kldiv.spark.observe(self.group, Frame([chunks[:4], [], chunks[4:]]), key=None))

    def test_spark_losses(self):
        import kldiv.spark
        a = np.random.default_rng(2).standard_normal((2, 60, 8))
        rows = pandas.DataFrame({"input": list(a[0]), "target": list(a[1])})
        options = {"input_space": "logit", "target_space": "logit"}
        frame = Frame([[rows[:10], rows[10:11]], [], [rows[:0]], [rows[11:]]])
        merged = kldiv.spark.partial(frame, **options)
        self.assertEqual(merged.loss("mean"), kldiv.kl_div(*a, dim=-1, **options))

    def test_ray(self):
        sys.modules["ray"] = types.SimpleNamespace(remote=remote, put=Reference, get=get)
        try:
            import kldiv.ray
        finally:
            del sys.modules["ray"]
        chunks = np.array_split(self.table, 9)
        self.check(kldiv.ray.observe(self.group, [Reference(chunks[0]), *chunks[1:]], key=None))
        a = np.random.default_rng(2).standard_normal((2, 60, 8))
        options = {"input_space": "logit", "target_space": "logit", "dim": -1}
        shards = [(Reference(a[0, :20]), a[1, :20]), (a[0, 20:], a[1, 20:])]
        self.assertEqual(kldiv.ray.partial(shards, **options).loss("mean"), kldiv.kl_div(*a, **options))
        self.assertEqual(kldiv.ray.partial([]), kldiv.Partial())

    def test_dask_frames(self):
        try:
            import dask.dataframe
        except ImportError:
            self.skipTest("python3-dask is not installed")
        import kldiv.dask
        frame = dask.dataframe.from_pandas(self.table, npartitions=40)
        with dask.config.set(scheduler="synchronous"):
            self.check(kldiv.dask.observe(self.group, frame, key=None))

    def test_counts_add_up(self):
        configs = self.group.monitors()
        parts = [kldiv.count(configs, part) for part in np.array_split(self.table, 7)]
        self.check(self.group.observe(sum(pickle.loads(pickle.dumps(part)) for part in parts), key=None))
        self.check(self.group.observe(kldiv.count(configs, *np.array_split(self.table, 7)), key=None))
        self.assertLess(len(pickle.dumps(parts[0])), 20_000)
        other = kldiv.Client(self.server.url).group("other")
        other.reference(self.table * 2)
        with self.assertRaisesRegex(ValueError, "other bins"):
            parts[0] + kldiv.count(other.monitors(), self.table)
        self.assertRaises(ValueError, self.group.observe, kldiv.TableCounts(configs))


if __name__ == "__main__":
    unittest.main()
