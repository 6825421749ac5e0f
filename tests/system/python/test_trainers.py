"""The tables of distillation.md: what trainers compute, by their formulas, is what it says."""
import itertools
import math
import unittest
import warnings

import kldiv

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

LOGITS = {"input_space": "logit", "target_space": "logit"}


@unittest.skipUnless(torch, "python3-torch is not installed")
class Trainers(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        torch.manual_seed(3)
        self.student = (3 * torch.randn(2, 5, 11, dtype=torch.float64)).requires_grad_()
        self.teacher = 3 * torch.randn(2, 5, 11, dtype=torch.float64)
        self.labels = torch.tensor([[1, -100, 3, 4, -100], [-100, 2, 2, 0, 1]])
        self.mask = self.labels != -100

    def check(self, ours, theirs, constant=0.0):
        torch.testing.assert_close(ours + constant, theirs, rtol=1e-11, atol=1e-13)
        self.assertGreater(abs(theirs.item()), 1e-3)
        grads = [torch.autograd.grad(loss, self.student, retain_graph=True) for loss in (ours, theirs)]
        torch.testing.assert_close(*grads, rtol=1e-11, atol=1e-13)

    def rows(self, temperature=1.0):
        """Logarithms of the student's and the teacher's probabilities, by token."""
        return ((v / temperature).log_softmax(-1) for v in (self.student, self.teacher))

    def jsd(self, beta, temperature):
        """Equation 1 of GKD, by element."""
        q, p = self.rows(temperature)
        if beta in (0, 1):
            return F.kl_div(p, q, reduction="none", log_target=True) if beta else F.kl_div(q, p, reduction="none", log_target=True)
        m = torch.stack([q + math.log(1 - beta), p + math.log(beta)]).logsumexp(0)
        of_p, of_q = (F.kl_div(m, v, reduction="none", log_target=True) for v in (p, q))
        return beta * of_p + (1 - beta) * of_q

    def test_trl_and_liger(self):
        for beta, temperature in itertools.product((0, 0.1, 0.5, 0.9, 1), (1.0, 2.0)):
            options = {**LOGITS, "divergence": "js", "beta": beta, "temperature": temperature}
            losses = self.jsd(beta, temperature)
            self.check(kldiv.kl_div(self.student, self.teacher, mask=self.mask, dim=-1, **options),
                       losses[self.mask].sum() / self.mask.sum())
            self.check(kldiv.kl_div(self.student, self.teacher, dim=-1, reduction="batchmean", **options), losses.sum() / 2)
            self.check(kldiv.kl_div(self.student, self.teacher, reduction="mean", **options), losses.mean())
            self.check(kldiv.kl_div(self.student, self.teacher, reduction="sum", **options), losses.sum())

    def test_distillm(self):
        q, p = self.rows()
        tokens = self.mask.sum()

        def mean(of_elements):
            return of_elements.sum(-1)[self.mask].sum() / tokens

        entropy = -mean(p.exp() * p)
        named = {**LOGITS, "dim": -1, "mask": self.mask}
        for lam in 0.1, 0.5:
            m = (lam * p.exp() + (1 - lam) * q.exp()).log()
            self.check(kldiv.kl_div(self.student, self.teacher, divergence="skew", alpha=lam, **named), -mean(p.exp() * m), entropy)
            m = (lam * q.exp() + (1 - lam) * p.exp()).log()
            self.check(kldiv.kl_div(self.teacher, self.student, divergence="skew", alpha=lam, **named),
                       -mean(q.exp() * m - q.exp() * q))
            of_q, of_p = mean(q.exp() * (q - m)), mean(p.exp() * (p - m))
            self.check(kldiv.kl_div(self.student, self.teacher, divergence="js", beta=1 - lam, **named),
                       lam * of_q + (1 - lam) * of_p)
        self.check(kldiv.kl_div(self.student, self.teacher, **named), -mean(p.exp() * q), entropy)
        self.check(kldiv.kl_div(self.student, self.teacher, divergence="reverse", **named), mean(q.exp() * (q - p)))

    def top(self, logits, k=4, temperature=1.0):
        """Indices of the k greatest logits, and logarithms of the student's and the teacher's probabilities there."""
        indices = logits.detach().topk(k).indices
        return (indices, *(v.gather(-1, indices) for v in self.rows(temperature)))

    def sparse(self, indices, values, **options):
        options = {"target_space": "log_prob", "mask": self.mask, **options}
        return kldiv.sparse_kl_div(self.student, indices, values, input_space="logit", **options)

    def mean(self, of_tokens):
        return of_tokens[self.mask].sum() / self.mask.sum()

    def test_top_k_of_trl(self):
        """With a tail: of the teacher's support for the forward divergence, of the student's for the reverse one."""
        for (beta, support), temperature in itertools.product([(0, self.teacher), (1, self.student)], (1.0, 2.0)):
            indices, q, p = self.top(support, temperature=temperature)
            rest_q, rest_p = (torch.log(-torch.expm1(v.logsumexp(-1, keepdim=True).clamp(max=-1e-7))) for v in (q, p))
            with_rest = [torch.cat(pair, -1) for pair in ((q, rest_q), (p, rest_p))]
            a, b = with_rest[::-1] if beta else with_rest
            ours = self.sparse(indices, p, divergence="js", beta=beta, temperature=temperature)
            self.check(ours, self.mean((b.exp() * (b - a)).sum(-1)))

    def test_top_k_of_both_renormalized(self):
        """TRL's without a tail, and NeMo-RL's by default: a dense call of the logits of the support."""
        for divergence, support in ("forward", self.teacher), ("reverse", self.student), ("reverse", self.teacher):
            indices, q, p = self.top(support)
            q, p = (v - v.logsumexp(-1, keepdim=True) for v in (q, p))
            a, b = (q, p) if divergence == "forward" else (p, q)
            self.check(kldiv.kl_div(self.student.gather(-1, indices), self.teacher.gather(-1, indices), dim=-1, mask=self.mask,
                                    divergence=divergence, **LOGITS), self.mean((b.exp() * (b - a)).sum(-1)))

    def test_top_k_of_nemo_rl(self):
        """Zero outside of the top k, forward: of the teacher's top logits alone."""
        indices, q, _ = self.top(self.teacher)
        logits = self.teacher.gather(-1, indices)
        p = logits.log_softmax(-1)
        self.check(self.sparse(indices, logits, target_space="logit", tail="drop"), self.mean((p.exp() * (p - q)).sum(-1)))

    def test_top_k_of_verl(self):
        """Losses of tokens that are negative, as the masses differ, become 0."""
        self.teacher[0] = self.student.detach()[0] / 2
        indices, q, p = self.top(self.teacher)
        losses = (p.exp() * (p - q)).sum(-1)
        self.assertTrue(losses[self.mask].min() < 0 < losses[self.mask].max())
        ours = self.sparse(indices, p, tail="ignore", reduction="none").clamp(min=0).sum() / self.mask.sum()
        self.check(ours, self.mean(losses.clamp(min=0)))
        self.check(self.sparse(indices, p, tail="ignore"), self.mean(losses))

    def test_hinton(self):
        student, teacher = (v.reshape(10, 11) for v in (self.student, self.teacher))
        for temperature in 2.0, 5.0:
            theirs = F.kl_div((student / temperature).log_softmax(-1), (teacher / temperature).softmax(-1),
                              reduction="batchmean") * temperature ** 2
            self.check(kldiv.kl_div(student, teacher, reduction="batchmean", temperature=temperature,
                                    scale="temperature_squared", **LOGITS), theirs)


if __name__ == "__main__":
    unittest.main()
