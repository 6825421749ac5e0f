"""Sparse targets: against dense rows that are written out, in numpy and in PyTorch; autograd's rules; integers of any type;
rows that are masked; labels; errors that name their place."""
import copy
import itertools
import math
import pickle
import random
import unittest
import warnings

import numpy as np

import kldiv

try:
    import torch
    from torch.autograd import grad, gradcheck, gradgradcheck
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
        for wrong in np.full((2, 5), 2 ** 64 - 1, "uint64"), np.full((2, 5), 2 ** 63, "uint64"), np.full((2, 5), -1, "int8"):
            with self.assertRaises(kldiv.LossError) as raised:
                kldiv.sparse_kl_div(x, wrong, values, **named)
            self.assertEqual(raised.exception.code, "indices_invalid")
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
                 ("mass_invalid", 3, "values[0, 1]: the probabilities of a row sum to 1.2", (x, indices, changed(values, (0, 1, 1), 0.8)), {}),
                 ("target_negative", 4, "values[0, 1, 1]: ", (x, indices, changed(values, (0, 1, 1), -0.1)), named),
                 ("normalizer_missing", None, "log_normalizer is missing", good, logits),
                 ("shape_mismatch", None, "log_normalizer", good, {**logits, "log_normalizer": np.ones((2, 3, 1))}),
                 ("shape_mismatch", None, "the axes that remain", good, {**named, "mask": np.ones((2, 3, 3), bool)}),
                 ("tail_invalid", None, "bin, drop, ignore", good, {**named, "tail": "rest"}),
                 ("temperature_unused", None, "logit", good, {"temperature": 2.0})]
        shapes = [(x, indices[:1], values), (x[:1], indices, values), (x, indices[..., :2], values), (x[..., :2], indices, values),
                  (x, indices[..., :0], values[..., :0]), (0.5, 0, 0.5)]
        wrong += [("shape_mismatch", None, "with k from 1 to n", operands, named) for operands in shapes]
        for code, index, text, operands, options in wrong:
            for kind in [np.asarray] + ([torch.as_tensor] if torch else []):
                with self.assertRaises(kldiv.LossError, msg=text) as raised:
                    kldiv.sparse_kl_div(*map(kind, operands), **options)
                self.assertEqual((raised.exception.code, raised.exception.index), (code, index))
                self.assertIn(text, str(raised.exception))
        with self.assertRaisesRegex(kldiv.LossError, "values: the probabilities of a row sum to 1.2"):
            kldiv.sparse_kl_div(x[0, 0], [1, 2], [0.4, 0.8], **named)
        for name in "tail", "log_normalizer":
            self.assertRaisesRegex(kldiv.LossError, "indices_missing", kldiv.value_and_grad, x, x, **{name: "drop"})
        for space in None, "prob", "log_prob":
            self.assertRaisesRegex(TypeError, "not logit", kldiv.sparse_kl_div, *good, target_space=space, log_normalizer=np.ones((2, 3)))
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


def scattered(q, indices, p, tail):
    """As dense(), by operations of PyTorch."""
    named = torch.zeros_like(q).scatter(-1, indices, 1.0).bool()
    p = p / p.sum(-1, keepdim=True) if tail == "drop" else p
    full, rest = torch.zeros_like(q).scatter(-1, indices, p), (1 - p.sum(-1, keepdim=True)).clamp(min=0)
    rest = rest * 0 if tail == "drop" else torch.where(named.all(-1, keepdim=True) & (rest < 1e-4), rest * 0, rest)
    zero = torch.zeros_like(q)
    rows = full, torch.where(named, q, zero)
    if tail == "ignore":
        return rows
    return tuple(torch.cat(pair, -1) for pair in zip(rows, (rest, torch.where(named, zero, q).sum(-1, keepdim=True))))


def x_log_y(x, y):
    none = x == 0
    ones = torch.ones_like(x)
    return torch.where(none, torch.zeros_like(x), torch.where(none, ones, x) * torch.where(none, ones, y).log())


