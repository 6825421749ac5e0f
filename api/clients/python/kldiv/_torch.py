"""The loss in PyTorch's autograd. Imported when a tensor comes."""
from __future__ import annotations

import math
from typing import Any

import torch

from . import _arrays, _library
from ._call import Call, axes_of, number
from ._labels import align
from ._partial import Partial

REDUCTIONS = {number: name for name, number in _library.REDUCTIONS.items() if name != "elementwise_mean"}
FORWARD, REVERSE, JS, SKEW = _library.DIVERGENCES.values()
ENDS = {(JS, 0.0): FORWARD, (JS, 1.0): REVERSE, (SKEW, 0.0): FORWARD}
NO_LOGIT = -1e300
LOG_SPACES = ("log_prob", "logit")
PADDING = -1
LEARNED = ("weight", "temperature", "log_normalizer")
READERS = {"weight": _arrays.read, "mask": _arrays.read_mask, "indices": _arrays.read_indices, "log_normalizer": _arrays.read}


class Formula:
    """The loss by operations that autograd differentiates any number of times, in float64: the slow path of second
    derivatives, and of weights and temperatures that are learned. `call` has checked the options."""

    def __init__(self, call: Call, options: dict[str, Any]) -> None:
        self.call, self.options = call, options

    def axes(self, ndim: int, default: Any = None) -> list[int]:
        dim = self.options["dim"]
        return [axis % max(1, ndim) for axis in (default if dim is None else axes_of(dim))]

    def log_softmax(self, logits: Any, temperature: Any, kept: Any) -> Any:
        logits = divided(logits, temperature)
        if kept is not None:  # what is masked out is not in the softmax
            logits = torch.where(kept, logits, torch.full_like(logits, NO_LOGIT))
        return logits - torch.logsumexp(logits, self.axes(logits.ndim, [-1]), keepdim=True) if logits.ndim else logits * 0

    def empty(self, t: Any, is_log: bool, is_logit: bool) -> Any:
        """Where the target has no mass and nothing counts, by `compat`; None if the formula holds everywhere."""
        compat = self.options["compat"]
        if compat == "pytorch" or (is_log and compat == "oneflow" and not is_logit):
            return None
        return t == -math.inf if is_log else t == 0 if compat == "math" else (t <= 0) | t.isnan()

    def elements(self, x: Any, t: Any, temperature: Any, kept: Any) -> Any:
        input_space, target_space = self.options["input_space"] or "log_prob", self.options["target_space"]
        target_space = target_space or ("log_prob" if self.options["log_target"] else "prob")
        divergence, share = self.divergence()
        if divergence in (JS, SKEW):
            of_target = self.probability(t, target_space, temperature, kept)
            of_input = self.probability(x, input_space, temperature, kept)
            return self.mixed(of_target, of_input, share, divergence == JS)
        if divergence == REVERSE:
            return self.forward(t, x, (target_space, input_space), temperature, kept)
        return self.forward(x, t, (input_space, target_space), temperature, kept)

    def divergence(self) -> tuple[int, float]:
        """The one that applies, as mixtures of one operand alone are that operand; and the target's share."""
        options = self.call.options
        share = options.beta or options.alpha
        return ENDS.get((options.divergence, share), options.divergence), share

    def probability(self, values: Any, space: str, temperature: Any, kept: Any) -> tuple[Any, Any]:
        """p, and p log p, which is 0 where p is. What is no probability is NaN."""
        if space == "prob":
            filled = torch.where(values == 0, torch.ones_like(values), values)
            log_p = filled.log()
            return values + 0 * log_p, filled * log_p
        log_p = self.log_softmax(values, temperature, kept) if space == "logit" else values
        log_p = torch.where(log_p == -math.inf, torch.full_like(log_p, NO_LOGIT), log_p)
        p = log_p.exp()
        return p + 0 * p, p * log_p

    @staticmethod
    def mixed(of_target: tuple[Any, Any], of_input: tuple[Any, Any], share: float, is_js: bool) -> Any:
        (p, p_log_p), (q, q_log_q) = of_target, of_input
        mean = share * p + (1 - share) * q
        log_mean = torch.where(mean == 0, torch.ones_like(mean), mean).log()
        losses = p_log_p - p * log_mean
        return share * losses + (1 - share) * (q_log_q - q * log_mean) if is_js else losses

    def forward(self, x: Any, t: Any, spaces: tuple[str, str], temperature: Any, kept: Any) -> Any:
        is_log = spaces[1] != "prob"
        t = self.log_softmax(t, temperature, kept) if spaces[1] == "logit" else t
        empty = self.empty(t, is_log, spaces[1] == "logit")

        def filled(values: Any, number: float) -> Any:
            return values if empty is None else torch.where(empty, torch.full_like(values, number), values)

        if spaces[0] == "logit":
            log_q = filled(self.log_softmax(x, temperature, kept), 0.0)
        else:
            log_q = filled(x, 1.0).log() if spaces[0] == "prob" else filled(x, 1.0)
        if spaces[1] == "logit":  # a logit of -inf is a probability of 0
            none = t == -math.inf
            log_t = torch.where(none, torch.zeros_like(t), t)
            losses = torch.where(none, torch.zeros_like(t), log_t.exp() * log_t) - t.exp() * log_q
        else:
            t = filled(t, 0.0 if is_log else 1.0)
            losses = t.exp() * (t - log_q) if is_log else torch.xlogy(t, t) - t * log_q
        return filled(losses, 0.0)

    def __call__(self, input: Any, target: Any, weight: Any, temperature: Any) -> Any:
        x, t = torch.broadcast_tensors(input.double(), target.double())
        summed, mask, kept = self.axes(x.ndim, []), self.options["mask"], None
        if mask is not None:
            mask = mask.bool().expand([n for i, n in enumerate(x.shape) if i not in summed])
            kept = mask
            for axis in sorted(summed):
                kept = kept.unsqueeze(axis)
            x, t = (torch.where(kept, v, torch.ones_like(v)) for v in (x, t))
        losses = self.elements(x, t, temperature, kept)
        losses = losses.sum(summed) if summed else losses
        if str(self.options["base"]) == "2":
            losses = losses / math.log(2)
        if self.call.options.scale and temperature is not None:
            losses = losses * temperature ** 2
        factor = torch.ones_like(losses) if weight is None else weight.double().expand_as(losses)
        if mask is not None:
            factor = torch.where(mask, factor, torch.zeros_like(factor))
        return self.reduce(losses * factor, factor).to(getattr(torch, _library.DTYPE_NAMES[self.call.dtype]))

    def reduce(self, losses: Any, factor: Any) -> Any:
        reduction = REDUCTIONS[self.call.reduction]
        if reduction == "none":
            return losses
        if reduction == "batchmean":
            return losses.sum() / Partial(self.call.partial_state()).divisor("batchmean")[0]
        return losses.sum() / factor.sum() if reduction == "mean" else losses.sum()


