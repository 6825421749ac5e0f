"""The loss in this process: values of formulas in numpy, partial results, threads, forks, errors, warnings."""
import math
import os
import pickle
import re
import tempfile
import threading
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import kldiv

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
TOLERANCES = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3}


def operands(rng, shape, dtype, log_target=False):
    a = rng.standard_normal((2, *shape))
    p = np.exp(a) / np.exp(a).sum(-1, keepdims=True)
    return np.log(p[0]).astype(dtype), (np.log(p[1]) if log_target else p[1]).astype(dtype)


def formula(x, t, log_target):
    x, t = x.astype("float64"), t.astype("float64")
    return np.exp(t) * (t - x) if log_target else t * (np.log(t) - x)


class Loss(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.rng = np.random.default_rng(1)

    def test_values_of_the_formula(self):
        for dtype, tolerance in TOLERANCES.items():
            for log_target in False, True:
                x, t = operands(self.rng, (5, 7), dtype, log_target)
                losses = formula(x, t, log_target)
                expected = {"none": losses, "sum": losses.sum(), "mean": losses.mean(), "batchmean": losses.sum() / 5}
                for reduction, value in expected.items():
                    loss = kldiv.kl_div(x, t, reduction=reduction, log_target=log_target)
                    self.assertEqual((loss.dtype, loss.shape), (np.dtype(dtype), np.shape(value)))
                    np.testing.assert_allclose(loss, value, rtol=tolerance, atol=tolerance)

    def test_layouts_are_read_as_they_are(self):
        x, t = operands(self.rng, (6, 8), "float64")
        loss = kldiv.kl_div(x, t, reduction="sum")
        swapped = x.astype(">f8")
        for other in np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], swapped, x.tolist(), memoryview(x):
            self.assertEqual(kldiv.kl_div(other, t, reduction="sum"), loss)
        with tempfile.TemporaryFile() as file:
            mapped = np.memmap(file, "float64", "w+", shape=x.shape)
            mapped[:] = x
            self.assertEqual(kldiv.kl_div(mapped, t, reduction="sum"), loss)

    def test_dlpack_without_a_copy(self):
        class Exported:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **arguments):
                return self.array.__dlpack__(**arguments)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        x, t = operands(self.rng, (3, 4), "float32")
        from kldiv import _arrays
        self.assertEqual(_arrays.read(Exported(x)).pointer, x.ctypes.data)
        self.assertEqual(kldiv.kl_div(Exported(x), Exported(t), reduction="sum"), kldiv.kl_div(x, t, reduction="sum"))

    def test_options(self):
        x, t = operands(self.rng, (4, 6), "float64")
        rows = formula(x, t, False).sum(1)
        np.testing.assert_allclose(kldiv.kl_div(x, t, reduction="none", dim=-1), rows, 1e-13)
        np.testing.assert_allclose(kldiv.kl_div(x, t, reduction="none", dim=1, base=2), rows / math.log(2), 1e-13)
        weight, mask = np.array([1.0, 2, 0, 1]), [True, False, True, True]
        np.testing.assert_allclose(kldiv.kl_div(x, t, dim=1, weight=weight), rows @ weight / 4, 1e-13)
        np.testing.assert_allclose(kldiv.kl_div(x, t, dim=1, mask=mask), rows[[0, 2, 3]].mean(), 1e-13)
        np.testing.assert_allclose(
            kldiv.kl_div(x * 2 + 1, np.log(t) * 2, input_space="logit", target_space="logit", temperature=2, dim=1,
                         reduction="none"), rows, 1e-12)
        self.assertEqual(kldiv.kl_div(x, t, False, True), kldiv.kl_div(x, t, reduction="sum"))
        self.assertEqual(kldiv.kl_div(x[:1], t, reduction="sum", broadcast=True),
                         kldiv.kl_div(np.repeat(x[:1], 4, 0), t, reduction="sum"))

    def test_gradients_of_the_formula(self):
        x, t = operands(self.rng, (3, 5), "float64")
        loss, grads = kldiv.value_and_grad(x, t, ("input", "target"), reduction="batchmean")
        self.assertEqual(loss, kldiv.kl_div(x, t, reduction="batchmean"))
        np.testing.assert_allclose(grads["input"], -t / 3, 1e-14)
        np.testing.assert_allclose(grads["target"], (np.log(t) + 1 - x) / 3, 1e-13)
        upstream = self.rng.random((3, 5))
        _, grads = kldiv.value_and_grad(x, t, grad_output=upstream, reduction="none")
        self.assertEqual(list(grads), ["input"])
        np.testing.assert_allclose(grads["input"], -t * upstream, 1e-14)

    def test_errors_have_a_code(self):
        x, t = operands(self.rng, (3, 5), "float64")
        for code, call in [("shape_mismatch", lambda: kldiv.kl_div(x, t[:2])),
                           ("reduction_invalid", lambda: kldiv.kl_div(x, t, reduction="bogus")),
                           ("space_invalid", lambda: kldiv.kl_div(x, t, input_space="logits")),
                           ("temperature_invalid", lambda: kldiv.kl_div(x, t, temperature=0)),
                           ("partial_none", lambda: kldiv.partial(x, t, reduction="none"))]:
            with self.assertRaises(kldiv.LossError) as raised:
                call()
            self.assertEqual(raised.exception.code, code)
        with self.assertRaises(kldiv.LossError) as raised:
            kldiv.kl_div(x, -t, compat="math")
        self.assertEqual(raised.exception.index, 0)
        for wrong, words in (np.array([1, 2]), "Integral"), ([True, False], "Integral"), ([1j, 2], "Complex"), (["a", "b"], "float64"):
            with self.assertRaisesRegex(TypeError, words):
                kldiv.kl_div(wrong, wrong)

    def test_warnings_are_those_of_pytorch(self):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            kldiv.kl_div([-1.0], [1.0])
            kldiv.kl_div([-1.0], [1.0], size_average=True)
            kldiv.kl_div([-1.0], [1.0], reduction="batchmean")
        self.assertEqual([re.split("[:,]", str(w.message))[0] for w in given],
                         ["reduction", "size_average and reduce args will be deprecated"])
        self.assertEqual({w.filename for w in given}, {__file__})

    def test_partial_results_merge_to_the_bits_of_one_call(self):
        x, t = operands(self.rng, (1000, 10), "float32")
        shards = [kldiv.partial(x[i:i + 77], t[i:i + 77], dim=-1) for i in range(0, 1000, 77)]
        sent = [pickle.loads(pickle.dumps(shard)) for shard in reversed(shards)]
        for reduction in "mean", "batchmean", "sum":
            whole = kldiv.kl_div(x, t, reduction=reduction, dim=-1)
            for merged in sum(shards), sum(sent, kldiv.Partial()), sent[0].merge(*sent[1:]):
                self.assertEqual(merged.loss(reduction).tobytes(), whole.tobytes())
                self.assertEqual(merged.loss(reduction).dtype, whole.dtype)
        self.assertEqual(sum(shards).divisor("batchmean"), (1000, 0))
        self.assertEqual(kldiv.step(x, t, dim=-1), 1)
        with self.assertRaises(ValueError):
            kldiv.Partial(b"short")
        none = kldiv.partial(np.zeros((2, 3)), np.ones((2, 3)), mask=np.zeros((2, 3), bool))
        self.assertEqual([(kldiv.Partial() + none).dtype, (none + kldiv.Partial()).dtype], ["float64"] * 2)
        self.assertEqual(pickle.loads(pickle.dumps(kldiv.Partial())), kldiv.Partial())
        with self.assertRaises(TypeError):
            shards[0] + 1

    def test_threads_and_forks_give_the_same_bits(self):
        x, t = operands(self.rng, (600, 1000), "float32")
        loss = kldiv.kl_div(x, t, reduction="sum")
        with ThreadPoolExecutor(4) as executor:
            calls = [executor.submit(kldiv.kl_div, x, t, reduction="sum") for _ in range(40)]
            self.assertEqual({call.result() for call in calls}, {loss})
        kldiv.threads(3)
        self.assertEqual(kldiv.kl_div(x, t, reduction="sum"), loss)
        child = os.fork()
        if child == 0:
            os._exit(0 if kldiv.kl_div(x, t, reduction="sum") == loss else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertRaises(ValueError, kldiv.threads, 0)

    def test_the_gil_is_released(self):
        kldiv.threads(1)
        x, t = operands(self.rng, (2000, 2000), "float64")
        ends, done = [], threading.Event()

        def compute():
            for _ in range(5):
                kldiv.kl_div(x, t, reduction="sum")
            done.set()

        thread = threading.Thread(target=compute)
        thread.start()
        while not done.is_set():
            ends.append(1)
        thread.join()
        self.assertGreater(len(ends), 1000)

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("python3-pandas is not installed")
        x, t = operands(self.rng, (3, 2), "float64")
        frame = pandas.DataFrame(x, index=[7, 8, 9], columns=["a", "b"])
        none = kldiv.kl_div(frame, t, reduction="none")
        self.assertEqual((list(none.index), list(none.columns)), ([7, 8, 9], ["a", "b"]))
        self.assertEqual(none.to_numpy().tolist(), kldiv.kl_div(x, t, reduction="none").tolist())
        self.assertEqual(kldiv.kl_div(frame["a"], t[:, 0], reduction="sum"), kldiv.kl_div(x[:, 0], t[:, 0], reduction="sum"))
        self.assertEqual(list(kldiv.kl_div(frame["a"], t[:, 0], reduction="none").index), [7, 8, 9])

        for dtype in "Float64", "Float32", "float32":
            nullable = pandas.DataFrame(x).astype(dtype)
            loss = kldiv.kl_div(nullable, pandas.DataFrame(t).astype(dtype), reduction="sum")
            self.assertEqual(loss.dtype.name, dtype.lower())
        nullable = pandas.Series([-1.0, None], dtype="Float64")
        self.assertTrue(math.isnan(kldiv.kl_div(nullable, [0.5, 0.5], reduction="sum")))

    def test_counts_of_two_samples_are_aligned(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("python3-pandas is not installed")
        p, q = (pandas.Series(list(text)).value_counts(normalize=True) for text in ("aaabbc", "abbbcc"))
        self.assertEqual(list(p.index), ["a", "b", "c"])
        self.assertNotEqual(list(q.index), list(p.index))
        expected = sum(p[k] * math.log(p[k] / q[k]) for k in "abc")
        self.assertAlmostEqual(kldiv.kl_div(q, p, reduction="sum", input_space="prob"), expected, 14)
        _, grads = kldiv.value_and_grad(q, p, ("input", "target"), reduction="sum", input_space="prob")
        self.assertEqual([list(grads[name].index) for name in grads], [list(q.index), list(p.index)])
        for name in "abc":
            self.assertAlmostEqual(grads["input"][name], -p[name] / q[name], 14)
        for other, words in ((q.drop("c"), "input has the label 'c'|target has the label 'c'"),
                             (q.rename({"c": "d"}), "label 'd'|label 'c'"), (q.append(q), "occurs twice")):
            for operands_of in (other, p), (p, other):
                with self.assertRaisesRegex(ValueError, words):
                    kldiv.kl_div(*operands_of, reduction="sum")
        with self.assertRaisesRegex(ValueError, "aligned by their labels"):
            kldiv.Client("http://127.0.0.1:9").kl_div(p, q.drop("c"))

    def test_random_orders_of_labels(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("python3-pandas is not installed")
        for number in range(60):
            rows, columns = list("pqrs"), ["a", "b", "c"]
            x, t = operands(self.rng, (4, 3), "float64")
            options = {"reduction": str(self.rng.choice(["none", "mean", "sum"])), "dim": [None, 0, 1][number % 3]}
            left = {None: (4, 3), 0: (3,), 1: (4,)}[options["dim"]]
            weight, mask = self.rng.random(left), self.rng.random(left) < 0.7
            plain = kldiv.value_and_grad(x, t, ("input", "target"), weight=weight, mask=mask, **options)

            def shuffled(values, *axes):
                made = pandas.Series(values, axes[0]) if values.ndim == 1 else pandas.DataFrame(values, *axes)
                for axis, labels in enumerate(axes):
                    made = made.reindex(self.rng.permutation(labels), axis=axis)
                return made

            axes = {None: (rows, columns), 0: (columns,), 1: (rows,)}[options["dim"]]
            a, b = shuffled(x, rows, columns), shuffled(t, rows, columns)
            loss, grads = kldiv.value_and_grad(a, b, ("input", "target"), weight=shuffled(weight, *axes),
                                               mask=shuffled(mask, *axes), **options)
            if options["reduction"] == "none":
                loss = loss.reindex(axes[0]) if len(axes) == 1 else loss.reindex(axes[0]).reindex(axes[1], axis=1)
            np.testing.assert_allclose(loss, plain[0], 1e-13)
            for name, given in ("input", a), ("target", b):
                self.assertTrue(all(ours.equals(theirs) for ours, theirs in zip(grads[name].axes, given.axes)))
                np.testing.assert_allclose(grads[name].reindex(rows).reindex(columns, axis=1), plain[1][name], 1e-13)
            series = shuffled(t[0], columns)
            np.testing.assert_allclose(kldiv.kl_div(a, series, reduction="sum", broadcast=True),
                                       kldiv.kl_div(x, t[:1], reduction="sum", broadcast=True), 1e-13)

    def test_levels_are_aligned_by_their_names(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("python3-pandas is not installed")
        pairs = [(a, b) for a in (1, 2, 3) for b in (1, 2, 3)]
        x = pandas.Series(self.rng.standard_normal(9), pandas.MultiIndex.from_tuples(pairs, names=["a", "b"]))
        t = pandas.Series(self.rng.random(9), x.index)
        loss, grads = kldiv.value_and_grad(x, t, ("input", "target"), reduction="none")
        for other in t.reorder_levels(["b", "a"]), t.reorder_levels(["b", "a"]).sort_index():
            again, other_grads = kldiv.value_and_grad(x, other, ("input", "target"), reduction="none")
            pandas.testing.assert_series_equal(again, loss)
            self.assertTrue(other_grads["target"].index.equals(other.index))
            pandas.testing.assert_series_equal(other_grads["target"].reorder_levels(["a", "b"]).reindex(x.index), grads["target"])
            self.assertEqual(kldiv.kl_div(x, t, weight=other), kldiv.kl_div(x, t, weight=t))
        for other, words in (t.rename_axis(["a", "c"]), "are named a, b and a, c|are named a, c and a, b"), \
                (t.reset_index(drop=True), "different numbers of levels"):
            for operands in (x, other), (other, x):
                self.assertRaisesRegex(ValueError, words, kldiv.kl_div, *operands)
        self.assertEqual(kldiv.kl_div(x, t.rename_axis([None, None])), kldiv.kl_div(x, t))

    def test_masks_are_booleans(self):
        x, t = operands(self.rng, (3, 2), "float64")
        kept = [[1, 0], [0, 1], [1, 1]]
        loss = kldiv.kl_div(x, t, mask=np.array(kept, bool))
        good = [kept, np.array(kept, "u1"), np.array(kept, "i8"), np.array(kept, bool).tolist()]
        bad = [np.where(kept, 0, -np.inf), np.array(kept, float), np.array(kept) * -100, np.where(kept, 1, np.nan),
               np.array(kept).astype(str), "true", np.array(kept) + 1, np.array(kept, object), np.ma.array(kept, mask=kept)]
        try:
            import torch
            good += [torch.tensor(kept), torch.tensor(kept, dtype=torch.bool), torch.tensor(kept, dtype=torch.uint8)]
            bad += [torch.tensor(kept) * 2, torch.tensor(kept, dtype=torch.float32), torch.tensor([-100])]
        except ImportError:
            pass
        for mask in good:
            self.assertEqual(kldiv.kl_div(x, t, mask=mask), loss)
        for mask in bad:
            for call in kldiv.kl_div, kldiv.partial, kldiv.Client("http://127.0.0.1:9", retries=0).kl_div:
                with self.assertRaisesRegex(TypeError, "mask"):
                    call(x, t, mask=mask)
        for masked in np.ma.array(x, mask=[[1, 0]] * 3), np.ma.array(x):
            self.assertRaisesRegex(TypeError, "~array.mask", kldiv.kl_div, masked, t)
            self.assertRaisesRegex(TypeError, "~array.mask", kldiv.kl_div, x, t, weight=masked)

    def test_wrong_types_of_options(self):
        x, t = operands(self.rng, (3, 2), "float64")
        wrong = {"size_average": ["false", 2, 0.5], "reduce": ["x"], "reduction": [None, 7, "Mean"], "log_target": ["false", None, 1],
                 "compat": [7, "torch"], "base": [10, 2.5, "E"], "input_space": ["probs", 1], "target_space": [True],
                 "temperature": ["2", True, [1.0], 0, np.ones(2)], "dim": [1.5, "1", [0.0], [[True]]],
                 "broadcast": ["false", 1, None], "weight": ["1", 1j, [True], {}, object()], "mask": [{}, object()]}
        functions = [kldiv.kl_div, kldiv.value_and_grad, kldiv.partial, kldiv.step]
        try:
            import torch
            functions.append(lambda a, b, **options: kldiv.kl_div(torch.from_numpy(a), torch.from_numpy(b), **options))
        except ImportError:
            pass
        for name, values in wrong.items():
            for value in values:
                for function in functions:
                    with self.assertRaises((TypeError, ValueError), msg=(name, value)):
                        function(x, t, **{name: value})
        for a, b in (None, t), (x, "text"), (object(), t), ({}, t), (x, [object()]), (b"bytes", t):
            for function in functions[:4]:
                self.assertRaises((TypeError, ValueError), function, a, b)
        for value in (0, ["input", 1], "output", []):
            self.assertRaises((TypeError, ValueError), kldiv.value_and_grad, x, t, value)

    def test_lists_of_integers_are_those_of_json(self):
        self.assertEqual(kldiv.kl_div([[-1, -2]], [[1, 0]], reduction="sum"), 1.0)
        self.assertEqual(kldiv.kl_div(-1, 1, reduction="sum").dtype, np.float64)

    def test_version_is_that_of_the_library(self):
        with open(os.path.join(ROOT, "lib", "kldiv.h"), encoding="ascii") as header:
            self.assertIn(f'KLDIV_VERSION "{kldiv.__version__}"', header.read())


if __name__ == "__main__":
    unittest.main()