def torch_losses(p, q, divergence="forward", beta=0.5, alpha=0.1):
    if divergence == "js" and 0 < beta < 1:
        m = beta * p + (1 - beta) * q
        return (beta * (x_log_y(p, p) - x_log_y(p, m)) + (1 - beta) * (x_log_y(q, q) - x_log_y(q, m))).sum(-1)
    if divergence == "skew":
        return (x_log_y(p, p) - x_log_y(p, alpha * p + (1 - alpha) * q)).sum(-1)
    p, q = (q, p) if divergence == "reverse" or (divergence == "js" and beta == 1) else (p, q)
    return (x_log_y(p, p) - x_log_y(p, q)).sum(-1)


def probabilities(values, space, temperature, normalizer=None):
    if space == "logit":
        values = values / temperature
        return values.softmax(-1) if normalizer is None else (values - normalizer.unsqueeze(-1)).exp()
    return values.exp() if space == "log_prob" else values


def reduced(losses, reduction, weight, mask):
    factor = torch.ones_like(losses) if weight is None else weight.expand_as(losses)
    factor = factor if mask is None else torch.where(mask, factor, torch.zeros_like(factor))
    losses = losses * factor if mask is None else torch.where(mask, losses * factor, torch.zeros_like(losses))
    if reduction == "none":
        return losses
    if reduction == "batchmean":
        return losses.sum() / (losses.shape[0] if mask is None else mask.reshape(len(mask), -1).any(1).sum())
    return losses.sum() / factor.sum() if reduction == "mean" else losses.sum()


