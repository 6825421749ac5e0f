"""The loss in PyTorch's autograd. Imported when a tensor comes."""
from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from ._call import Call


def needed(ctx: Any) -> tuple[bool, bool]:
    return bool(ctx.needs_input_grad[0]), bool(ctx.needs_input_grad[1])


class _Loss(torch.autograd.Function):  # type: ignore[misc]
    """Forward computes a reduced loss together with its gradients, in one pass over memory. Backward returns these,
    multiplied by the upstream gradient; where that would round half precision twice, and for a loss that is not
    reduced, the library computes them with the upstream gradient inside."""

    @staticmethod
    def forward(ctx: Any, input: Any, target: Any, call: Call) -> Any:
        ctx.save_for_backward(input, target)
        ctx.call, ctx.grads = call, None
        if call.shape != () or not any(ctx.needs_input_grad):
            return call.loss()
        loss, *ctx.grads = call.gradients(needed(ctx))
        return loss

    @staticmethod
    @once_differentiable  # type: ignore[misc]
    def backward(ctx: Any, grad_output: Any) -> tuple[Any, Any, None]:
        _ = ctx.saved_tensors  # fails if one was changed since
        # Given away once: autograd may add to them in place.
        grads, ctx.grads = ctx.grads, None
        factor = grad_output.item() if grads else None
        if grads and (factor == 1 or all(g is None or g.element_size() > 2 for g in grads)):
            by_input, by_target = (g if g is None or factor == 1 else g.mul_(factor) for g in grads)
            return by_input, by_target, None
        _, by_input, by_target = ctx.call.gradients(needed(ctx), grad_output, with_loss=False)
        return by_input, by_target, None


def loss(call: Call, input: Any, target: Any) -> Any:
    """The loss as a tensor. Gradients go to input and target, not to a weight."""
    tensors = [v if isinstance(v, torch.Tensor) else torch.as_tensor(v) for v in (input, target)]
    return _Loss.apply(*tensors, call)
