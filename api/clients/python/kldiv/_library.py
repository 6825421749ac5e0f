"""libkldiv by ctypes: its structs, its functions, its threads. ctypes releases the GIL during calls.

The library is the one beside this file, as the wheel has it; KLDIV_LIBRARY names another. It is loaded by the first
call that computes, so that the client of the service works without it."""
from __future__ import annotations

import ctypes
import functools
import operator
import os
import pathlib
import threading

from .errors import LossError

DTYPES = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 3}
DTYPE_NAMES = tuple(DTYPES)
REDUCTIONS = {"mean": 0, "batchmean": 1, "sum": 2, "none": 3, "elementwise_mean": 4}
COMPATS = {"pytorch": 0, "oneflow": 1, "math": 2}
BASES = {"e": 0, "2": 1}
SPACES = {"log_prob": 1, "prob": 2, "logit": 3}
DIVERGENCES = {"forward": 0, "reverse": 1, "js": 2, "skew": 3}
SCALES = {"none": 0, "temperature_squared": 1}
TAILS = {"bin": 0, "drop": 1, "ignore": 2}
# Of enum kl_operand, those of a sparse target whose elements may be at fault.
SPARSE_OPERANDS = {1: "values", 5: "indices"}
N_WARNINGS = 4

c_size, c_pointer = ctypes.c_size_t, ctypes.c_void_p


class Problem(ctypes.Structure):
    _fields_ = [("code", ctypes.c_char_p), ("detail", ctypes.c_char * 256), ("operand", ctypes.c_int),
                ("has_index", ctypes.c_bool), ("index", c_size)]


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("ndim", c_size), ("shape", c_pointer), ("data", c_pointer)]


class Mask(ctypes.Structure):
    _fields_ = [("ndim", c_size), ("shape", c_pointer), ("data", c_pointer)]


class Options(ctypes.Structure):
    _fields_ = [("reduction", ctypes.c_int), ("size_average", ctypes.c_int), ("reduce", ctypes.c_int),
                ("log_target", ctypes.c_bool), ("compat", ctypes.c_int), ("base", ctypes.c_int),
                ("input_space", ctypes.c_int), ("target_space", ctypes.c_int), ("temperature", ctypes.c_double),
                ("dim", c_pointer), ("n_dim", c_size), ("broadcast", ctypes.c_bool), ("weight", c_pointer),
                ("mask", c_pointer), ("divergence", ctypes.c_int), ("beta", ctypes.c_double), ("alpha", ctypes.c_double),
                ("scale", ctypes.c_int), ("sparse", c_pointer)]


class Sparse(ctypes.Structure):
    _fields_ = [("indices", c_pointer), ("is_int64", ctypes.c_bool), ("tail", ctypes.c_int), ("log_normalizer", c_pointer)]


class PlanStart(ctypes.Structure):
    """The first members of struct kl_plan, up to the shape of the loss."""

    _fields_ = [("input", Tensor), ("target", Tensor), ("options", Options), ("reduction", ctypes.c_int),
                ("warnings", ctypes.c_uint), ("dtype", ctypes.c_int), ("ndim", c_size), ("shape", c_size * 64)]


class Results(ctypes.Structure):
    _fields_ = [("loss", c_pointer), ("grad", c_pointer * 2), ("diagnosis", c_pointer)]


class WarningText(ctypes.Structure):
    _fields_ = [("code", ctypes.c_char_p), ("category", ctypes.c_char_p), ("message", ctypes.c_char_p)]


