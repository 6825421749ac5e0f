"""The loss of arrays in this process, its gradients and partial results."""
from __future__ import annotations

from typing import Any, Sequence

from . import _arrays, _library
from ._call import Call, wanted_of
from ._partial import Partial


def kl_div(input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False, *, compat: str = "pytorch", base: str | int = "e",
           input_space: str | None = None, target_space: str | None = None, temperature: float | None = None,
           dim: int | Sequence[int] | None = None, broadcast: bool = False, weight: Any = None,
           mask: Any = None, divergence: str = "forward", beta: float | None = None, alpha: float | None = None,
           scale: str | None = None) -> Any:
    """KL(target || input), as torch.nn.functional.kl_div gives it, in whose place it may be called on a CPU.

    With p of target and q of input, `divergence` is "forward", KL(p || q); "reverse", KL(q || p); "js",
    beta KL(p || m) + (1 - beta) KL(q || m) with m = beta p + (1 - beta) q, by default 0.5 of each, whose ends 0 and 1 are
    forward and reverse; or "skew", KL(p || alpha p + (1 - alpha) q), by default with an alpha of 0.1. A `scale` of
    "temperature_squared" multiplies losses by the square of the temperature.

    Arrays are numpy's, pandas', memory maps, lists, or tensors of PyTorch: these give tensors, for which
    loss.backward() works. The other options are those of the service: api/loss/README.md describes them. Shapes are the
    same, unless `broadcast` is set; with it batchmean divides by the first size of the common shape."""
    options = {"size_average": size_average, "reduce": reduce, "reduction": reduction, "log_target": log_target,
               "compat": compat, "base": base, "input_space": input_space, "target_space": target_space,
               "temperature": temperature, "dim": dim, "broadcast": broadcast, "weight": weight, "mask": mask,
               "divergence": divergence, "beta": beta, "alpha": alpha, "scale": scale}
    return loss_of(input, target, options)


def sparse_kl_div(input: Any, indices: Any, values: Any, *, log_normalizer: Any = None, tail: str = "bin",
                  reduction: str = "mean", log_target: bool = False, base: str | int = "e", input_space: str | None = None,
                  target_space: str | None = None, temperature: float | None = None, weight: Any = None, mask: Any = None,
                  divergence: str = "forward", beta: float | None = None, alpha: float | None = None,
                  scale: str | None = None) -> Any:
    """The loss of kl_div with a sparse target, which names k elements of each row, as the likeliest words of a teacher.

    Input has the shape [..., n]. Indices are integers of the shape [..., k], positions in rows of input; values of the same shape
    are those of target there, in the `target_space`: probabilities, log-probabilities or logits. An index of -1 is padding,
    wherever it stands, and its value is not read; with tail="drop" the loss of a row of padding alone is NaN: mask it. An index
    that is twice in a row with the same value counts once.

    With r the mass that values leave, and s that of input's other elements, `tail` is "bin": these are one element more with the
    probabilities r and s; "drop": values are divided by their sum, so that r is 0; or "ignore": only elements that are named have
    losses.

    Logits of values need a `log_normalizer` of the shape [...], unless the tail is dropped: the log-sum-exp of all n logits of a
    row over the temperature, (logits / temperature).logsumexp(-1), as the temperature divides logits first. It does not divide
    log-probabilities: those of another temperature are given as such.

    Losses are those of rows: `reduction` applies to them, weight and mask have the shape [...], or broadcast to it. Rows that
    are masked may hold anything, also indices of -100. Gradients of tensors go to input and values, and to a weight,
    temperature and log_normalizer that require one."""
    if indices is None:
        raise TypeError("indices are integers, not None")
    return loss_of(input, values, {
        "reduction": reduction, "log_target": log_target, "base": base, "input_space": input_space,
        "target_space": target_space, "temperature": temperature, "dim": -1, "weight": weight, "mask": mask,
        "divergence": divergence, "beta": beta, "alpha": alpha, "scale": scale, "indices": indices,
        "log_normalizer": log_normalizer, "tail": tail})


def loss_of(input: Any, target: Any, options: dict[str, Any]) -> Any:
    learned = (options["weight"], options["temperature"], options.get("log_normalizer"))
    if any(map(_arrays.is_tensor, (input, target))) or any(map(_arrays.is_learned, learned)):
        from . import _torch
        return _torch.kl_div(input, target, **options)
    call = Call(input, target, **options)
    call.warn(stacklevel=3)
    loss = call.loss()
    call.warn(stacklevel=3)
    return shaped(loss, call)


def shaped(loss: Any, call: Call) -> Any:
    """A scalar for a loss that is reduced; with the labels of pandas' operands for another."""
    if _arrays.is_tensor(loss):
        return loss
    return loss[()] if loss.shape == () else call.labels.loss(loss) if call.labels else loss


def value_and_grad(input: Any, target: Any, wrt: str | Sequence[str] = "input", grad_output: Any = None,
                   **options: Any) -> tuple[Any, dict[str, Any]]:
    """The loss, and its gradients by name: wrt is "input", "target" or both. Options are those of kl_div. With `indices`, and
    `log_normalizer` and `tail`, it is that of sparse_kl_div, whose values are the target; so are step's and partial's."""
    names = wanted_of(wrt)
    call = Call(input, target, grad_output=grad_output, **options)
    call.warn(stacklevel=2)
    loss, *grads = call.gradients(("input" in names, "target" in names), call.grad_output)
    call.warn(stacklevel=2)
    by_name = {name: call.labels.gradient(name, grad) if call.labels else grad
               for name, grad in zip(("input", "target"), grads) if grad is not None}
    return shaped(loss, call), by_name


def step(input: Any, target: Any, **options: Any) -> int:
    """The entries of the first axis at whose multiples arrays may be cut for the bits of one call; 0 if they may not."""
    return Call(input, target, **options).step()


def partial(input: Any, target: Any, **options: Any) -> Partial:
    """The partial result of a shard. It serves any reduction, whatever the one among the options."""
    call = Call(input, target, **options)
    return Partial(call.partial_state(), _library.DTYPE_NAMES[call.dtype])
