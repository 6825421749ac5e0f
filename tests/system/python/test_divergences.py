"""Reverse, Jensen-Shannon and skewed divergences, and the square of the temperature: against their definitions in PyTorch;
by the service; as a module."""
import copy
import itertools
import math
import os
import pickle
import random
import subprocess
import sys
import unittest
import warnings

import numpy as np
from service import Server

import kldiv

try:
    import torch
except ImportError:
    torch = None

LOGITS = {"input_space": "logit", "target_space": "logit"}
DIVERGENCES = [{}, {"divergence": "forward"}, {"divergence": "reverse"}, {"divergence": "js"}, {"divergence": "js", "beta": 0.2},
               {"divergence": "js", "beta": 0}, {"divergence": "js", "beta": 1}, {"divergence": "skew"},
               {"divergence": "skew", "alpha": 0.7}, {"divergence": "skew", "alpha": 0}, {"divergence": "skew", "alpha": 1}]
WRONG = [("beta_unused", {"beta": 0.25}), ("beta_unused", {"beta": 0}), ("beta_unused", {"divergence": "skew", "beta": 0.25}),
         ("alpha_unused", {"alpha": 0.5}), ("alpha_unused", {"divergence": "js", "alpha": 0.0}),
         ("beta_invalid", {"divergence": "js", "beta": 1.5}), ("beta_invalid", {"divergence": "js", "beta": -0.1}),
         ("beta_invalid", {"divergence": "js", "beta": math.nan}), ("alpha_invalid", {"divergence": "skew", "alpha": 2}),
         ("divergence_invalid", {"divergence": "jeffreys"}), ("scale_invalid", {"scale": "temperature"}),
         ("temperature_unused", {"scale": "temperature_squared"})]


def kl(p, q):
    """By logarithms, of which none is infinite."""
    return p.exp() * (p - q)


def elements(q, p, divergence="forward", beta=0.5, alpha=0.1):
    """The definition, from logarithms of what input and target stand for."""
    if divergence == "js" and 0 < beta < 1:
        m = torch.logaddexp(p + math.log(beta), q + math.log(1 - beta))
        return beta * kl(p, m) + (1 - beta) * kl(q, m)
    if divergence == "skew" and alpha == 1:
        return 0 * (p + q)
    if divergence == "skew" and alpha > 0:
        return kl(p, torch.logaddexp(p + math.log(alpha), q + math.log(1 - alpha)))
    return kl(q, p) if divergence == "reverse" or (divergence == "js" and beta == 1) else kl(p, q)


def logarithm(values, space, temperature):
    return (values / temperature).log_softmax(-1) if space == "logit" else values.log() if space == "prob" else values


def reduced(losses, reduction, weight, mask):
    factor = torch.ones_like(losses) if weight is None else weight
    factor = factor if mask is None else torch.where(mask, factor, torch.zeros_like(factor))
    losses = losses * factor
    if reduction == "none":
        return losses
    if reduction == "batchmean":
        batch = losses.shape[0] if mask is None else mask.reshape(len(mask), -1).any(1).sum()
        return losses.sum() / batch
    return losses.sum() / factor.sum() if reduction == "mean" else losses.sum()