# How far rounded probabilities may sum to more than 1, as the library has it.
EXCESS = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


class SparseFormula(Formula):
    """The same with a sparse target: of the elements that it names, and of the rest."""

    def __call__(self, input: Any, target: Any, weight: Any, temperature: Any) -> Any:
        options, indices, normalizer = self.options, self.options["indices"].long(), self.options["log_normalizer"]
        x, values, mask = input.double(), target.double(), options["mask"]
        normalizer = 0.0 if normalizer is None else normalizer.double().unsqueeze(-1)
        if mask is not None:  # rows that are masked may hold anything
            kept = mask.bool().expand(x.shape[:-1]).unsqueeze(-1)
            x, values = (torch.where(kept, v, torch.ones_like(v)) for v in (x, values))
            indices = torch.where(kept, indices, torch.zeros_like(indices))
            normalizer = torch.where(kept, normalizer, torch.zeros_like(x[..., :1]))
        left_out = self.left_out(indices)
        is_log_p, is_log_q = options["target_space"] in LOG_SPACES or options["log_target"], options["input_space"] != "prob"
        p = self.of_target(torch.where(left_out, torch.ones_like(values), values), left_out, normalizer, temperature, is_log_p)
        q, rest_q = self.of_input(x, indices, left_out, temperature)
        if options["tail"] != "ignore":
            rest_p = rest_of(1 - (p.exp() if is_log_p else p).sum(-1, keepdim=True), is_log_p)
            excess, none = EXCESS[target.dtype], zero_of(rest_p, is_log_p)
            is_rounding = (rest_q == zero_of(rest_q, is_log_q)) & (rest_p <= (math.log(excess) if is_log_p else excess))
            p = torch.cat([p, torch.where(is_rounding | (options["tail"] == "drop"), none, rest_p)], -1)
            q = torch.cat([q, rest_q], -1)
        spaces = ("log_prob" if is_log else "prob" for is_log in (is_log_q, is_log_p))
        own = dict(zip(("input_space", "target_space"), spaces), dim=-1, compat="math", log_target=False)
        return Formula(self.call, {**options, **own})(q, p, weight, temperature)

    @staticmethod
    def left_out(indices: Any) -> Any:
        """Values that are of no element: padding, and those of an element that was named before in its row."""
        ordered, order = indices.sort(dim=-1, stable=True)
        again = torch.cat([torch.zeros_like(ordered[..., :1], dtype=torch.bool), ordered[..., 1:] == ordered[..., :-1]], -1)
        return torch.zeros_like(again).scatter(-1, order, again) | (indices == PADDING)

    def of_target(self, values: Any, left_out: Any, normalizer: Any, temperature: Any, is_log: bool) -> Any:
        """Probabilities of the elements that are named, or their logarithms."""
        if self.options["target_space"] == "logit":
            values = divided(values, temperature) - normalizer
        none = zero_of(values, is_log)
        values = torch.where(left_out, none, values)
        if self.options["tail"] != "drop":
            return values
        values = values - values.logsumexp(-1, keepdim=True) if is_log else values / values.sum(-1, keepdim=True)
        return torch.where(left_out, none, values)  # again, so that no derivative comes from there

    def of_input(self, x: Any, indices: Any, left_out: Any, temperature: Any) -> tuple[Any, Any]:
        """Those of the elements that are named, and that of all others."""
        space = self.options["input_space"]
        indices, n = torch.where(left_out, torch.zeros_like(indices), indices), x.shape[-1]
        others = torch.ones((*x.shape[:-1], n + 1), dtype=torch.bool)
        others = others.scatter(-1, torch.where(left_out, torch.full_like(indices, n), indices), False)[..., :n]
        q = self.log_softmax(x, temperature, None) if space == "logit" else x
        named = q.gather(-1, indices)
        named = torch.where(left_out, zero_of(named, space != "prob"), named)
        if space == "prob":
            return named, torch.where(others, q, torch.zeros_like(q)).sum(-1, keepdim=True)
        others &= q > -math.inf
        rest = torch.where(others, q, torch.full_like(q, NO_LOGIT)).logsumexp(-1, keepdim=True)
        none = ~others.any(-1, keepdim=True)
        return named, torch.where(none, zero_of(rest, True), rest)