# In the order of enum kl_struct; the plan and partial results are opaque here.
STRUCTS = ((0, Problem), (1, Tensor), (2, Mask), (3, Options), (6, Results))
PLAN, PARTIAL = 4, 5
SIGNATURES: tuple[tuple[str, object, list[object]], ...] = (
    ("kl_sizeof", c_size, [ctypes.c_int]),
    ("kl_chunk", c_size, []),
    ("kl_plan", ctypes.c_bool, [c_pointer] * 5),
    ("kl_run", ctypes.c_bool, [c_pointer] * 4),
    ("kl_run_gradients", ctypes.c_bool, [c_pointer] * 5),
    ("kl_run_partial", ctypes.c_bool, [c_pointer] * 4),
    ("kl_partial_step", c_size, [c_pointer]),
    ("kl_loss_warnings", ctypes.c_uint, [c_pointer] * 2),
    ("kl_partial_merge", None, [c_pointer] * 2),
    ("kl_partial_loss", ctypes.c_double, [c_pointer, ctypes.c_int, ctypes.c_int]),
    ("kl_partial_sum", None, [c_pointer] * 2),
    ("kl_partial_divisor", None, [c_pointer, ctypes.c_int, c_pointer]),
    ("kl_dtype_promote", ctypes.c_int, [ctypes.c_int] * 2),
    ("kl_warning_text", ctypes.POINTER(WarningText), [ctypes.c_int] * 2),
    ("kl_bin_counts", None, [c_pointer, c_size, ctypes.c_int, c_pointer, c_size, c_pointer]),
    ("kl_pool_new", c_pointer, [c_size]),
    ("kl_simd_name", ctypes.c_char_p, []),
    ("kl_simd_select", ctypes.c_bool, [ctypes.c_char_p, c_pointer]),
)


@functools.lru_cache(maxsize=None)
def load() -> ctypes.CDLL:
    """The library, checked to have the structs that are declared here."""
    beside = pathlib.Path(__file__).with_name("libkldiv.so.1")
    path = os.environ.get("KLDIV_LIBRARY") or (str(beside) if beside.exists() else "libkldiv.so.1")
    try:
        kl = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"libkldiv cannot be loaded: {error}. The wheel has it; KLDIV_LIBRARY names another") from error
    for name, result, arguments in SIGNATURES:
        function = getattr(kl, name)
        function.restype, function.argtypes = result, arguments
    for number, struct in STRUCTS:
        if ctypes.sizeof(struct) != kl.kl_sizeof(number):
            raise ImportError(f"{path} has another struct {struct.__name__} than this package")
    return kl


@functools.lru_cache(maxsize=None)
def struct_size(number: int) -> int:
    return int(load().kl_sizeof(number))


def check(good: bool, problem: Problem, place: str = "") -> None:
    if not good:
        raise LossError(problem.code.decode(), place + problem.detail.decode(errors="replace"),
                        problem.index if problem.has_index else None)


class _Pool:
    """The threads of this process: made by the first call, and again in a child after a fork, which has none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wanted: int | None = None
        self.pointer: int | None = None
        self.made = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        self.lock = threading.Lock()
        self.pointer, self.made = None, False

    def get(self) -> int | None:
        if not self.made:
            with self.lock:
                if not self.made:
                    n = self.wanted or default_threads()
                    self.pointer = load().kl_pool_new(n) if n > 1 else None
                    self.made = True
        return self.pointer

    def resize(self, n: int) -> None:
        """The pool before is kept, since calls of other threads may be using it."""
        with self.lock:
            self.wanted, self.pointer, self.made = n, None, False


def default_threads() -> int:
    """OMP_NUM_THREADS, which Dask, Spark and torchrun set in their workers, or the processors of this process."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) > 0 else len(os.sched_getaffinity(0))


pool = _Pool()


def threads(n: int) -> None:
    """Computes with n threads from now on. The bits of a result do not depend on their number."""
    if operator.index(n) < 1:
        raise ValueError("there is at least one thread")
    pool.resize(operator.index(n))


def simd(name: str = "auto") -> str:
    """Computes with one instruction set ("avx512", "avx2", "neon", "generic", or "auto" for the best), for the bits of
    machines that have others. Returns the name of the one in use. Call it before other threads compute."""
    if not isinstance(name, str):
        raise TypeError(f"the name of an instruction set is a text, not {name!r}")
    problem = Problem()
    check(load().kl_simd_select(name.encode(), ctypes.byref(problem)), problem)
    return str(load().kl_simd_name().decode())