@unittest.skipUnless(torch, "python3-torch is not installed")
class Torch(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        torch.manual_seed(2)
        self.rng = random.Random(2)

    def logits(self, *shape, dtype=None):
        return (2 * torch.randn(shape, dtype=torch.float64)).to(dtype or torch.float64).requires_grad_()

    def random_call(self, options):
        """Operands in float64, the options of a call, and the loss by its definition from operands like them."""
        rng, shape = self.rng, self.rng.choice([(4, 7), (2, 3, 5), (6, 40), (1, 1), (3, 700)])
        spaces = [rng.choice(["log_prob", "prob", "logit"]) for _ in range(2)]
        options = {**options, "input_space": spaces[0], "target_space": spaces[1], "base": rng.choice(["e", 2]),
                   "reduction": rng.choice(["mean", "sum", "none", "batchmean"]), "dim": -1}
        if "logit" not in spaces and rng.random() < 0.5:
            del options["dim"]
        left = shape if "dim" not in options else shape[:-1]
        if "logit" in spaces and rng.random() < 0.7:
            options.update(temperature=rng.choice([0.5, 2.0, 3.0]), scale=rng.choice([None, "none", "temperature_squared"]))
        if rng.random() < 0.5:
            options["weight"] = torch.rand(left, dtype=torch.float64) + 0.1
        if rng.random() < 0.5:
            options["mask"] = torch.rand(left) < 0.7
            options["mask"].view(-1)[0] = True

        def expected(x, t):
            named = {name: options[name] for name in ("divergence", "beta", "alpha") if name in options}
            temperature = options.get("temperature", 1.0)
            losses = elements(*(logarithm(v, s, temperature) for v, s in zip((x, t), spaces)), **named)
            losses = losses.sum(-1) if "dim" in options else losses
            factor = temperature ** 2 if options.get("scale") == "temperature_squared" else 1.0
            factor /= math.log(2) if options["base"] == 2 else 1.0
            return reduced(losses * factor, options["reduction"], options.get("weight"), options.get("mask"))

        made = {"log_prob": lambda z: z.log_softmax(-1), "prob": lambda z: z.softmax(-1), "logit": lambda z: z}
        operands = [made[space](self.logits(*shape).detach()) for space in spaces]
        return operands, options, expected

    def test_values_and_gradients_are_those_of_the_definition(self):
        tolerances = {torch.float64: 1e-11, torch.float32: 3e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
        for options, dtype in itertools.product(DIVERGENCES * 12, tolerances):
            operands, options, expected = self.random_call(options)
            if torch.finfo(dtype).bits == 16:  # whose probabilities and derivatives have a smaller range
                operands = [v if (v < 0).any() else v.clamp(min=1e-2) for v in operands]
            operands = [v.to(dtype) for v in operands]
            found = []
            for function, own in (lambda x, t: kldiv.kl_div(x, t, **options), dtype), (expected, torch.float64):
                x, t = (v.to(own).requires_grad_() for v in operands)
                loss = function(x, t)
                upstream = torch.linspace(0.5, 1.5, loss.numel(), dtype=loss.dtype).reshape(loss.shape)
                found.append((loss, *torch.autograd.grad(loss, [x, t], upstream)))
            for ours, theirs in zip(*found):
                self.assertEqual(ours.dtype, dtype)
                scale = max(1.0, float(theirs.detach().abs().max()))
                torch.testing.assert_close(ours.double() / scale, theirs / scale, rtol=0, atol=tolerances[dtype],
                                           msg=lambda text: f"{options}: {text}")

    def test_gradients_by_differences(self):
        for options in DIVERGENCES:
            x, t = self.logits(2, 3), self.logits(2, 3)
            for more in {}, {"dim": -1, "temperature": 2.0, "scale": "temperature_squared"}:
                self.assertTrue(torch.autograd.gradcheck(lambda a, b: kldiv.kl_div(a, b, **LOGITS, **options, **more), (x, t)))

    def test_other_calls_give_the_same(self):
        for options in DIVERGENCES:
            x, t = self.logits(6, 9), self.logits(6, 9)
            named = {**LOGITS, **options, "dim": -1, "temperature": 2.0, "scale": "temperature_squared"}
            loss = kldiv.kl_div(x, t, **named)
            arrays = [v.detach().numpy() for v in (x, t)]
            value, grads = kldiv.value_and_grad(*arrays, ("input", "target"), **named)
            self.assertEqual((value, kldiv.kl_div(*arrays, **named)), (loss.item(), loss.item()))
            for ours, theirs in zip(torch.autograd.grad(loss, [x, t]), grads.values()):
                self.assertEqual(ours.numpy().tobytes(), theirs.tobytes())
            self.assertEqual(kldiv.step(*arrays, **named), 1)
            parts = [kldiv.partial(*(v[i:i + 2] for v in arrays), **named) for i in (4, 0, 2)]
            self.assertEqual(sum(pickle.loads(pickle.dumps(parts))).loss("mean"), loss.item())

    def test_ends(self):
        x, t = self.logits(5, 8), self.logits(5, 8)
        for more in {}, {"dim": -1, "temperature": 3.0}:
            losses = [kldiv.kl_div(x, t, **LOGITS, **options, **more)
                      for options in ({}, {"divergence": "js", "beta": 0}, {"divergence": "skew", "alpha": 0})]
            self.assertEqual(len({loss.item() for loss in losses}), 1)
            exchanged = kldiv.kl_div(t, x, **LOGITS, **more).item()
            for options in {"divergence": "reverse"}, {"divergence": "js", "beta": 1.0}:
                self.assertEqual(kldiv.kl_div(x, t, **LOGITS, **options, **more).item(), exchanged)
            self.assertLess(abs(kldiv.kl_div(x, t, **LOGITS, divergence="skew", alpha=1, **more).item()), 1e-15)
        self.assertEqual(kldiv.kl_div(x, t, divergence="js", **LOGITS), kldiv.kl_div(x, t, divergence="js", beta=0.5, **LOGITS))
        self.assertEqual(kldiv.kl_div(x, t, divergence="skew", **LOGITS), kldiv.kl_div(x, t, divergence="skew", alpha=0.1, **LOGITS))

    def test_without_mass(self):
        """What no probability is given to: finite, also under create_graph."""
        inf = float("inf")
        x = torch.tensor([[0.0, -inf, 1.0, -inf]], dtype=torch.float64, requires_grad=True)
        t = torch.tensor([[0.0, 2.0, -inf, -inf]], dtype=torch.float64, requires_grad=True)
        for options in {"divergence": "js"}, {"divergence": "js", "beta": 0.2}, {"divergence": "skew"}:
            loss = kldiv.kl_div(x, t, dim=-1, **LOGITS, **options)
            p, q = t.detach().softmax(-1), x.detach().softmax(-1)
            named = {"beta": 0.5, "alpha": 0.1, **options}
            share = named["beta" if options["divergence"] == "js" else "alpha"]
            m = share * p + (1 - share) * q
            of_p, of_q = (torch.where(v > 0, v * (v / m).log(), torch.zeros_like(v)).sum() for v in (p, q))
            expected = share * of_p + (1 - share) * of_q if options["divergence"] == "js" else of_p
            torch.testing.assert_close(loss.detach(), expected)
            plain, differentiable = (torch.autograd.grad(loss, [x, t], retain_graph=True, create_graph=graph)
                                     for graph in (False, True))
            for a, b in zip(plain, differentiable):
                self.assertTrue(a.isfinite().all())
                torch.testing.assert_close(a, b.detach())
            x_prob, t_prob = (v.detach().softmax(-1).requires_grad_() for v in (x, t))
            again = kldiv.kl_div(x_prob, t_prob, dim=-1, input_space="prob", **options)
            torch.testing.assert_close(again, loss)
            plain, differentiable = (torch.autograd.grad(again, [x_prob, t_prob], retain_graph=True, create_graph=graph)
                                     for graph in (False, True))
            for a, b in zip(plain, differentiable):  # of both at once there is none
                torch.testing.assert_close(a[:, :3], b[:, :3].detach())

    def test_both_paths_agree(self):
        """The library, and operations of PyTorch: derivatives under create_graph, losses under a weight that is learned."""
        for options in DIVERGENCES:
            x, t = self.logits(3, 5), self.logits(3, 5)
            loss = kldiv.kl_div(x, t, dim=-1, temperature=2.0, scale="temperature_squared", **LOGITS, **options)
            plain, differentiable = (torch.autograd.grad(loss, [x, t], retain_graph=True, create_graph=graph)
                                     for graph in (False, True))
            torch.testing.assert_close(plain, tuple(v.detach() for v in differentiable), rtol=1e-11, atol=1e-13)
        values = torch.tensor([0, 0.5, 1e-310, math.nan, math.inf, -0.5], dtype=torch.float64)
        q, p = values.repeat(6), values.repeat_interleave(6)
        weight = torch.ones(36, dtype=torch.float64, requires_grad=True)
        for options, compat, spaces in itertools.product(DIVERGENCES[3:], ["pytorch", "oneflow"],
                                                         itertools.product(["prob", "log_prob"], repeat=2)):
            if options.get("beta") in (0, 1) or options.get("alpha") == 0:  # no mixtures
                continue
            operands = [v if space == "prob" else v.log() for v, space in zip((q, p), spaces)]
            ours, theirs = (kldiv.kl_div(*operands, input_space=spaces[0], target_space=spaces[1], reduction="none", compat=compat,
                                         weight=w, **options) for w in (weight.detach(), weight))
            torch.testing.assert_close(ours, theirs.detach(), rtol=1e-12, atol=1e-15, equal_nan=True,
                                       msg=lambda text: f"{options} {spaces}: {text}")

    def test_in_place_changes(self):
        for options in DIVERGENCES[2:]:
            x, t = self.logits(3, 4).log_softmax(-1), self.logits(3, 4).softmax(-1).detach()
            loss = kldiv.kl_div(x * 1, t, reduction="sum", **options)
            changed = x * 1
            again = kldiv.kl_div(changed, t, reduction="sum", **options)
            changed.mul_(2)
            self.assertRaises(RuntimeError, again.backward)
            loss.backward()

    def test_shares_are_not_learned(self):
        x, t = self.logits(3), self.logits(3)
        for name, divergence in ("beta", "js"), ("alpha", "skew"):
            share = torch.tensor(0.25)
            options = {"divergence": divergence, **LOGITS}
            self.assertEqual(kldiv.kl_div(x, t, **{name: share}, **options), kldiv.kl_div(x, t, **{name: 0.25}, **options))
            share.requires_grad_()
            for call in kldiv.kl_div, kldiv.value_and_grad, kldiv.Client("http://127.0.0.1:9", retries=0).kl_div:
                with self.assertRaisesRegex(ValueError, f"{name}.detach"):
                    call(x.detach(), t.detach(), **{name: share}, **options)

    def test_module(self):
        options = {"input_space": "logit", "target_space": "logit", "dim": -1, "divergence": "js", "beta": 0.3}
        temperature = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
        criterion = kldiv.KLDivLoss(temperature=temperature, scale="temperature_squared", **options)
        self.assertIsInstance(criterion, torch.nn.Module)
        self.assertIs(list(criterion.parameters())[0], temperature)
        self.assertIn("divergence='js', beta=0.3", repr(criterion))
        x, t, mask = self.logits(3, 5), self.logits(3, 5), torch.tensor([True, False, True])
        weight = torch.rand(3)
        loss = copy.deepcopy(criterion)(x, t, weight, mask)
        expected = kldiv.kl_div(x, t, temperature=2.0, scale="temperature_squared", weight=weight, mask=mask, **options)
        torch.testing.assert_close(loss, expected)
        self.assertTrue(torch.autograd.gradcheck(lambda _: criterion(x, t), (temperature,)))
        x, t = x.log_softmax(-1), t.softmax(-1)
        for arguments in (None, None, "batchmean"), (False,), (None, None, "none", True):
            torch.testing.assert_close(kldiv.KLDivLoss(*arguments)(x, t), torch.nn.KLDivLoss(*arguments)(x, t))
        self.assertRaises(TypeError, kldiv.KLDivLoss, betta=0.5)


class Errors(unittest.TestCase):
    def test_without_pytorch(self):
        """The module, of arrays, where PyTorch is not installed."""
        code = ("import sys; sys.modules['torch'] = None\nimport kldiv\n"
                "criterion = kldiv.KLDivLoss(reduction='sum', divergence='skew', alpha=0.25, input_space='prob')\n"
                "print(repr(criterion([0.0, 1.0], [0.5, 0.5])), 'torch' in str(type(criterion).__mro__))")
        printed = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, env=os.environ).stdout.decode()
        loss, is_torch = printed.split()
        self.assertAlmostEqual(float(loss.split("(")[-1].strip(")")), 0.5 * math.log(4) + 0.5 * math.log(0.5 / 0.875), 14)
        self.assertEqual(is_torch, "False")

    def test_codes_and_texts(self):
        calls = [kldiv.kl_div, kldiv.value_and_grad, kldiv.partial, kldiv.step]
        if torch:
            calls.append(lambda x, t, **options: kldiv.kl_div(torch.tensor(x), torch.tensor(t), **options))
        for code, options in WRONG:
            for call in calls:
                with self.assertRaises(kldiv.LossError, msg=options) as raised:
                    call([-1.0, -1.0], [0.5, 0.5], **options)
                self.assertEqual(raised.exception.code, code)
        self.assertIn("beta is of divergence=js alone", str(self.error_of(beta=0)))
        self.assertEqual(str(self.error_of(beta=0)), str(self.error_of(beta=0.25)))
        self.assertEqual(str(self.error_of(alpha=0)), str(self.error_of(alpha=0.25)))
        self.assertIn("forward, reverse, js, skew", str(self.error_of(divergence=2)))
        for name, divergence in ("beta", "js"), ("alpha", "skew"):
            for value in "0.5", True, [0.5], np.ones(2), b"1":
                for call in *calls, kldiv.Client("http://127.0.0.1:9", retries=0).kl_div:
                    with self.assertRaisesRegex(TypeError, f"{name} must be a number"):
                        call([-1.0], [0.5], divergence=divergence, **{name: value})

    def error_of(self, **options):
        with self.assertRaises(kldiv.LossError) as raised:
            kldiv.kl_div([-1.0], [0.5], **options)
        return raised.exception


class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.server = Server("--shared-memory", "kldiv_")
        cls.addClassCleanup(cls.server.stop)
        cls.client = kldiv.Client(cls.server.url)

    def setUp(self):
        warnings.simplefilter("ignore")
        self.x, self.t = np.random.default_rng(4).standard_normal((2, 6, 9))

    def test_the_bits_of_this_process(self):
        for options in DIVERGENCES:
            named = {**LOGITS, **options, "dim": -1, "temperature": 2.0, "scale": "temperature_squared"}
            wrt = ["input", "target"]
            ours, theirs = (call(self.x, self.t, wrt, **named) for call in (kldiv.value_and_grad, self.client.value_and_grad))
            self.assertEqual(ours[0], theirs[0])
            self.assertEqual([ours[1][name].tobytes() for name in wrt], [theirs[1][name].tobytes() for name in wrt])
            parts = [self.client.partial(self.x[i:i + 2], self.t[i:i + 2], **named) for i in (0, 2, 4)]
            total, divisor = (math.fsum(v for part in parts for v in part[i]) for i in (0, 1))
            self.assertEqual(total / divisor, ours[0])
            none = {"beta": None, "alpha": None, "scale": None, **named}
            self.assertEqual(self.client.kl_div(self.x, self.t, **none), ours[0])

    def test_shared_memory(self):
        with self.client.region(1 << 16) as region:
            shared = region.array(self.x), region.array(self.t)
            for options in DIVERGENCES:
                self.assertEqual(self.client.kl_div(*shared, reduction="sum", **LOGITS, **options),
                                 kldiv.kl_div(self.x, self.t, reduction="sum", **LOGITS, **options))

    def test_errors_are_those_of_this_process(self):
        for code, options in WRONG:
            with self.assertRaises(kldiv.ServiceError, msg=options) as raised:
                self.client.kl_div([-1.0, -1.0], [0.5, 0.5], **options)
            self.assertEqual((raised.exception.status, raised.exception.code), (422, code), options)
            name = code.split("_")[0]
            if name in options:
                self.assertEqual(raised.exception.pointer, name)

    def test_diagnosis(self):
        """Where target has no mass reverse is infinite, and Jensen-Shannon's is not."""
        for divergence, found in ("reverse", True), ("js", False):
            with warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always")
                self.client.kl_div([[0.5, 0.5]], [[1.0, 0.0]], input_space="prob", reduction="sum", diagnose=True, compat="math",
                                   divergence=divergence)
            self.assertEqual(any("finite" in str(w.message) for w in given), found, [str(w.message) for w in given])


if __name__ == "__main__":
    unittest.main()
