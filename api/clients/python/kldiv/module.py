"""The loss as a module: one of PyTorch where that is installed."""
from __future__ import annotations

from typing import Any, Sequence

from .loss import kl_div, sparse_kl_div

try:
    from torch.nn import Module
except ImportError:
    class Module:  # type: ignore[no-redef]
        """What a loss needs of that of PyTorch."""

        def __call__(self, *arguments: Any, **named: Any) -> Any:
            return self.forward(*arguments, **named)  # type: ignore[attr-defined]


class Criterion(Module):  # type: ignore[misc]
    """A loss whose options are set once."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self.names = tuple(name for name in options if name not in ("self", "__class__"))
        for name in self.names:
            setattr(self, name, options[name])

    def options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.names}

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.options().items() if value is not None and value is not False)


class KLDivLoss(Criterion):
    """kldiv.kl_div with these options, in the place of torch.nn.KLDivLoss. Weight and mask are of a call.

    A temperature that is a torch.nn.Parameter is learned."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                 log_target: bool = False, *, compat: str = "pytorch", base: str | int = "e",
                 input_space: str | None = None, target_space: str | None = None, temperature: Any = None,
                 dim: int | Sequence[int] | None = None, broadcast: bool = False, divergence: str = "forward",
                 beta: float | None = None, alpha: float | None = None, scale: str | None = None) -> None:
        super().__init__(locals())

    def forward(self, input: Any, target: Any, weight: Any = None, mask: Any = None) -> Any:
        return kl_div(input, target, weight=weight, mask=mask, **self.options())


class SparseKLDivLoss(Criterion):
    """kldiv.sparse_kl_div with these options. A call has input, indices and values; and, if they are needed, log_normalizer,
    the fourth, which logits of a tail that is not dropped need; weight, the fifth, a number for each row that multiplies its loss; and
    mask, the sixth, which is True for rows that count.

    A temperature that is a torch.nn.Parameter is learned."""

    def __init__(self, *, tail: str = "bin", reduction: str = "mean", log_target: bool = False, base: str | int = "e",
                 input_space: str | None = None, target_space: str | None = None, temperature: Any = None,
                 divergence: str = "forward", beta: float | None = None, alpha: float | None = None,
                 scale: str | None = None) -> None:
        super().__init__(locals())

    def forward(self, input: Any, indices: Any, values: Any, log_normalizer: Any = None, weight: Any = None,
                mask: Any = None) -> Any:
        return sparse_kl_div(input, indices, values, log_normalizer=log_normalizer, weight=weight, mask=mask, **self.options())
