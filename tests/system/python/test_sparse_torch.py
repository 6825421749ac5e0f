"""kldiv.sparse_kl_div of tensors: against dense rows that PyTorch scatters; autograd's rules, what is learned, the module."""
import copy
import itertools
import math
import random
import unittest
import warnings

import numpy as np
from test_sparse import DIVERGENCES, SPACES, TAILS

import kldiv

try:
    import torch
    from torch.autograd import grad, gradcheck, gradgradcheck
except ImportError:
    torch = None


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

    def test_padding_and_words_that_are_named_again(self):
        """They change neither loss nor derivatives, of either order; their own are 0."""
        n = 0
        for options, tail, _ in itertools.product(DIVERGENCES, TAILS, range(3)):
            (x, indices, values), named, _ = self.random_call(options, tail, (2, 6), self.rng.choice([2, 3]), room=0.2)
            rows = range(len(indices))
            padded = torch.cat([torch.full_like(indices[:, :1], -1), indices, indices[:, :1]], -1)
            more = torch.cat([torch.full_like(values[:, :1], math.nan), values, values[:, :1]], -1)
            found = []
            for i, v in (indices, values), (padded, more):
                a, b = x.clone().requires_grad_(), v.clone().requires_grad_()
                loss = kldiv.sparse_kl_div(a, i, b, **named)
                first = grad(loss.sum(), [a, b], create_graph=True)
                second = grad(sum(torch.where(g.isfinite(), g, 0 * g).square().sum() for g in first), [a, b])
                direct = grad(kldiv.sparse_kl_div(a, i, b, **named).sum(), [a, b])
                found.append([loss.detach(), *(g.detach() for g in (*first, *second, *direct))])
            if not found[0][0].isfinite().all():
                continue
            n += 1
            for number, (a, b) in enumerate(zip(*found)):
                if number in (2, 4, 6):
                    self.assertTrue((b[:, [0, -1]] == 0).all() or number == 4, (named, number, b))
                    a, b = (a, b[:, 1:-1]) if number != 4 else (a[:, 1:], b[:, 2:-1])
                torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-9, msg=lambda text: f"{named} {number}: {text}")
        self.assertGreater(n, 60)

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

    def test_learned_normalizers(self):
        """Where rows are masked, of arrays, and where they are refused."""
        padded = torch.tensor([0.9, math.nan], dtype=torch.float64, requires_grad=True)
        temperature = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        mask = torch.tensor([True, False])
        loss = kldiv.sparse_kl_div(torch.tensor([[1.0, 0.0, 2.0], [math.nan, 0.0, -math.inf]], dtype=torch.float64), [[2], [-100]],
                                   torch.tensor([[1.0], [math.nan]], dtype=torch.float64), input_space="logit", target_space="logit",
                                   mask=mask, log_normalizer=padded, temperature=temperature)
        for each in grad(loss, [padded, temperature]):
            self.assertTrue(each.isfinite().all() and each.any())
        arrays = np.array([[1.0, 0.0]]), np.array([[1]]), np.array([[2.0]])
        logits = {"input_space": "logit", "target_space": "logit"}
        normalizer = torch.tensor([2.5], dtype=torch.float64, requires_grad=True)
        self.assertTrue(gradcheck(lambda v: kldiv.sparse_kl_div(*arrays, log_normalizer=v, **logits), (normalizer,)))
        with self.assertRaisesRegex(ValueError, "log_normalizer.detach"):
            kldiv.value_and_grad(arrays[0], arrays[2], indices=arrays[1], log_normalizer=normalizer, **logits)
        with self.assertRaisesRegex(kldiv.LossError, r"indices\[0, 1\]"):
            kldiv.sparse_kl_div(torch.zeros(1, 3), torch.tensor([[1, 1]]), torch.tensor([[0.1, 0.2]]), input_space="logit",
                                temperature=torch.ones((), requires_grad=True))

    def test_a_student_without_mass_elsewhere(self):
        """The target's rest is infinitely far, unless rounding leaves it; by the library and by PyTorch's operations."""
        x = torch.tensor([[0.0, 1.0, -math.inf]], requires_grad=True)
        for (values, is_rounding), dtype in itertools.product([([0.5, 0.25], False), ([0.75, 0.249995], True)],
                                                              [torch.float32, torch.float64]):
            p = torch.tensor([values], dtype=dtype)
            losses = [kldiv.sparse_kl_div(x, [[0, 1]], p, input_space="logit", weight=torch.ones(1, requires_grad=learns))
                      for learns in (False, True)]
            self.assertEqual([bool(loss.isfinite()) for loss in losses], 2 * [is_rounding and dtype == torch.float32])
            if losses[0].isfinite():
                torch.testing.assert_close(*losses)

    def test_probabilities_of_0_under_create_graph(self):
        for (x, p), divergence in itertools.product([([0, 1], 0), ([0, 0.5, 0.5], 0.3), ([0.5, 0.5], 0), ([0.2, 0.8], 1)],
                                                    DIVERGENCES):
            both = [torch.tensor([v], dtype=torch.float64, requires_grad=True) for v in (x, [p])]
            loss = kldiv.sparse_kl_div(both[0], torch.tensor([[0]]), both[1], input_space="prob", reduction="sum",
                                       **divergence)
            plain, first = (grad(loss, both, create_graph=graph, retain_graph=True) for graph in (False, True))
            for a, b in zip(plain, first):
                self.assertEqual(a.numpy().tobytes(), b.detach().numpy().tobytes(), (x, p, divergence))

    def test_temperatures_beside_logits_of_no_probability(self):
        inf, names = float("inf"), torch.tensor([[0, 1]])
        for x, values, more in (([1.0, 2.0, -inf], [0.7, 0.3], {}),
                                ([1.0, 2.0, 0.0], [-inf, 0.2], {"target_space": "logit", "log_normalizer": torch.tensor([1.5])})):
            x, values = (torch.tensor([v], dtype=torch.float64) for v in (x, values))
            temperature = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
            self.assertTrue(gradcheck(lambda T: kldiv.sparse_kl_div(x, names, values, temperature=T, input_space="logit",
                                                                    **more), temperature))

    def test_rounding_of_halves_under_autocast(self):
        x, values = (torch.tensor([[v, v]], dtype=torch.bfloat16) for v in (-0.69, 0.502))
        plain = kldiv.sparse_kl_div(x, torch.tensor([[0, 1]]), values, reduction="sum")
        with torch.autocast("cpu", torch.bfloat16):
            cast = kldiv.sparse_kl_div(x, torch.tensor([[0, 1]]), values, reduction="sum")
        self.assertEqual((plain.dtype, cast.dtype), (torch.bfloat16, torch.float32))
        self.assertAlmostEqual(plain.item(), cast.item(), 4)

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
