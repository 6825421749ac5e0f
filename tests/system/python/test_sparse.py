"""kldiv.sparse_kl_div: against dense rows that numpy writes out; integers of any type; rows that are masked; labels of pandas;
errors that name their place."""
import itertools
import math
import pickle
import unittest
import warnings

import numpy as np

import kldiv

try:
    import torch
except ImportError:
    torch = None
try:
    import pandas
except ImportError:
    pandas = None

DIVERGENCES = [{}, {"divergence": "reverse"}, {"divergence": "js"}, {"divergence": "js", "beta": 0.2},
               {"divergence": "js", "beta": 0}, {"divergence": "js", "beta": 1}, {"divergence": "skew"},
               {"divergence": "skew", "alpha": 0.7}, {"divergence": "skew", "alpha": 1}]
TAILS = ("bin", "drop", "ignore")
SPACES = ("log_prob", "prob", "logit")


def in_space(logits, space):
    """An operand that stands for the softmax of these logits."""
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return {"log_prob": log_p, "prob": np.exp(log_p), "logit": logits}[space]


def times_log(p, q):
    """p log q, which is 0 where p is."""
    with np.errstate(divide="ignore"):
        return p * np.log(np.where(p == 0, 1.0, q))


def row_losses(p, q, divergence="forward", beta=0.5, alpha=0.1):
    if divergence == "js" and 0 < beta < 1:
        m = beta * p + (1 - beta) * q
        return (beta * (times_log(p, p) - times_log(p, m)) + (1 - beta) * (times_log(q, q) - times_log(q, m))).sum(-1)
    if divergence == "skew":
        return (times_log(p, p) - times_log(p, alpha * p + (1 - alpha) * q)).sum(-1)
    if divergence == "reverse" or (divergence == "js" and beta == 1):
        p, q = q, p
    return (times_log(p, p) - times_log(p, q)).sum(-1)


def dense(q, indices, p, tail):
    """Rows of target and input with all elements, and one that stands for the rest: for all that are not named."""
    full, named = np.zeros_like(q), np.zeros(q.shape, bool)
    np.put_along_axis(full, indices, p / p.sum(-1, keepdims=True) if tail == "drop" else p, -1)
    np.put_along_axis(named, indices, True, -1)
    rest = np.zeros(q.shape[:-1]) if tail == "drop" else np.maximum(1 - p.sum(-1), 0)
    rest = np.where(named.all(-1) & (rest < 1e-9), 0, rest)
    of_rest = [rest[..., None], np.where(named, 0, q).sum(-1, keepdims=True)]
    rows = full, np.where(named, q, 0)
    return rows if tail == "ignore" else tuple(np.concatenate(pair, -1) for pair in zip(rows, of_rest))