def zero_of(like: Any, is_log: bool) -> Any:
    """A probability of 0, or its logarithm."""
    return torch.full_like(like, -math.inf if is_log else 0.0)


def rest_of(mass: Any, is_log: bool) -> Any:
    """What is left to many, or its logarithm: nothing, if rounding makes it negative."""
    none = mass <= 0
    return torch.where(none, zero_of(mass, is_log), torch.where(none, torch.ones_like(mass), mass).log() if is_log else mass)


def divided(logits: Any, temperature: Any) -> Any:
    """Logits over the temperature, whose derivative by it is 0 where a logit is -inf."""
    if temperature is None:
        return logits
    none = logits == -math.inf
    return torch.where(none, logits, torch.where(none, torch.zeros_like(logits), logits) / temperature)


def formula_of(call: Call, options: dict[str, Any]) -> Formula:
    return (SparseFormula if call.is_sparse else Formula)(call, options)


def formula_gradients(ctx: Any, tensors: tuple[Any, ...], needed: tuple[bool, ...], grad_output: Any) -> tuple[Any, ...]:
    """Those of the tensors that are needed, else None: of input, target, and what of LEARNED is given."""
    if not any(needed):
        return (None,) * len(needed)
    is_differentiable = torch.is_grad_enabled()
    with torch.enable_grad():
        views = [v if v is None else v.view_as(v) for v in tensors]
        options = {**ctx.options, **{name: v for name, v in zip(LEARNED, views[2:]) if v is not None}}
        loss = formula_of(ctx.call, options)(views[0], views[1], options["weight"], options["temperature"])
    wanted = [v for v, is_needed in zip(views, needed) if is_needed]
    found = iter(torch.autograd.grad(loss, wanted, grad_output, create_graph=is_differentiable, allow_unused=True))
    return tuple(next(found) if is_needed else None for is_needed in needed)


class _WithValues(torch.autograd.Function):  # type: ignore[misc]
    """Derivatives of the formula, which can be differentiated, with the values that the library gives them: also where an
    operand is 0 or rows are close."""

    @staticmethod
    def forward(ctx: Any, derivative: Any, values: Any) -> Any:
        return values

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> tuple[Any, ...]:
        return grad_output, None


