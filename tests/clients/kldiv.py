"""libkldiv on numpy arrays, in this process: losses, and partial results that merge over processes.

    import kldiv
    kldiv.kl_div(x, t, reduction="batchmean")
    whole = kldiv.partial(x[:n], t[:n]) + kldiv.partial(x[n:], t[n:])
    whole.loss("mean")  # the bits of kldiv.kl_div(x, t)

KLDIV_LIBRARY names the library, if it is not where the loader looks. Options are those of kldiv.h, by its
names: reduction, log_target, compat, base, input_space, target_space, temperature, dim, broadcast, weight,
mask."""
import ctypes
import os

import numpy as np

DTYPES = {"float64": 0, "float32": 1, "float16": 2}
WORDS = {
    "reduction": {"mean": 0, "batchmean": 1, "sum": 2, "none": 3, "elementwise_mean": 4},
    "compat": {"pytorch": 0, "oneflow": 1, "math": 2},
    "base": {"e": 0, "2": 1},
    "input_space": {"log_prob": 1, "prob": 2, "logit": 3},
    "target_space": {"log_prob": 1, "prob": 2, "logit": 3},
}
c_size, c_pointer = ctypes.c_size_t, ctypes.c_void_p


class Problem(ctypes.Structure):
    _fields_ = [("code", ctypes.c_char_p), ("detail", ctypes.c_char * 256),
                ("operand", ctypes.c_int), ("has_index", ctypes.c_bool), ("index", c_size)]


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("ndim", c_size), ("shape", c_pointer),
                ("data", c_pointer)]


class Mask(ctypes.Structure):
    _fields_ = [("ndim", c_size), ("shape", c_pointer), ("data", c_pointer)]


class Options(ctypes.Structure):
    _fields_ = [("reduction", ctypes.c_int), ("size_average", ctypes.c_int),
                ("reduce", ctypes.c_int), ("log_target", ctypes.c_bool), ("compat", ctypes.c_int),
                ("base", ctypes.c_int), ("input_space", ctypes.c_int),
                ("target_space", ctypes.c_int), ("temperature", ctypes.c_double),
                ("dim", c_pointer), ("n_dim", c_size), ("broadcast", ctypes.c_bool),
                ("weight", c_pointer), ("mask", c_pointer)]


kl = ctypes.CDLL(os.environ.get("KLDIV_LIBRARY", "libkldiv.so.0"))
for name, result, arguments in [
        ("kl_sizeof", c_size, [ctypes.c_int]), ("kl_chunk", c_size, []),
        ("kl_plan", ctypes.c_bool, [c_pointer] * 5), ("kl_run", ctypes.c_bool, [c_pointer] * 4),
        ("kl_run_partial", ctypes.c_bool, [c_pointer] * 4),
        ("kl_partial_step", c_size, [c_pointer]), ("kl_partial_merge", None, [c_pointer] * 2),
        ("kl_partial_loss", ctypes.c_double, [c_pointer, ctypes.c_int, ctypes.c_int]),
        ("kl_partial_sum", None, [c_pointer] * 2),
        ("kl_partial_divisor", None, [c_pointer, ctypes.c_int, c_pointer]),
        ("kl_pool_new", c_pointer, [c_size]), ("kl_simd_name", ctypes.c_char_p, []),
        ("kl_simd_select", ctypes.c_bool, [ctypes.c_char_p, c_pointer])]:
    getattr(kl, name).restype, getattr(kl, name).argtypes = result, arguments

for number, struct in enumerate([Problem, Tensor, Mask, Options]):  # as in enum kl_struct
    if ctypes.sizeof(struct) != kl.kl_sizeof(number):
        raise ImportError(f"{kl._name} has another struct {struct.__name__} than this module")
PLAN_SIZE, PARTIAL_SIZE = kl.kl_sizeof(4), kl.kl_sizeof(5)
CHUNK = kl.kl_chunk()
pool = None


def threads(n):
    """Computes with n threads from now on, in this process alone: not in what it forks."""
    global pool
    pool = kl.kl_pool_new(n)


def simd(name):
    """Computes with one instruction set, of those of kldiv.h, for the bits of machines that have others."""
    check(lambda problem: kl.kl_simd_select(name.encode(), problem))


def check(call):
    problem = Problem()
    if not call(ctypes.byref(problem)):
        raise ValueError(f"{problem.code.decode()}: {problem.detail.decode(errors='replace')}")


def dense(array):
    """The array as the library reads it, row-major and in this machine's byte order: a copy, if need be."""
    array = np.asarray(array)
    if array.dtype.name not in DTYPES:
        raise TypeError(f"dtype {array.dtype}: float64, float32 and float16 are taken")
    return np.require(array, array.dtype.newbyteorder("="), "C")


