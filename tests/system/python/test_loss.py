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
        for wrong, words in ([1, 2], "Integral"), ([1j, 2], "Complex"), (["a", "b"], "float64"):
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
        none = kldiv.kl_div(frame, pandas.DataFrame(t), reduction="none")
        self.assertEqual((list(none.index), list(none.columns)), ([7, 8, 9], ["a", "b"]))
        self.assertEqual(none.to_numpy().tolist(), kldiv.kl_div(x, t, reduction="none").tolist())
        self.assertEqual(kldiv.kl_div(frame["a"], t[:, 0], reduction="sum"), kldiv.kl_div(x[:, 0], t[:, 0], reduction="sum"))
        self.assertEqual(list(kldiv.kl_div(frame["a"], t[:, 0], reduction="none").index), [7, 8, 9])

    def test_version_is_that_of_the_library(self):
        with open(os.path.join(ROOT, "lib", "kldiv.h"), encoding="ascii") as header:
            self.assertIn(f'KLDIV_VERSION "{kldiv.__version__}"', header.read())


if __name__ == "__main__":
    unittest.main()