class _Loss(torch.autograd.Function):  # type: ignore[misc]
    """Forward computes a reduced loss together with its gradients by the operands, in one pass over memory. Backward returns
    these, multiplied by the upstream gradient; where that would round half precision twice, and for a loss that is not
    reduced, the library computes them with the upstream gradient inside. Gradients by what of LEARNED is given are the
    formula's; under create_graph, where backward is differentiable, all others have the library's values and the formula's
    derivatives."""

    @staticmethod
    def forward(ctx: Any, input: Any, target: Any, call: Call, options: dict[str, Any], *learned: Any) -> Any:
        ctx.call, ctx.grads, ctx.options = call, None, options
        # The gradient by log-probabilities does not depend on them: they may be changed in place.
        needs_input = any(ctx.needs_input_grad[1:]) or options["input_space"] not in (None, "log_prob")
        ctx.spare = None if needs_input or call.options.divergence or call.is_sparse else input
        kept = [options.get(name) for name in ("weight", "mask", "indices", "log_normalizer")]
        kept = [v for v in kept if isinstance(v, torch.Tensor)]
        ctx.save_for_backward(target, *learned, *([input] if ctx.spare is None else []), *kept)
        if call.shape != () or not any(ctx.needs_input_grad[:2]):
            return call.loss()
        loss, *ctx.grads = call.gradients(ctx.needs_input_grad[:2])
        return loss

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> tuple[Any, ...]:
        target, *saved = ctx.saved_tensors  # fails if one was changed since
        learned, input = saved[:len(LEARNED)], saved[len(LEARNED)] if ctx.spare is None else ctx.spare
        by_operands, by_learned = ctx.needs_input_grad[:2], ctx.needs_input_grad[4:]
        is_differentiable = torch.is_grad_enabled()  # under create_graph
        needed = (*(by_operands if is_differentiable else (False, False)), *by_learned)
        x, t, *others = formula_gradients(ctx, (input, target, *learned), needed, grad_output)
        if any(by_operands) and (has_memory(grad_output) or not is_differentiable):
            values = _Loss.operand_gradients(ctx, grad_output)
            x, t = (v if x is None else _WithValues.apply(x, v) for x, v in zip((x, t), values))
        return (x, t, None, None, *others)

    @staticmethod
    def operand_gradients(ctx: Any, grad_output: Any) -> Any:
        # Given away once: autograd may add to them in place.
        grads, ctx.grads = ctx.grads, None
        if grads and grad_output.numel() == 1 and has_memory(grad_output):
            factor = grad_output.item()
            if factor == 1 or all(g is None or g.element_size() > 2 for g in grads):
                return [g if g is None or factor == 1 else g.mul_(factor) for g in grads]
        loss, *grads = ctx.call.gradients(ctx.needs_input_grad[:2], _arrays.read(grad_output), with_loss=False)
        return grads

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError("kldiv.kl_div has no derivatives in forward mode: take backward(), also under "
                                  "create_graph=True, or torch.nn.functional.kl_div")


def has_memory(tensor: Any) -> bool:
    """False under vmap, as of is_grads_batched, where there is no number to read."""
    try:
        return bool(tensor.data_ptr())
    except RuntimeError:
        return False


def autocasts() -> bool:
    return bool(torch.is_autocast_enabled("cpu") if hasattr(torch, "get_autocast_dtype") else torch.is_autocast_cpu_enabled())


def as_tensor(value: Any, is_kept: bool) -> Any:
    return value if isinstance(value, torch.Tensor) else tensor_of(_arrays.read(value), is_kept)


def autocast(tensor: Any) -> Any:
    """As F.kl_div, which autocast runs in float32."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) and autocasts() else tensor


def tensor_of(array: _arrays.Array, is_kept: bool) -> Any:
    """One that is kept for backward is a copy, so that the array may change until then."""
    is_bfloat16 = array.dtype == _arrays.BFLOAT16
    value = array.value.view("int16") if is_bfloat16 else array.value
    tensor = torch.from_numpy(value.copy()) if is_kept else torch.as_tensor(value)
    return tensor.view(torch.bfloat16) if is_bfloat16 else tensor


def kl_div(input: Any, target: Any, **options: Any) -> Any:
    """The loss as a tensor. Gradients go to input, target, and what of LEARNED requires one."""
    if torch.jit.is_tracing():
        raise RuntimeError("kldiv.kl_div cannot be traced: its result would be a constant; take torch.nn.functional.kl_div")
    own = {name: options[name] for name in READERS if name in options}
    is_kept = any(map(_arrays.is_learned, (input, target, *(options.get(name) for name in LEARNED))))  # for backward
    values, _ = align({"input": input, "target": target, **own}, None if options["dim"] is None else axes_of(options["dim"]))
    x, t = (as_tensor(values.pop(name), is_kept) for name in ("input", "target"))
    # How far values of a sparse target may sum to more than 1 depends on their dtype.
    x, t = autocast(x), t if "indices" in own else autocast(t)
    options = {**options, **values}
    learned = {name: options[name] for name in LEARNED if _arrays.is_learned(options.get(name))}
    for name in own if is_kept else ():
        if options[name] is not None and not isinstance(options[name], torch.Tensor):
            options[name] = tensor_of(READERS[name](options[name]), is_kept)
    if "temperature" not in learned:  # a number, for backward may read it
        options["temperature"] = number("temperature", options["temperature"])
    plain = {**options, **{name: value.detach() for name, value in learned.items()}}
    call = Call(x, t, **plain)
    call.warn(stacklevel=4)
    loss = _Loss.apply(x, t, call, plain, *(learned.get(name) for name in LEARNED))
    call.warn(stacklevel=4)
    return loss
