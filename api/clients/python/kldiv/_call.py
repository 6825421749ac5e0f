"""A planned call of libkldiv."""
from __future__ import annotations

import ctypes
import re
import warnings
from typing import Any

import numpy as np

from . import _arrays, _library
from ._arrays import Array
from ._labels import align
from ._library import Mask, Options, PlanStart, Problem, Results, Sparse, Tensor, check
from .errors import LossError

FLAGS = {None: 0, True: 1, False: 2}
# Whose options they are, and their defaults: those of TRL's GKDConfig and of DistiLLM.
SHARES = {"beta": ("js", 0.5), "alpha": ("skew", 0.1)}


def word(words: dict[str, int], option: str, value: object) -> int:
    if value is None and option != "reduction":
        return 0
    number = words.get(str(value))
    if number is None:
        what = f"{value} is not a valid value for {option}"
        raise LossError(f"{option.replace('input_', '').replace('target_', '')}_invalid",
                                 f"{what}: {', '.join(words)}")
    return number


def truth(option: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{option} must be True or False, not {value!r}")
    return bool(value)


def flag(option: str, value: Any) -> int:
    return FLAGS[None if value is None else truth(option, value)]


def axes_of(dim: Any) -> list[int]:
    axes = np.atleast_1d(np.asarray(dim))
    if axes.size and axes.dtype.kind not in "iu":
        raise TypeError(f"dim must be an integer or integers, not {dim!r}")
    return [int(axis) for axis in axes.ravel()]


def number(option: str, value: Any) -> float | None:
    if isinstance(value, (str, bytes, bool)) or np.ndim(value) != 0:
        raise TypeError(f"{option} must be a number, not {value!r}")
    if _arrays.is_learned(value):
        raise ValueError(f"{option} requires a gradient, but there is none by it: take {option}.detach()")
    return None if value is None else float(value)


def temperature_of(value: Any) -> float:
    temperature = number("temperature", value)
    if temperature == 0:
        raise LossError("temperature_invalid", "the temperature is 0")
    return temperature or 0.0


def share_of(option: str, value: Any, divergence: int) -> float:
    """Target's share of the mixture: what was given, or the default if the divergence has one. Where it has none, another
    share than the default is refused, as the service does."""
    word, default = SHARES[option]
    is_used = divergence == _library.DIVERGENCES[word]
    share = number(option, value)
    if share == 0 and not is_used:  # which the library takes for none
        raise LossError(f"{option}_unused", f"{option} is of divergence={word} alone")
    if not is_used:
        return 0.0 if share is None or share == default else share
    return default if share is None else share


def wanted_of(wrt: Any) -> list[str]:
    """The operands by which gradients are wanted."""
    names = [wrt] if isinstance(wrt, str) else list(wrt)
    if not names or not all(isinstance(name, str) for name in names) or not set(names) <= {"input", "target"}:
        raise ValueError("wrt is input, target or both")
    return names


class Call:
    """A planned call. It holds all that the plan points to."""

    def __init__(self, input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean", log_target: bool = False, compat: str = "pytorch", base: str | int = "e",
                 input_space: str | None = None, target_space: str | None = None, temperature: float | None = None,
                 dim: Any = None, broadcast: bool = False, weight: Any = None, mask: Any = None,
                 grad_output: Any = None, divergence: str = "forward", beta: float | None = None,
                 alpha: float | None = None, scale: str | None = None, indices: Any = None, log_normalizer: Any = None,
                 tail: str = "bin") -> None:
        self.kept: list[Any] = []
        _arrays.refuse_learned(weight=weight, temperature=temperature, log_normalizer=log_normalizer)
        axes = None if dim is None else axes_of(dim)
        values, self.labels = align({"input": input, "target": target, "weight": weight, "mask": mask,
                                     "grad_output": grad_output, "indices": indices, "log_normalizer": log_normalizer}, axes)
        self.is_unsigned = "uint64" in str(getattr(indices, "dtype", ""))
        indices = None if indices is None else _arrays.read_indices(values["indices"])
        self.operands = (_arrays.read(values["input"]), _arrays.read(values["target"]))
        self.grad_output = _arrays.read(values["grad_output"]) if "grad_output" in values else None
        self.options = Options(
            word(_library.REDUCTIONS, "reduction", reduction), flag("size_average", size_average), flag("reduce", reduce),
            truth("log_target", log_target), word(_library.COMPATS, "compat", compat), word(_library.BASES, "base", base),
            word(_library.SPACES, "input_space", input_space), word(_library.SPACES, "target_space", target_space),
            temperature_of(temperature))
        self.options.broadcast = truth("broadcast", broadcast)
        self.options.divergence = word(_library.DIVERGENCES, "divergence", divergence)
        self.options.beta = share_of("beta", beta, self.options.divergence)
        self.options.alpha = share_of("alpha", alpha, self.options.divergence)
        self.options.scale = word(_library.SCALES, "scale", scale)
        if axes is not None:
            self.options.dim = ctypes.cast(self.keep((ctypes.c_int * len(axes))(*axes)), ctypes.c_void_p)
            self.options.n_dim = len(axes)
        if "weight" in values:
            self.options.weight = self.tensor(_arrays.read(values["weight"]))
        if "mask" in values:
            array = _arrays.read_mask(values["mask"])
            self.options.mask = ctypes.addressof(self.keep(Mask(len(array.shape), self.shape_of(array), array.pointer)))
        self.is_sparse = indices is not None
        tail_number = word(_library.TAILS, "tail", tail)
        if self.is_sparse:
            self.options.sparse = self.sparse(indices, tail_number, values.get("log_normalizer"))
        elif tail_number or log_normalizer is not None:
            raise LossError("indices_missing", "tail and log_normalizer are of a sparse target, but there are no indices")
        self.plan = ctypes.create_string_buffer(_library.struct_size(_library.PLAN))
        kl = _library.load()
        self.run(kl.kl_plan, self.plan, *(self.tensor(array) for array in self.operands), ctypes.byref(self.options))
        planned = PlanStart.from_buffer(self.plan)
        self.dtype = int(planned.dtype)
        self.shape = tuple(planned.shape[:planned.ndim])
        self.warnings, self.reduction = int(planned.warnings), int(planned.reduction)

    def sparse(self, indices: Array, tail: int, log_normalizer: Any) -> int:
        wide, shape = (array.shape for array in self.operands)
        if indices.shape != shape or wide[:-1] != shape[:-1] or not (wide and shape and 1 <= shape[-1] <= wide[-1]):
            raise LossError("shape_mismatch", f"input has shape {list(wide)}, indices {list(indices.shape)} and values "
                                              f"{list(shape)}, which are [..., n], [..., k] and [..., k] with k from 1 to n")
        normalizer = None if log_normalizer is None else self.tensor(_arrays.read(log_normalizer))
        self.keep(indices)
        return ctypes.addressof(self.keep(Sparse(indices.pointer, _arrays.is_wide(indices), tail, normalizer)))

    def run(self, function: Any, *arguments: Any) -> None:
        """Calls a function of the library, whose last argument is a problem."""
        problem = Problem()
        good = function(*arguments, ctypes.byref(problem))
        if problem.code == b"indices_invalid" and self.is_unsigned:
            problem.detail = re.sub(rb"(?<=index )-\d+", lambda found: b"%d" % (int(found[0]) + 2 ** 64), problem.detail)
        check(good, problem, self.place(problem) if self.is_sparse else "")

    def place(self, problem: Problem) -> str:
        """Where in a sparse target the problem is: an element, or a row."""
        name = _library.SPARSE_OPERANDS.get(problem.operand)
        if not problem.has_index or name is None:
            return ""
        at = np.unravel_index(problem.index, self.operands[1].shape)
        numbers = ", ".join(map(str, at[:-1] if problem.code == b"mass_invalid" else at))
        return f"{name}[{numbers}]: " if numbers else f"{name}: "

    def keep(self, value: Any) -> Any:
        self.kept.append(value)
        return value

    def shape_of(self, array: Array) -> ctypes.c_void_p:
        self.keep(array)
        return ctypes.cast(self.keep((ctypes.c_size_t * len(array.shape))(*array.shape)), ctypes.c_void_p)

    def tensor(self, array: Array) -> int:
        tensor = Tensor(array.dtype, len(array.shape), self.shape_of(array), array.pointer)
        return ctypes.addressof(self.keep(tensor))

    def warn(self, stacklevel: int) -> None:
        """Gives the warnings that were not given yet: PyTorch's, by its words, and once it is computed those of the loss."""
        given, self.warnings = self.warnings, 0
        for number in range(_library.N_WARNINGS):
            if given >> number & 1:
                text = _library.load().kl_warning_text(number, self.reduction).contents
                warnings.warn(text.message.decode(), UserWarning, stacklevel + 1)

    def loss(self) -> Any:
        loss = _arrays.empty(self.shape, self.dtype, self.operands)
        self.run(_library.load().kl_run, self.plan, _library.pool.get(), loss.pointer)
        self.warnings |= _library.load().kl_loss_warnings(self.plan, loss.pointer)
        return loss.value

    def gradients(self, wrt: tuple[bool, bool], grad_output: Array | None = None,
                  with_loss: bool = True) -> tuple[Any, Any, Any]:
        """The loss, and the gradients by input and by target; None for what is not wanted."""
        loss = _arrays.empty(self.shape, self.dtype, self.operands) if with_loss else None
        grads = [_arrays.empty(a.shape, a.dtype, [a]) if wanted else None for a, wanted in zip(self.operands, wrt)]
        results = Results(loss.pointer if loss else None, tuple(g.pointer if g else None for g in grads), None)
        upstream = None if grad_output is None else self.tensor(grad_output)
        self.run(_library.load().kl_run_gradients, self.plan, upstream, _library.pool.get(),
                 ctypes.byref(results))
        if loss:
            self.warnings |= _library.load().kl_loss_warnings(self.plan, loss.pointer)
        return (loss.value if loss else None, *(g.value if g else None for g in grads))  # type: ignore[return-value]

    def partial_state(self) -> bytes:
        state = ctypes.create_string_buffer(_library.struct_size(_library.PARTIAL))
        self.run(_library.load().kl_run_partial, self.plan, _library.pool.get(), state)
        return state.raw

    def step(self) -> int:
        return int(_library.load().kl_partial_step(self.plan))
