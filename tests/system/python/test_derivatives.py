"""Second derivatives, learned weights and temperatures, autocast, and what autograd cannot have: random calls."""
import itertools
import random
import unittest
import warnings

import numpy as np

import kldiv

try:
    import torch
    import torch.nn.functional as F
    from torch.autograd import forward_ad, grad, gradcheck, gradgradcheck
except ImportError:
    torch = None
try:
    import pandas
except ImportError:
    pandas = None


@unittest.skipUnless(torch, "python3-torch is not installed")
class Derivatives(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        torch.manual_seed(1)
        self.rng = random.Random(1)

    def operand(self, shape, space, dtype=None):
        z = torch.randn(shape, dtype=torch.float64)
        values = {"log_prob": z.log_softmax(-1), "logit": z, "prob": z.softmax(-1)}[space]
        return values.to(dtype or torch.float64).requires_grad_()

    def random_call(self):
        """Operands and options, whose loss has more than no place left."""
        rng = self.rng
        shape = rng.choice([(3, 4), (2, 3, 2), (5,)])
        spaces = [rng.choice(["log_prob", "prob", "logit"]) for _ in range(2)]
        options = {"input_space": spaces[0], "target_space": spaces[1], "base": rng.choice(["e", 2]),
                   "reduction": rng.choice(["mean", "sum", "none", "batchmean"]),
                   "compat": rng.choice(["pytorch", "oneflow", "math"])}
        if rng.random() < 0.5:
            options["dim"] = rng.choice([-1, 0])
        left = [n for i, n in enumerate(shape) if i != options.get("dim", len(shape)) % (len(shape) + (options.get("dim") is None))]
        if "logit" in spaces and rng.random() < 0.7:
            options["temperature"] = rng.choice([0.5, 2.0])
            options["scale"] = rng.choice(["none", "temperature_squared"])
        options.update(rng.choice([{}, {}, {"divergence": "reverse"}, {"divergence": "js", "beta": 0.3},
                                   {"divergence": "skew", "alpha": 0.3}]))
        if rng.random() < 0.5:
            options["weight"] = torch.rand(left, dtype=torch.float64) + 0.1
        if rng.random() < 0.5:
            options["mask"] = torch.rand(left) < 0.7
            options["mask"].view(-1)[0] = True
        shapes = [shape, shape]
        if rng.random() < 0.3:
            options["broadcast"], shapes[0] = True, shape[1:]
        return [self.operand(*each) for each in zip(shapes, spaces)], options

    def test_weights_and_masks_of_other_kinds(self):
        """Of numpy in odd layouts, pandas and lists, also if they are changed before backward."""
        kinds = {"array": np.array, "reversed": lambda v: np.array(v)[::-1].copy()[::-1], "list": np.ndarray.tolist,
                 "big-endian": lambda v: v.astype(v.dtype.newbyteorder(">")), "read-only": lambda v: np.frombuffer(v.tobytes(), v.dtype)}
        if pandas:
            kinds["pandas"] = pandas.Series
        weight, mask = self.rng.choices([0.5, 1.0, 2.0], k=6), [True, False, True, True, False, True]
        for (name, kind), order, reduction in itertools.product(kinds.items(), (1, 2), ("mean", "none")):
            found = []
            for own in kind, torch.from_numpy:
                x, t = self.operand((6,), "log_prob"), torch.linspace(0.1, 0.9, 6, dtype=torch.float64).requires_grad_()
                x = (x.detach() * 0 - 1).requires_grad_()
                options = {"weight": own(np.array(weight)), "mask": own(np.array(mask))}
                loss = kldiv.kl_div(x, t, reduction=reduction, **options).sum()
                if name in ("array", "reversed", "list", "pandas"):
                    for value in options.values() if own is kind else ():
                        value[0] = 0
                first = grad(loss, t, create_graph=order == 2)[0]
                found.append(grad(first.sum(), t)[0] if order == 2 else first)
            torch.testing.assert_close(*found, msg=lambda text: f"{name} {order} {reduction}: {text}")

    def test_second_derivatives(self):
        n = 0
        for number in range(90):
            (x, t), options = self.random_call()

            def call(a, b):
                return kldiv.kl_div(a, b, **options)

            upstream = torch.rand_like(call(x, t))
            plain, differentiable = (grad(call(x, t), [x, t], upstream, create_graph=graph) for graph in (False, True))
            torch.testing.assert_close(plain, tuple(g.detach() for g in differentiable), rtol=1e-9, atol=1e-11,
                                       msg=lambda text: f"{options}: {text}")
            self.assertTrue(gradcheck(call, (x, t)), options)
            self.assertTrue(gradgradcheck(call, (x, t)), options)

    def test_second_derivatives_are_those_of_torch(self):
        for dtype in torch.float64, torch.float32:
            x, t = self.operand((3, 4), "log_prob", dtype), self.operand((3, 4), "prob", dtype)
            hessians = [torch.autograd.functional.hessian(lambda a, b: f(a, b, reduction="sum"), (x, t))
                        for f in (kldiv.kl_div, F.kl_div)]
            torch.testing.assert_close(*hessians)
            self.assertGreater(hessians[0][1][1].abs().sum(), 0)
            penalties = []
            for f in kldiv.kl_div, F.kl_div:
                z = torch.arange(6, dtype=dtype).reshape(2, 3).requires_grad_()
                first, = grad(f(z.log_softmax(-1), torch.full_like(z, 1 / 3), reduction="batchmean"), z, create_graph=True)
                (first ** 2).sum().backward()
                penalties.append(z.grad)
            torch.testing.assert_close(*penalties)

    def test_targets_without_mass(self):
        """One-hot targets, masked logits: the derivative by the input is the library's, also under create_graph."""
        inf = float("inf")
        inputs = {"log_prob": ([-1.0, -3.0, -2.0], [-1.0, -inf, -2.0]), "prob": ([0.5, 0.2, 0.3], [0.5, 0.0, 0.5]),
                  "logit": ([1.0, -3.0, 2.0], [1.0, -inf, 2.0])}
        targets = {"prob": [0.25, 0.0, 0.75], "log_prob": [-1.0, -inf, -0.5], "logit": [0.0, -inf, 1.0]}
        n = 0
        for (space, both), (target_space, t), compat in itertools.product(inputs.items(), targets.items(),
                                                                          ["pytorch", "oneflow", "math"]):
            for values in both:
                x = torch.tensor([values], dtype=torch.float64, requires_grad=True)
                options = {"input_space": space, "target_space": target_space, "compat": compat, "reduction": "sum", "dim": -1}
                loss = kldiv.kl_div(x, torch.tensor([t], dtype=torch.float64), **options)
                if loss.isnan():
                    continue
                plain, = grad(loss, x, retain_graph=True)
                differentiable, = grad(loss, x, create_graph=True)
                torch.testing.assert_close(differentiable.detach(), plain, msg=lambda text: f"{options} {values}: {text}")
                temperature = torch.ones((), dtype=torch.float64, requires_grad=True)
                if "logit" in (space, target_space):
                    again = kldiv.kl_div(x, torch.tensor([t], dtype=torch.float64), temperature=temperature, **options)
                    torch.testing.assert_close(again, loss)
                n += 1
        self.assertGreater(n, 20)

    def test_probabilities_of_0_under_create_graph(self):
        """First derivatives are those without it, bit by bit; the second ones are numbers."""
        operands = [([0.0, 1.0], [0.0, 1.0]), ([0.0, 0.5, 0.5], [0.3, 0.3, 0.4]), ([0.5, 0.5], [0.0, 1.0])]
        divergences = [{"divergence": name} for name in ("forward", "reverse", "js", "skew")]
        for (x, t), divergence, compat in itertools.product(operands, divergences, ["pytorch", "oneflow", "math"]):
            both = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, t)]
            loss = kldiv.kl_div(*both, input_space="prob", compat=compat, reduction="sum", **divergence)
            plain, first = (grad(loss, both, create_graph=graph, retain_graph=True) for graph in (False, True))
            for a, b in zip(plain, first):
                self.assertEqual(a.numpy().tobytes(), b.detach().numpy().tobytes(), (x, t, divergence, compat))
            if compat == "math" and loss.isfinite():
                second = grad(first[0][x.index(0.5) if 0.5 in x else 1], both, allow_unused=True)
                self.assertFalse(any(v is not None and v.isnan().any() for v in second), (x, t, divergence))

    def test_temperatures_beside_logits_of_no_probability(self):
        inf = float("inf")
        a, b = (torch.tensor([[v, 2.0, -inf]], dtype=torch.float64) for v in (1.0, 0.0))
        for options in [{"compat": "math"}, *({"divergence": name, "compat": compat} for name in ("js", "skew")
                                              for compat in ("pytorch", "oneflow", "math"))]:
            def loss(temperature):
                return kldiv.kl_div(a, b, temperature=temperature, input_space="logit", target_space="logit", dim=-1,
                                    reduction="sum", **options)
            temperature = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
            self.assertTrue(gradcheck(loss, temperature), options)

    def test_learned_weights_and_temperatures(self):
        for number in range(60):
            (x, t), options = self.random_call()
            value = kldiv.kl_div(x, t, **options)
            learned = [name for name in ("weight", "temperature") if name in options]
            if not learned:
                continue
            tensors = [torch.as_tensor(options[name], dtype=torch.float64).requires_grad_() for name in learned]

            def call(*values):
                return kldiv.kl_div(x, t, **{**options, **dict(zip(learned, values))})

            torch.testing.assert_close(call(*tensors), value, rtol=1e-11, atol=1e-12)
            self.assertTrue(gradcheck(call, tensors), options)
        try:
            import pandas
            a, b = pandas.Series([-1.0, -2.0], ["a", "b"]), pandas.Series([0.2, 0.8], ["b", "a"])
            loss = kldiv.kl_div(a, b, weight=torch.ones(2, requires_grad=True), reduction="sum")
            self.assertAlmostEqual(loss.item(), kldiv.kl_div(a, b, reduction="sum"), 12)
        except ImportError:
            print("python3-pandas is not installed: labels beside a learned weight are NOT TESTED")
        weight = torch.ones(3, requires_grad=True)
        for refused in (lambda: kldiv.value_and_grad([-1.0] * 3, [1.0] * 3, weight=weight),
                        lambda: kldiv.partial([-1.0] * 3, [1.0] * 3, weight=weight),
                        lambda: kldiv.Client().kl_div([-1.0] * 3, [1.0] * 3, weight=weight)):
            self.assertRaisesRegex(ValueError, "detach", refused)
        kldiv.kl_div([-1.0] * 3, [1.0] * 3, weight=weight).backward()
        self.assertIsNotNone(weight.grad)
        with torch.no_grad():
            self.assertFalse(kldiv.kl_div(t, t, weight=weight[0].double()).requires_grad)

    def test_autocast(self):
        dtypes = torch.float64, torch.float32, torch.float16, torch.bfloat16
        torch_2 = int(torch.__version__.split(".")[0]) >= 2
        for low in [torch.bfloat16, torch.float16][:1 + torch_2]:
            for a, b in itertools.product(dtypes, dtypes):
                x, t = self.operand((3, 4), "log_prob", a), self.operand((3, 4), "prob", b)
                with torch.autocast("cpu", low):
                    losses = [f(x, t, reduction="sum") for f in (kldiv.kl_div, F.kl_div)]
                self.assertEqual(losses[0].dtype, losses[1].dtype)
                torch.testing.assert_close(*losses, rtol=2e-2 if torch.float16 in (a, b) else 1e-5, atol=1e-3)
                torch.testing.assert_close(*[grad(loss, [x, t]) for loss in losses], rtol=2e-2, atol=1e-2)

    def test_in_place_changes(self):
        """As F.kl_div: an error where the value is needed, else the right gradient."""
        for input_space in "log_prob", "logit":
            for target_needs in False, True:
                for reduction in "sum", "none":
                    x, t = self.operand((3, 4), "log_prob"), self.operand((3, 4), "prob").requires_grad_(target_needs)
                    changed = x * 1
                    loss = kldiv.kl_div(changed, t, input_space=input_space, reduction=reduction).sum()
                    changed.mul_(2)
                    if target_needs or input_space == "logit":
                        self.assertRaises(RuntimeError, loss.backward)
                    else:
                        loss.backward()
                        torch.testing.assert_close(x.grad, -t)
        weight = torch.ones(3, 4)
        loss = kldiv.kl_div(x, t, weight=weight, reduction="none").sum()
        weight.mul_(2)
        self.assertRaises(RuntimeError, loss.backward)

    def test_what_cannot_be_differentiated_so_says_it(self):
        x, t = self.operand((3, 4), "log_prob"), self.operand((3, 4), "prob")
        vmap = getattr(torch, "vmap", torch._vmap_internals.vmap)
        with forward_ad.dual_level(), self.assertRaisesRegex(Exception, "create_graph"):
            kldiv.kl_div(forward_ad.make_dual(x.detach(), x.detach()), t.detach())
        for name in "weight", "temperature":
            for numbers in (x.detach(), t.detach()), (x.detach().numpy(), t.detach().numpy()):
                with forward_ad.dual_level(), self.assertRaisesRegex(Exception, "create_graph"):
                    one = torch.ones((), dtype=torch.float64)
                    kldiv.kl_div(*numbers, **{name: forward_ad.make_dual(one, one)})
        with self.assertRaisesRegex(TypeError, "vmap"):
            vmap(lambda a: kldiv.kl_div(a, a, reduction="sum"))(x.detach())
        with self.assertRaisesRegex(TypeError, "vmap"):
            grad(kldiv.kl_div(x, t, reduction="sum"), x, torch.ones(3, dtype=torch.float64), is_grads_batched=True)
        with self.assertRaisesRegex(RuntimeError, "traced"):
            torch.jit.trace(lambda a: kldiv.kl_div(a, a), x.detach())
        with self.assertRaisesRegex(TypeError, "to_dense"):
            kldiv.kl_div(x.detach().to_sparse(), t.detach())
        with self.assertRaisesRegex(TypeError, "to_dense"):
            kldiv.kl_div(x.detach(), t.detach(), weight=t.detach().to_sparse())


if __name__ == "__main__":
    unittest.main()
