"""kldiv.kl_div in the place of torch.nn.functional.kl_div: values, gradients, autograd's rules."""
import itertools
import unittest
import warnings

import numpy as np

import kldiv

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

TOLERANCES = {"float64": 1e-13, "float32": 3e-6, "float16": 3e-3, "bfloat16": 2e-2}


@unittest.skipUnless(torch, "python3-torch is not installed")
class Torch(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        torch.manual_seed(1)

    def operands(self, shape, dtype, log_target=False):
        x = torch.randn(shape, dtype=torch.float64).log_softmax(-1).to(dtype).requires_grad_()
        t = torch.randn(shape, dtype=torch.float64).log_softmax(-1)
        return x, (t if log_target else t.exp()).to(dtype).requires_grad_()

    def both(self, x, t, backward=None, **options):
        """Our results and those of PyTorch in float64: loss, and gradients."""
        results = []
        for function, own in ((kldiv.kl_div, {}), (F.kl_div, {"float64": True})):
            a, b = (v.detach().to(torch.float64) if own else v.detach().clone() for v in (x, t))
            a.requires_grad_(), b.requires_grad_()
            loss = function(a, b, **options)
            (backward or (lambda v: v.sum().backward()))(loss)
            results.append((loss.detach(), a.grad, b.grad))
        return results

    def test_losses_and_gradients(self):
        for (name, tolerance), reduction, log_target, shape in itertools.product(
                TOLERANCES.items(), ["none", "mean", "batchmean", "sum"], [False, True], [(4, 7), (2, 3, 5), (6,)]):
            x, t = self.operands(shape, getattr(torch, name), log_target)
            ours, theirs = self.both(x, t, reduction=reduction, log_target=log_target)
            for a, b in zip(ours, theirs):
                self.assertEqual((a.dtype, a.shape), (x.dtype, b.shape))
                torch.testing.assert_close(a.double(), b, rtol=tolerance, atol=tolerance)

    def test_mixed_dtypes_promote_as_pytorch_does(self):
        names = list(TOLERANCES)
        for a, b in itertools.product(names, names):
            x, t = self.operands((3, 4), torch.float64)
            x, t = x.detach().to(getattr(torch, a)), t.detach().to(getattr(torch, b))
            self.assertEqual(kldiv.kl_div(x, t).dtype, (x + t).dtype)

    def test_flags_and_warnings(self):
        x, t = self.operands((3, 4), torch.float64)
        for size_average, reduce in itertools.product([None, True, False], repeat=2):
            with warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always")
                losses = [f(x, t, size_average, reduce) for f in (kldiv.kl_div, F.kl_div)]
            torch.testing.assert_close(*losses)
            half = len(given) // 2
            self.assertEqual([str(w.message) for w in given[:half]], [str(w.message) for w in given[half:]])

    def test_a_negative_divergence_is_told_of(self):
        p = torch.tensor([[0.7, 0.3]], dtype=torch.float64)
        t = torch.tensor([[0.4, 0.6]], dtype=torch.float64)
        cases = [({"reduction": "batchmean"}, True), ({"dim": -1, "reduction": "none"}, True), ({"reduction": "none"}, False),
                 ({"reduction": "sum", "input_space": "prob"}, False), ({"reduction": "sum", "weight": -t}, False),
                 ({"reduction": "sum", "divergence": "reverse"}, False), ({"reduction": "sum", "mask": t > 0.5}, False),
                 ({"dim": -1, "mask": torch.tensor([True])}, True)]
        for options, is_told in cases:
            for call in (kldiv.kl_div, kldiv.value_and_grad, lambda x, t, **o: kldiv.kl_div(x.numpy(), t.numpy(), **o),
                         lambda x, t, **o: kldiv.kl_div(x.clone().requires_grad_(), t, **o)):
                with warnings.catch_warnings(record=True) as given:
                    warnings.simplefilter("always")
                    call(p, t, **options)
                self.assertEqual([w.filename for w in given if "input_space=prob" in str(w.message)], [__file__] * is_told)

    def test_broadcasting_is_asked_for(self):
        x, t = self.operands((1, 5), torch.float64)[0], self.operands((4, 5), torch.float64)[1]
        self.assertRaises(kldiv.LossError, kldiv.kl_div, x, t)
        for reduction in "none", "sum", "mean":
            ours = torch.autograd.grad(kldiv.kl_div(x, t, reduction=reduction, broadcast=True).sum(), [x, t])
            theirs = torch.autograd.grad(F.kl_div(x, t, reduction=reduction).sum(), [x, t])
            torch.testing.assert_close(ours, theirs)

    def test_upstream_gradients(self):
        for name in "float64", "float16":
            x, t = self.operands((5, 6), getattr(torch, name))
            weights = torch.rand(5, 6, dtype=torch.float64)
            for reduction, backward in [("none", lambda v: (v * weights.to(v.dtype)).sum().backward()),
                                        ("batchmean", lambda v: (v * 4).backward()),
                                        ("sum", lambda v: (v * v).backward())]:
                ours, theirs = self.both(x, t, backward, reduction=reduction)
                for a, b in zip(ours, theirs):
                    torch.testing.assert_close(a.double(), b, rtol=TOLERANCES[name], atol=TOLERANCES[name])

    def test_small_gradients_of_halves_survive_a_scale(self):
        x = torch.zeros(100_000, dtype=torch.float16, requires_grad=True)
        t = torch.full((100_000,), 1e-3, dtype=torch.float16)
        (kldiv.kl_div(x, t, reduction="mean") * 32768).backward()
        torch.testing.assert_close(x.grad, torch.full_like(t, float(-t[0].double() * 32768 / 100_000)))

    def test_backward_twice_and_through_a_model(self):
        x, t = self.operands((3, 4), torch.float32)
        loss = kldiv.kl_div(x, t, reduction="sum")
        loss.backward(retain_graph=True)
        loss.backward()
        torch.testing.assert_close(x.grad, -2 * t.detach())
        layer, teacher = torch.nn.Linear(8, 5), torch.randn(3, 5).softmax(-1)
        data = torch.randn(3, 8)
        grads = []
        for function in kldiv.kl_div, F.kl_div:
            layer.zero_grad()
            function(layer(data).log_softmax(-1), teacher, reduction="batchmean").backward()
            grads.append([p.grad.clone() for p in layer.parameters()])
        torch.testing.assert_close(*grads)

    def test_rules_of_autograd(self):
        x, t = self.operands((3, 4), torch.float64)
        self.assertTrue(torch.autograd.gradcheck(lambda a, b: kldiv.kl_div(a, b, reduction="batchmean"), (x, t)))
        logits = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(
            lambda a: kldiv.kl_div(a[0], a[1], input_space="logit", target_space="logit", temperature=2.0, dim=-1),
            (logits,)))
        self.assertFalse(kldiv.kl_div(x.detach(), t.detach()).requires_grad)
        with torch.no_grad():
            self.assertFalse(kldiv.kl_div(x, t).requires_grad)
        changed = x * 1
        loss = kldiv.kl_div(changed, t, reduction="sum")
        changed.mul_(2)
        self.assertRaises(RuntimeError, loss.backward)

    def test_tensors_are_read_where_they_lie(self):
        from kldiv import _arrays
        for dtype in torch.float32, torch.bfloat16:
            tensor = torch.rand(3, 4).to(dtype)
            self.assertEqual(_arrays.read(tensor).pointer, tensor.data_ptr())
        x, t = self.operands((4, 6), torch.float64)
        torch.testing.assert_close(kldiv.kl_div(x.t(), t.t(), reduction="none"), F.kl_div(x.t(), t.t(), reduction="none"))
        with self.assertRaisesRegex(TypeError, "meta"):
            kldiv.kl_div(torch.zeros(2, device="meta"), torch.zeros(2, device="meta"))

    def kinds(self, values):
        """Tensors of the same values: what is negated or zero without memory, views, and subclasses."""
        class Own(torch.Tensor):
            pass

        wide = torch.zeros(2 * len(values), 3, dtype=values.dtype)
        wide[1::2, 1] = values
        yield "negative bit", torch.complex(torch.zeros_like(values), -values).conj().imag
        yield "strided", wide[1::2, 1]
        yield "of a transposed one", wide.t().contiguous().t()[1::2, 1]
        yield "real part of a conjugate", torch.complex(values, values).conj().real
        yield "subclass", values.clone().as_subclass(Own)
        yield "parameter", torch.nn.Parameter(values.clone(), requires_grad=False)
        with torch.inference_mode():
            inferred = values.clone()
        yield "of inference mode", inferred
        if not values.any():
            yield "zeros without memory", torch._efficientzerotensor(values.shape, dtype=values.dtype)
            yield "expanded", torch.zeros(1, dtype=values.dtype).expand(len(values))

    def test_tensors_of_every_kind_are_read_as_pytorch_reads_them(self):
        logits = torch.randn(3, dtype=torch.float64)
        for values in torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64), torch.zeros(3, dtype=torch.float64):
            plain = {"input": logits, "target": values, "weight": values, "grad_output": values, "log_normalizer": values}
            for kind, tensor in self.kinds(values):
                for name in plain:
                    options = {"reduction": "none", "wrt": ["input", "target"], "input_space": "prob" if name == "input" else None}
                    given = {"input": logits, "target": torch.full_like(values, 0.25), name: tensor}
                    if name == "log_normalizer":
                        given.update(input=logits.expand(3, 3), indices=torch.zeros(3, 1, dtype=torch.int64),
                                     target=torch.full((3, 1), -1.0, dtype=torch.float64))
                        options.update(input_space="logit", target_space="logit")
                    with self.subTest(kind=kind, operand=name):
                        loss, grads = kldiv.value_and_grad(**given, **options)
                        same, same_grads = kldiv.value_and_grad(**{**given, name: values}, **options)
                        torch.testing.assert_close((loss, grads), (same, same_grads), rtol=0, atol=0, equal_nan=True)
        mixed = torch.tensor([1 + 2j], dtype=torch.complex128).conj().imag.requires_grad_()
        loss = kldiv.kl_div(mixed, torch.tensor([0.5], dtype=torch.float64), reduction="none")
        loss.backward(torch.tensor([3j], dtype=torch.complex128).conj().imag)
        self.assertEqual((round(loss.item(), 4), mixed.grad.item()), (0.6534, 1.5))

    def test_arrays_beside_tensors_may_change_before_backward(self):
        p = torch.tensor([0.3, 0.7], dtype=torch.float64)
        for operand in "input", "target", "values":
            learned = p.log().requires_grad_() if operand != "input" else p.clone().requires_grad_()
            array = p.log().numpy() if operand == "input" else p.numpy().copy()
            if operand == "values":
                loss = kldiv.sparse_kl_div(learned, np.array([0, 1]), array, input_space="logit")
            else:
                given = (array, learned) if operand == "input" else (learned, array)
                loss = kldiv.kl_div(*given, reduction="none", input_space="logit").sum()
            expected, = torch.autograd.grad(loss, learned, retain_graph=True)
            array[:] = 9
            found, = torch.autograd.grad(loss, learned)
            torch.testing.assert_close(found, expected, rtol=0, atol=0)

    def test_a_learned_temperature_has_the_loss_of_a_plain_one(self):
        x = torch.randn(4, 6, dtype=torch.float64)
        t = x + 1e-9 * torch.randn(4, 6, dtype=torch.float64)
        for divergence in "forward", "reverse", "js", "skew":
            options = {"input_space": "logit", "target_space": "logit", "reduction": "batchmean", "divergence": divergence}
            temperature = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
            loss = kldiv.kl_div(x, t, temperature=temperature, **options)
            self.assertGreater(loss.item(), 0)
            self.assertEqual(loss.item(), kldiv.kl_div(x, t, temperature=2.0, **options).item())
            loss.backward()
            self.assertTrue(temperature.grad.isfinite())

    def test_means_of_halves_are_told_of(self):
        p = torch.randn(8, 1000).softmax(-1).to(torch.float16)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            kldiv.kl_div(p, p)
        self.assertIn("input_space=prob", str(given[-1].message))

    def test_what_is_learned_but_not_used_has_no_gradient(self):
        x, t = self.operands((3, 4), torch.float64)
        temperature = torch.ones((), dtype=torch.float64, requires_grad=True)
        kldiv.kl_div(x, t, temperature=temperature, reduction="sum").backward()
        torch.testing.assert_close(x.grad, -t.detach())
        self.assertIsNone(temperature.grad)

    def test_temperatures_may_change_before_backward(self):
        x, t = (torch.randn(3, 4, dtype=torch.float64) for _ in range(2))
        options = {"input_space": "logit", "target_space": "logit", "dim": -1, "reduction": "sum"}
        expected = None
        for temperature in 2.0, torch.tensor(2.0), np.array(2.0), np.float32(2):
            weight = torch.rand(3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
            loss = kldiv.kl_div(x, t, temperature=temperature, weight=weight, **options)
            if not isinstance(temperature, (float, np.float32)):
                temperature.fill(7) if isinstance(temperature, np.ndarray) else temperature.fill_(7)
            loss.backward()
            expected = weight.grad if expected is None else expected
            torch.testing.assert_close(weight.grad, expected, rtol=0, atol=0)

    def test_rounding_is_not_told_of(self):
        logits = torch.randn(64, 1000)
        for dtype in torch.float32, torch.bfloat16, torch.float16:
            x = logits.log_softmax(-1).to(dtype)
            for reduction in "sum", "batchmean", "mean", "none":
                with warnings.catch_warnings(record=True) as given:
                    warnings.simplefilter("always")
                    kldiv.kl_div(x, logits.softmax(-1).to(dtype), reduction=reduction, dim=-1 if reduction == "none" else None)
                    kldiv.kl_div(x, x, log_target=True, dim=0, reduction="none")
                    kldiv.kl_div(x, logits.softmax(-1), reduction=reduction, dim=-1 if reduction == "none" else None)
                    kldiv.kl_div((logits / 20).log_softmax(-1).to(dtype), logits.to(dtype), target_space="logit", temperature=20.0,
                                 scale="temperature_squared", reduction=reduction, dim=-1)
                self.assertFalse([w for w in given if "input_space=prob" in str(w.message)], (dtype, reduction))

    def test_partial_results_of_tensors(self):
        x, t = self.operands((10, 6), torch.bfloat16)
        merged = kldiv.partial(x[:4], t[:4], dim=1) + kldiv.partial(x[4:], t[4:], dim=1)
        self.assertEqual(merged.dtype, "bfloat16")
        self.assertEqual(merged.loss("mean"), kldiv.kl_div(x, t, dim=1).item())


if __name__ == "__main__":
    unittest.main()
