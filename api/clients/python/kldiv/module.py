"""The loss as a module: one of PyTorch where that is installed."""
from __future__ import annotations

from typing import Any, Sequence

from .loss import kl_div

try:
    from torch.nn import Module
except ImportError:
    class Module:  # type: ignore[no-redef]
        """What a loss needs of that of PyTorch."""

        def __call__(self, *arguments: Any, **named: Any) -> Any:
            return self.forward(*arguments, **named)  # type: ignore[attr-defined]


class KLDivLoss(Module):  # type: ignore[misc]
    """kldiv.kl_div with these options, in the place of torch.nn.KLDivLoss. Weight and mask are of a call.

    A temperature that is a torch.nn.Parameter is learned."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                 log_target: bool = False, *, compat: str = "pytorch", base: str | int = "e",
                 input_space: str | None = None, target_space: str | None = None, temperature: Any = None,
                 dim: int | Sequence[int] | None = None, broadcast: bool = False, divergence: str = "forward",
                 beta: float | None = None, alpha: float | None = None, scale: str | None = None) -> None:
        options = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__()
        self.names = tuple(options)
        for name, value in options.items():
            setattr(self, name, value)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.names
                         if getattr(self, name) not in (None, False))

    def forward(self, input: Any, target: Any, weight: Any = None, mask: Any = None) -> Any:
        return kl_div(input, target, weight=weight, mask=mask, **{name: getattr(self, name) for name in self.names})