@unittest.skipUnless(torch, "python3-torch is not installed")
class Autograd(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        torch.manual_seed(2)
        self.rng = random.Random(2)

    def random_call(self, options, tail, shape=None, k=None, room=None):
        """Input, indices and values in float64, the options of a call, and the loss by its definition."""
        rng = self.rng
        shape = shape or rng.choice([(4, 7), (2, 3, 5), (6, 40), (1, 1), (3, 700)])
        k = k or rng.choice([1, shape[-1], rng.randint(1, shape[-1])])
        spaces = [rng.choice(SPACES) for _ in range(2)]
        named = {**options, "tail": tail, "input_space": spaces[0], "target_space": spaces[1], "base": rng.choice(["e", 2]),
                 "reduction": rng.choice(["mean", "sum", "none", "batchmean"])}
        if "logit" in spaces and rng.random() < 0.7:
            named.update(temperature=rng.choice([0.5, 2.0]), scale=rng.choice([None, "temperature_squared"]))
        if rng.random() < 0.5:
            named["weight"] = torch.rand(shape[rng.randint(0, len(shape) - 1):-1], dtype=torch.float64) + 0.1
        if rng.random() < 0.5:
            named["mask"] = torch.rand(shape[:-1]) < 0.7
            named["mask"].view(-1)[0] = True
        temperature = named.get("temperature", 1.0)
        student, teacher = 2 * torch.randn(2, *shape, dtype=torch.float64)
        student[..., 0] = 0.5  # the mass of a row in halves
        indices = torch.rand(shape).argsort(-1)[..., :k]
        normalizer = (teacher / temperature).logsumexp(-1)
        room = room or (0.0 if k == shape[-1] else 0.15)  # for the rounding of halves
        values = {"logit": teacher, "log_prob": teacher.log_softmax(-1) - room, "prob": teacher.softmax(-1) * (1 - room)}[spaces[1]]
        if spaces[1] == "logit":
            named["log_normalizer"] = normalizer + room
        x = {"logit": student, "log_prob": student.log_softmax(-1), "prob": student.softmax(-1)}[spaces[0]]

        def expected(x, values):
            q = probabilities(x, spaces[0], temperature)
            p = probabilities(values, spaces[1], temperature, named.get("log_normalizer"))
            losses = torch_losses(*scattered(q, indices, p, tail), **options)
            factor = temperature ** 2 if named.get("scale") else 1.0
            return reduced(losses * factor / (math.log(2) if named["base"] == 2 else 1.0), named["reduction"], named.get("weight"),
                           named.get("mask"))

        return (x, indices, values.gather(-1, indices)), named, expected

    def found(self, call, operands, dtype, upstream_of):
        x, values = (v.to(dtype).requires_grad_() for v in operands)
        loss = call(x, values)
        if not loss.isfinite().all():
            return (loss,)
        return (loss, *grad(loss, [x, values], upstream_of(loss)))

    def test_values_and_gradients_are_those_of_the_definition(self):
        tolerances = {torch.float64: 1e-10, torch.float32: 3e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}
        finite = 0
        for options, tail, dtype, _ in itertools.product(DIVERGENCES, TAILS, tolerances, range(6)):
            (x, indices, values), named, expected = self.random_call(options, tail)
            is_half = torch.finfo(dtype).bits == 16
            if is_half and (values.shape[-1] == x.shape[-1] or x.shape[-1] > 100):  # the sum of rounded values is far from 1
                continue
            least = (2e-2, 2e-3) if is_half else (0, 0)
            operands = [(v if (v < 0).any() else v.clamp(min=p)).to(dtype) for v, p in zip((x, values), least)]
            upstream = lambda loss: torch.linspace(0.5, 1.5, loss.numel(), dtype=loss.dtype).reshape(loss.shape)
            integers = self.rng.choice([torch.int64, torch.int32])
            ours = self.found(lambda a, b: kldiv.sparse_kl_div(a, indices.to(integers), b, **named), operands, dtype, upstream)
            theirs = self.found(expected, operands, torch.float64, upstream)
            self.assertEqual(len(ours), len(theirs), named)
            finite += len(ours) > 1
            for a, b in zip(ours, theirs):
                self.assertEqual(a.dtype, dtype)
                scale = max(1.0, float(b.detach().abs().nan_to_num(0, 0, 0).max()))
                torch.testing.assert_close(a.double() / scale, b / scale, rtol=0, atol=tolerances[dtype],
                                           msg=lambda text: f"{named} {x.shape} {values.shape} {dtype}: {text}")
        self.assertGreater(finite, 350)

    def test_gradients_by_differences(self):
        n = 0
        for options, tail in itertools.product(DIVERGENCES, TAILS):
            for k in (1, 2, 4):
                (x, indices, values), named, _ = self.random_call(options, tail, (2, 4), k, room=0.2)
                x, values = x.requires_grad_(), values.requires_grad_()
                if kldiv.sparse_kl_div(x, indices, values, **named).isfinite().all():
                    self.assertTrue(gradcheck(lambda a, b: kldiv.sparse_kl_div(a, indices, b, **named), (x, values)), named)
                    n += 1
        self.assertGreater(n, 60)

    def test_second_derivatives_and_what_is_learned(self):
        """By operations of PyTorch, which agree with the library."""
        n = 0
        for options, tail, _ in itertools.product(DIVERGENCES, TAILS, range(2)):
            (x, indices, values), named, _ = self.random_call(options, tail, (2, 4), self.rng.choice([1, 3, 4]), room=0.2)
            x, values = x.requires_grad_(), values.requires_grad_()
            if "mask" in named:
                indices = torch.where(named["mask"].unsqueeze(-1), indices, -100 * torch.ones_like(indices))

            def call(a, b, **more):
                return kldiv.sparse_kl_div(a, indices, b, **{**named, **more})

            loss = call(x, values)
            learned = {name: torch.as_tensor(named[name], dtype=torch.float64).clone().requires_grad_()
                       for name in ("weight", "temperature", "log_normalizer") if name in named}
            torch.testing.assert_close(call(x, values, **learned), loss, rtol=1e-11, atol=1e-12)
            if not loss.isfinite().all():
                continue
            plain, differentiable = (grad(loss.sum(), [x, values], create_graph=graph, retain_graph=True)
                                     for graph in (False, True))
            torch.testing.assert_close(plain, tuple(g.detach() for g in differentiable), rtol=1e-9, atol=1e-11,
                                       msg=lambda text: f"{named}: {text}")
            self.assertTrue(gradgradcheck(call, (x, values), fast_mode=True), named)
            for name, tensor in learned.items():
                self.assertTrue(gradcheck(lambda v: call(x.detach(), values.detach(), **{name: v}), (tensor,)), (name, named))
                n += 1
        self.assertGreater(n, 25)
        padded = torch.tensor([0.9, math.nan], dtype=torch.float64, requires_grad=True)
        temperature = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        mask = torch.tensor([True, False])
        loss = kldiv.sparse_kl_div(torch.tensor([[1.0, 0.0, 2.0], [math.nan, 0.0, -math.inf]], dtype=torch.float64), [[2], [-100]],
                                   torch.tensor([[1.0], [math.nan]], dtype=torch.float64), input_space="logit", target_space="logit",
                                   mask=mask, log_normalizer=padded, temperature=temperature)
        for each in grad(loss, [padded, temperature]):
            self.assertTrue(each.isfinite().all() and each.any())
        arrays, logits = (np.array([[1.0, 0.0]]), np.array([[1]]), np.array([[2.0]])), {"input_space": "logit", "target_space": "logit"}
        normalizer = torch.tensor([2.5], dtype=torch.float64, requires_grad=True)
        self.assertTrue(gradcheck(lambda v: kldiv.sparse_kl_div(*arrays, log_normalizer=v, **logits), (normalizer,)))
        with self.assertRaisesRegex(ValueError, "log_normalizer.detach"):
            kldiv.value_and_grad(arrays[0], arrays[2], indices=arrays[1], log_normalizer=normalizer, **logits)

    def test_a_student_without_mass_elsewhere(self):
        """The rest of the target's is infinitely far, unless it is what rounding leaves; by the library and by PyTorch's operations."""
        x = torch.tensor([[0.0, 1.0, -math.inf]], requires_grad=True)
        for (values, is_rounding), dtype in itertools.product([([0.5, 0.25], False), ([0.75, 0.249995], True)],
                                                              [torch.float32, torch.float64]):
            p = torch.tensor([values], dtype=dtype)
            losses = [kldiv.sparse_kl_div(x, [[0, 1]], p, input_space="logit", weight=torch.ones(1, requires_grad=learns))
                      for learns in (False, True)]
            self.assertEqual([bool(loss.isfinite()) for loss in losses], 2 * [is_rounding and dtype == torch.float32])
            if losses[0].isfinite():
                torch.testing.assert_close(*losses)
        with self.assertRaisesRegex(kldiv.LossError, r"indices\[0, 1\]"):
            kldiv.sparse_kl_div(torch.zeros(1, 3), torch.tensor([[1, 1]]), torch.tensor([[0.1, 0.1]]), input_space="logit",
                                temperature=torch.ones((), requires_grad=True))

    def test_a_teacher_that_learns(self):
        """Values and their normalizer from logits of all elements: the derivative is that of the dense loss."""
        student, teacher = torch.randn(2, 3, 6, dtype=torch.float64)
        student.requires_grad_(), teacher.requires_grad_()
        for temperature in 1.0, 2.0:
            top = teacher.topk(6)
            loss = kldiv.sparse_kl_div(student, top.indices, top.values, input_space="logit", target_space="logit",
                                       log_normalizer=(teacher / temperature).logsumexp(-1), temperature=temperature)
            dense_loss = kldiv.kl_div(student, teacher, input_space="logit", target_space="logit", temperature=temperature, dim=-1)
            torch.testing.assert_close(loss, dense_loss)
            torch.testing.assert_close(grad(loss, [student, teacher]), grad(dense_loss, [student, teacher]))

    def test_topk_directly(self):
        """Of a batch of tokens whose padding has labels of -100, through a model."""
        labels = torch.tensor([[5, 2, -100], [1, -100, -100]])
        layer, hidden, teacher = torch.nn.Linear(8, 50), torch.randn(2, 3, 8), 3 * torch.randn(2, 3, 50)
        top = teacher.log_softmax(-1).topk(10)
        for dtype in torch.float32, torch.bfloat16:
            stored = top.values.to(dtype), top.indices.to(torch.int32)
            layer.zero_grad()
            kldiv.sparse_kl_div(layer(hidden), stored[1], stored[0], input_space="logit", target_space="log_prob",
                                mask=labels != -100).backward()
            ours = layer.weight.grad.clone()
            layer.zero_grad()
            q, p = layer(hidden).softmax(-1), stored[0].double().exp().float()
            torch_losses(*scattered(q, top.indices, p, "bin"))[labels != -100].mean().backward()
            torch.testing.assert_close(ours, layer.weight.grad, rtol=1e-3, atol=1e-5)

    def test_integers_and_layouts(self):
        x, teacher = torch.randn(2, 5, 100)
        top = teacher.softmax(-1).topk(4)
        loss = kldiv.sparse_kl_div(x, top.indices, top.values, input_space="logit")
        self.assertEqual(loss.dtype, torch.float32)
        kinds = ("uint8", "int8", "int16", "int32", "uint16", "uint32", "uint64")  # of which some are newer than PyTorch 2.2
        others = [top.indices.to(getattr(torch, kind)) for kind in kinds if hasattr(torch, kind)]
        others += [top.indices.t().contiguous().t(), top.indices.repeat_interleave(2, 1)[:, ::2], top.indices.numpy(),
                   top.indices.numpy().astype("uint16"), top.indices.tolist()]
        for other in others:
            self.assertEqual(kldiv.sparse_kl_div(x, other, top.values, input_space="logit"), loss)
        self.assertEqual(kldiv.sparse_kl_div(x.t().contiguous().t(), top.indices, top.values.numpy(), input_space="logit"), loss)
        self.assertEqual(float(kldiv.sparse_kl_div(x.numpy(), top.indices, top.values.numpy(), input_space="logit")), loss.item())
        for kind in torch.float32, torch.bool, torch.float16:
            with self.assertRaisesRegex(TypeError, "indices are integers"):
                kldiv.sparse_kl_div(x, top.indices.to(kind), top.values)
        with self.assertRaisesRegex(TypeError, "meta"):
            kldiv.sparse_kl_div(x, top.indices.to("meta"), top.values)
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(kldiv.sparse_kl_div(x.bfloat16(), top.indices, top.values, input_space="logit").dtype, torch.float32)

    def test_changes_before_backward(self):
        """In place: an error for tensors, no effect for arrays."""
        x = torch.randn(3, 6, dtype=torch.float64)
        top = torch.randn(3, 6, dtype=torch.float64).topk(2)
        normalizer = top.values.logsumexp(-1) + 1
        options = {"target_space": "logit", "log_normalizer": normalizer, "reduction": "none"}
        for changed in 0, 1, 2, 3:
            operands = [x.log_softmax(-1), top.indices.clone(), top.values.clone(), normalizer.clone()]
            operands[0].requires_grad_()
            a = operands[0] * 1
            loss = kldiv.sparse_kl_div(a, *operands[1:3], **{**options, "log_normalizer": operands[3]}).sum()
            with torch.no_grad():
                (a if changed == 0 else operands[changed]).add_(1)
            self.assertRaises(RuntimeError, loss.backward)
        found = []
        for change in False, True:
            a, indices, of_rows = x.log_softmax(-1).requires_grad_(), top.indices.numpy().copy(), normalizer.numpy().copy()
            loss = kldiv.sparse_kl_div(a, indices, top.values, **{**options, "log_normalizer": of_rows}).sum()
            if change:
                indices[:], of_rows[:] = 0, 0
            found.append(grad(loss, a)[0])
        torch.testing.assert_close(*found, rtol=0, atol=0)

    def test_module(self):
        options = {"input_space": "logit", "target_space": "logit", "divergence": "js", "beta": 0.3, "scale": "temperature_squared"}
        temperature = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
        criterion = kldiv.SparseKLDivLoss(tail="ignore", temperature=temperature, **options)
        self.assertIsInstance(criterion, torch.nn.Module)
        self.assertIs(list(criterion.parameters())[0], temperature)
        self.assertIn("tail='ignore'", repr(criterion))
        self.assertIn("divergence='js', beta=0.3", repr(criterion))
        x, teacher = torch.randn(2, 3, 5, dtype=torch.float64)
        top, normalizer = teacher.topk(2), (teacher / 2).logsumexp(-1)
        weight, mask = torch.rand(3), torch.tensor([True, False, True])
        loss = copy.deepcopy(criterion)(x, top.indices, top.values, normalizer, weight, mask)
        torch.testing.assert_close(loss, kldiv.sparse_kl_div(x, top.indices, top.values, log_normalizer=normalizer, tail="ignore",
                                                             temperature=2.0, weight=weight, mask=mask, **options))
        self.assertTrue(gradcheck(lambda _: criterion(x, top.indices, top.values, normalizer), (temperature,)))
        self.assertRaises(TypeError, kldiv.SparseKLDivLoss, tale="bin")


if __name__ == "__main__":
    unittest.main()