class Losses(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.rng = np.random.default_rng(1)

    def call(self, shape, k, spaces=("logit", "prob"), tail="bin"):
        """Input, indices, values and options of a call."""
        student, teacher = 2 * self.rng.standard_normal((2, *shape))
        indices = np.argsort(self.rng.random(shape), -1)[..., :k]
        values = np.take_along_axis(in_space(teacher, spaces[1]), indices, -1)
        options = {"input_space": spaces[0], "target_space": spaces[1], "tail": tail}
        if spaces[1] == "logit":
            options["log_normalizer"] = np.log(np.exp(teacher).sum(-1))
        p = np.take_along_axis(in_space(teacher, "prob"), indices, -1)
        return (in_space(student, spaces[0]), indices, values), options, dense(in_space(student, "prob"), indices, p, tail)

    def test_values_of_the_formula(self):
        n = 0
        for options, tail, spaces, (shape, k) in itertools.product(
                DIVERGENCES, TAILS, itertools.product(SPACES, SPACES),
                [((3, 7), 2), ((2, 3, 5), 1), ((4, 6), 6), ((9,), 4), ((1, 1), 1), ((2, 300), 64)]):
            operands, named, (p, q) = self.call(shape, k, spaces, tail)
            losses = row_losses(p, q, **options)
            scale = np.maximum(np.where(np.isfinite(losses), losses, 1), 1)
            ours = kldiv.sparse_kl_div(*operands, reduction="none", **named, **options)
            np.testing.assert_allclose(ours / scale, losses / scale, rtol=0, atol=3e-14, err_msg=f"{named} {options}")
            self.assertEqual(np.shape(ours), shape[:-1])
            expected = {"mean": losses.mean(), "sum": losses.sum(), "batchmean": losses.sum() / (shape[0] if len(shape) > 1 else 1)}
            for reduction, value in expected.items() if k == 2 else ():
                found = kldiv.sparse_kl_div(*operands, reduction=reduction, base=2, **named, **options) * math.log(2)
                np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-13)
            n += bool(np.isfinite(losses).all() and (losses > 1e-3).all())
        self.assertGreater(n, 600)

    def test_all_elements_are_a_dense_call(self):
        for options, tail in itertools.product(DIVERGENCES, TAILS):
            (x, indices, values), named, _ = self.call((4, 9), 9, tail=tail)
            t = np.empty_like(values)
            np.put_along_axis(t, indices, values, -1)
            np.testing.assert_allclose(kldiv.sparse_kl_div(x, indices, values, **named, **options),
                                       kldiv.kl_div(x, t, dim=-1, input_space="logit", **options), rtol=1e-11, atol=1e-13)

    def test_temperature_is_in_the_normalizer(self):
        """With both of logits, and with either."""
        x, teacher = 2 * self.rng.standard_normal((2, 5, 8))
        indices = np.argsort(-teacher, -1)[:, :3]
        for temperature, scale in itertools.product((0.5, 3.0), (None, "temperature_squared")):
            p = in_space(teacher / temperature, "prob")
            q = in_space(x / temperature, "prob")
            values, factor = np.take_along_axis(p, indices, -1), temperature ** 2 if scale else 1
            named = {"temperature": temperature, "scale": scale}
            logits = np.take_along_axis(teacher, indices, -1), np.log(np.exp(teacher / temperature).sum(-1))
            for tail in TAILS:
                expected = row_losses(*dense(q, indices, values, tail)).mean() * factor
                for of_values, more in (logits[0], {"target_space": "logit", "log_normalizer": logits[1]}), (values, {}):
                    found = kldiv.sparse_kl_div(x, indices, of_values, input_space="logit", tail=tail, **more, **named)
                    np.testing.assert_allclose(found, expected, rtol=1e-12)
                found = kldiv.sparse_kl_div(q, indices, logits[0], input_space="prob", target_space="logit", tail=tail,
                                            log_normalizer=logits[1], **named)
                np.testing.assert_allclose(found, expected, rtol=1e-12)
        dropped = kldiv.sparse_kl_div(x, indices, logits[0], input_space="logit", target_space="logit", tail="drop", **named)
        np.testing.assert_allclose(dropped, row_losses(*dense(q, indices, values, "drop")).mean() * factor, rtol=1e-12)

    def test_weights_and_masks_are_of_rows(self):
        (x, indices, values), named, (p, q) = self.call((3, 4, 6), 2)
        weight, mask = self.rng.random((3, 4)), self.rng.random((3, 4)) < 0.6
        mask[1] = False
        losses = row_losses(p, q) * weight * mask
        indices[~mask], values[~mask], x[~mask] = -100, math.nan, math.nan
        expected = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / weight[mask].sum(), "batchmean": losses.sum() / 2}
        for reduction, value in expected.items():
            found, grads = kldiv.value_and_grad(x, values, ("input", "target"), indices=indices, weight=weight, mask=mask,
                                                reduction=reduction, input_space="logit")
            np.testing.assert_allclose(found, value, rtol=1e-12)
            again = kldiv.sparse_kl_div(x, indices, values, weight=weight, mask=mask.astype("uint8"), reduction=reduction, **named)
            np.testing.assert_array_equal(again, found)
            for each in grads.values():
                self.assertTrue((each[~mask] == 0).all() and np.isfinite(each).all() and each[mask].all())
        self.assertTrue(math.isnan(kldiv.sparse_kl_div(x, indices, values, mask=np.zeros(4, bool), **named)))
        self.assertEqual(kldiv.sparse_kl_div(x, indices, values, mask=np.zeros(4, bool), reduction="sum", **named), 0)

    def test_integers_of_any_type(self):
        (x, indices, values), named, _ = self.call((40, 100), 3)
        loss = kldiv.sparse_kl_div(x, indices, values, **named)
        kinds = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4", ">i8", ">u2"]
        others = [indices.astype(kind) for kind in kinds]
        others += [np.asfortranarray(indices), np.repeat(indices, 2, 1)[:, ::2], indices[:, ::-1].copy()[:, ::-1], indices.tolist()]
        for other in others:
            self.assertEqual(kldiv.sparse_kl_div(x, other, values, **named), loss)
        (x, indices, values), named, _ = self.call((2, 70_000), 5)
        indices[:] = [69_999, 65_535, 32_768, 65_536, 2]
        self.assertEqual(kldiv.sparse_kl_div(x, indices.astype("int32"), values, **named),
                         kldiv.sparse_kl_div(x, indices.astype("uint64"), values, **named))
        for kind in "float64", "float32", "bool", "complex128", "object", "U3", "datetime64[s]":
            with self.assertRaisesRegex(TypeError, "indices are integers, not "):
                kldiv.sparse_kl_div(x, indices.astype(kind), values, **named)
        for wrong, kind in (2 ** 64 - 2, "uint64"), (2 ** 63, "uint64"), (2 ** 63 - 1, "int64"), (2 ** 53 + 1, "int64"), (-2, "int8"):
            with self.assertRaises(kldiv.LossError) as raised:
                kldiv.sparse_kl_div(x, np.full((2, 5), wrong, kind), values, **named)
            self.assertEqual(raised.exception.code, "indices_invalid")
            self.assertIn(f"the index {wrong} is outside", str(raised.exception))
        with self.assertRaisesRegex(kldiv.LossError, "the index 70000 is outside of its row; -1 is padding"):
            kldiv.sparse_kl_div(x, np.full((2, 5), 70_000, "uint64"), values, **named)
        with self.assertRaisesRegex(TypeError, "topk"):
            kldiv.sparse_kl_div(x, values, indices, **named)
        self.assertRaisesRegex(TypeError, "None", kldiv.sparse_kl_div, x, None, values)

    def test_values_of_any_dtype(self):
        for (dtype, tolerance), space in itertools.product([("float16", 2e-3), ("float32", 1e-6), (">f4", 1e-6)], SPACES):
            (x, indices, values), named, _ = self.call((6, 50), 8, ("logit", space))
            other, x = values.astype(dtype), x.astype("float32")
            loss = kldiv.sparse_kl_div(x, indices, other, **named)
            self.assertEqual(loss.dtype, "float32")
            np.testing.assert_allclose(loss, kldiv.sparse_kl_div(x.astype(float), indices, other.astype(float), **named), rtol=1e-6)
            np.testing.assert_allclose(loss, kldiv.sparse_kl_div(x.astype(float), indices, values, **named), rtol=20 * tolerance)

    def test_errors_name_their_place(self):
        (x, indices, values), named, _ = self.call((2, 3, 7), 3)
        values[0, 1], indices[1, 2] = [0.1, 0.2, 0.3], [4, 2, 6]

        def changed(array, place, value):
            array = array.copy()
            array[place] = value
            return array

        logits, good = {**named, "target_space": "logit"}, (x, indices, values)
        wrong = [("indices_invalid", 16, "indices[1, 2, 1]: the index 7 ", (x, changed(indices, (1, 2, 1), 7), values), named),
                 ("indices_invalid", 16, "indices[1, 2, 1]: the index -100 ", (x, changed(indices, (1, 2, 1), -100), values), named),
                 ("indices_invalid", 17, "indices[1, 2, 2]: the index 4 is twice", (x, changed(indices, (1, 2, 2), 4), values), named),
                 ("mass_invalid", 3, "values[0, 1]: the probabilities of a", (x, indices, changed(values, (0, 1, 1), 0.8)), named),
                 ("target_negative", 4, "values[0, 1, 1]: ", (x, indices, changed(values, (0, 1, 1), -0.1)), named),
                 ("normalizer_missing", None, "log_normalizer is missing", good, logits),
                 ("shape_mismatch", None, "log_normalizer", good, {**logits, "log_normalizer": np.ones((2, 3, 1))}),
                 ("shape_mismatch", None, "one for each row", good, {**named, "mask": np.ones((2, 3, 3), bool)}),
                 ("tail_invalid", None, "bin, drop, ignore", good, {**named, "tail": "rest"}),
                 ("temperature_unused", None, "logit", good, {"temperature": 2.0})]
        shapes = [(x, indices[:1], values), (x[:1], indices, values), (x, indices[..., :2], values), (x[..., :2], indices, values),
                  (x, indices[..., :0], values[..., :0]), (0.5, 0, 0.5)]
        wrong += [("shape_mismatch", None, "with k from 1 to n", operands, named) for operands in shapes]
        self.check_errors(wrong)
        with self.assertRaisesRegex(kldiv.LossError, "values: the probabilities of a row sum to 1.2"):
            kldiv.sparse_kl_div(x[0, 0], [1, 2], [0.4, 0.8], **named)

    def check_errors(self, wrong):
        for code, index, text, operands, options in wrong:
            for kind in [np.asarray] + ([torch.as_tensor] if torch else []):
                with self.assertRaises(kldiv.LossError, msg=text) as raised:
                    kldiv.sparse_kl_div(*map(kind, operands), **options)
                self.assertEqual((raised.exception.code, raised.exception.index), (code, index))
                self.assertIn(text, str(raised.exception))

    def test_what_belongs_together(self):
        good, _, _ = self.call((2, 3, 7), 3)
        for name in "tail", "log_normalizer":
            self.assertRaisesRegex(kldiv.LossError, "indices_missing", kldiv.value_and_grad, *good[::2], **{name: "drop"})
        for space in None, "prob", "log_prob":
            options = {"target_space": space, "log_normalizer": np.ones((2, 3))}
            self.assertRaisesRegex(kldiv.LossError, "normalizer_unused", kldiv.sparse_kl_div, *good, **options)
        self.assertRaises(TypeError, kldiv.SparseKLDivLoss, "bin")

    def test_shards(self):
        (x, indices, values), named, _ = self.call((6, 9), 4, ("logit", "logit"))
        loss, normalizer = kldiv.sparse_kl_div(x, indices, values, **named), named.pop("log_normalizer")
        self.assertEqual(kldiv.step(x, values, indices=indices, log_normalizer=normalizer, **named), 1)
        parts = [kldiv.partial(x[i:i + 2], values[i:i + 2], indices=indices[i:i + 2], log_normalizer=normalizer[i:i + 2], **named)
                 for i in (4, 0, 2)]
        self.assertEqual(sum(pickle.loads(pickle.dumps(parts))).loss("mean"), loss)

    @unittest.skipUnless(pandas, "python3-pandas is not installed")
    def test_labels_of_pandas(self):
        """Rows are aligned by their labels, also in results; columns of values with those of indices."""
        (x, indices, values), named, _ = self.call((4, 6), 3)
        rows, ranks = list("abcd"), ["first", "second", "third"]
        weight, order = np.arange(1.0, 5.0), [2, 0, 3, 1]
        named["reduction"] = "none"
        losses, grads = kldiv.value_and_grad(x, values, ("input", "target"), indices=indices, weight=weight, **named)
        x_frame = pandas.DataFrame(x, rows, list("uvwxyz"))
        of_indices = pandas.DataFrame(indices, rows, ranks).iloc[order]
        of_values = pandas.DataFrame(values, rows, ranks).iloc[order[::-1], [1, 2, 0]]
        of_weight = pandas.Series(weight, rows).iloc[::-1]
        found, by_name = kldiv.value_and_grad(x_frame, of_values, ("input", "target"), indices=of_indices, weight=of_weight, **named)
        pandas.testing.assert_series_equal(found, pandas.Series(losses, rows))
        pandas.testing.assert_frame_equal(by_name["input"], pandas.DataFrame(grads["input"], rows, list("uvwxyz")))
        by_values = pandas.DataFrame(grads["target"], rows, ranks).loc[of_values.index, of_values.columns]
        pandas.testing.assert_frame_equal(by_name["target"], by_values)
        mixed = kldiv.sparse_kl_div(x, of_indices, of_values, **named)
        np.testing.assert_array_equal(mixed, kldiv.sparse_kl_div(x, indices[order], values[order], **named))
        self.assertEqual(list(mixed.index), [rows[i] for i in order])
        with self.assertRaisesRegex(ValueError, "label"):
            kldiv.sparse_kl_div(x_frame, of_indices, of_values.rename(index={"a": "e"}), **named)
        of_row = kldiv.value_and_grad(x_frame.loc["a"], of_values.loc["a"], "target", indices=of_indices.loc["a"], **named)
        self.assertEqual(of_row[0], kldiv.sparse_kl_div(x[0], indices[0], values[0], **named))
        self.assertEqual(list(of_row[1]["target"].index), list(of_values.columns))
        if torch:
            tensor = torch.tensor(x, requires_grad=True)
            loss = kldiv.sparse_kl_div(tensor, of_indices.loc[rows], of_values, weight=of_weight, **named)
            np.testing.assert_array_equal(loss.detach(), losses)


if __name__ == "__main__":
    unittest.main()