class Call:
    """A planned call. It holds all that the plan points to."""

    def __init__(self, x, t, options):
        self.x, self.t = dense(x), dense(t)
        self.dtype = np.result_type(self.x, self.t)
        self.options, self.kept = Options(), []
        for name, value in options.items():
            self.set(name, value)
        self.plan = ctypes.create_string_buffer(PLAN_SIZE)
        x, t = self.tensor(self.x), self.tensor(self.t)
        check(lambda problem: kl.kl_plan(self.plan, x, t, ctypes.byref(self.options), problem))

    def keep(self, value):
        self.kept.append(value)
        return value

    def shape(self, array):
        return ctypes.cast(self.keep((c_size * array.ndim)(*array.shape)), c_pointer)

    def tensor(self, array):
        tensor = Tensor(DTYPES[array.dtype.name], array.ndim, self.shape(array), array.ctypes.data)
        return ctypes.addressof(self.keep(tensor))

    def set(self, name, value):
        if value is None:
            return
        if name in WORDS:
            setattr(self.options, name, WORDS[name][str(value)])
        elif name in ("log_target", "broadcast", "temperature"):
            setattr(self.options, name, value)
        elif name == "dim":
            axes = np.atleast_1d(value).tolist()
            self.options.dim = ctypes.cast(self.keep((ctypes.c_int * len(axes))(*axes)), c_pointer)
            self.options.n_dim = len(axes)
        elif name == "weight":
            self.options.weight = self.tensor(self.keep(dense(value)))
        elif name == "mask":
            mask = self.keep(np.require(value, np.bool_, "C"))
            self.options.mask = ctypes.addressof(
                self.keep(Mask(mask.ndim, self.shape(mask), mask.ctypes.data)))
        else:
            raise TypeError(f"there is no option {name}")

    def loss_shape(self):
        if self.options.reduction != WORDS["reduction"]["none"]:
            return ()
        shape = np.broadcast_shapes(self.x.shape, self.t.shape)
        axes = ctypes.cast(self.options.dim, ctypes.POINTER(ctypes.c_int))
        summed = {axes[i] % len(shape) for i in range(self.options.n_dim)}
        return tuple(size for i, size in enumerate(shape) if i not in summed)


def kl_div(x, t, **options):
    """The loss of arrays, as kl_run gives it: an array of its dtype, 0-dim where it is reduced."""
    call = Call(x, t, options)
    loss = np.empty(call.loss_shape(), call.dtype)
    check(lambda problem: kl.kl_run(call.plan, pool, loss.ctypes.data, problem))
    return loss


def step(x, t, **options):
    """The entries of the first axis at whose multiples arrays may be cut, or 0 if they may not."""
    return kl.kl_partial_step(Call(x, t, options).plan)


class Partial:
    """What shards of a call add up by +, or sum(), in any order. Partial() is that of nothing."""

    def __init__(self, state=bytes(PARTIAL_SIZE), dtype="float16"):
        if len(state) != PARTIAL_SIZE:
            raise ValueError("a partial result of another version of libkldiv")
        self.state, self.dtype = bytes(state), np.dtype(dtype).name

    def __add__(self, other):
        if not isinstance(other, Partial):
            return self if isinstance(other, int) and other == 0 else NotImplemented
        state = ctypes.create_string_buffer(self.state, PARTIAL_SIZE)
        kl.kl_partial_merge(state, ctypes.create_string_buffer(other.state, PARTIAL_SIZE))
        return Partial(state.raw, np.result_type(self.dtype, other.dtype))

    __radd__ = __add__

    def __reduce__(self):
        return Partial, (self.state, self.dtype)

    def loss(self, reduction="mean", dtype=None):
        """The loss of all that was added, in its dtype or another."""
        dtype = np.dtype(dtype or self.dtype)
        state = ctypes.create_string_buffer(self.state, PARTIAL_SIZE)
        loss = kl.kl_partial_loss(state, WORDS["reduction"][reduction], DTYPES[dtype.name])
        return dtype.type(loss)

    def pair(self, of, *arguments):
        pair = (ctypes.c_double * 2)()
        of(ctypes.create_string_buffer(self.state, PARTIAL_SIZE), *arguments, pair)
        return tuple(pair)

    def sum(self):
        """The sum as two numbers, as partial=true of the service gives it; so does divisor()."""
        return self.pair(kl.kl_partial_sum)

    def divisor(self, reduction="mean"):
        return self.pair(kl.kl_partial_divisor, WORDS["reduction"][reduction])


def partial(x, t, **options):
    """The partial result of a shard. It serves any reduction, whatever the one among the options."""
    call = Call(x, t, options)
    state = ctypes.create_string_buffer(PARTIAL_SIZE)
    check(lambda problem: kl.kl_run_partial(call.plan, pool, state, problem))
    return Partial(state.raw, call.dtype)
