"""libkldiv called from Python on PyTorch's tensors, without a copy."""
import ctypes

import torch

DTYPES = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3}
REDUCTIONS = {"mean": 0, "batchmean": 1, "sum": 2, "none": 3}
SPACES = {None: 0, "log_prob": 1, "prob": 2, "logit": 3}


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("ndim", ctypes.c_size_t),
                ("shape", ctypes.POINTER(ctypes.c_size_t)), ("data", ctypes.c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [("reduction", ctypes.c_int), ("size_average", ctypes.c_int),
                ("reduce", ctypes.c_int), ("log_target", ctypes.c_bool), ("compat", ctypes.c_int),
                ("base", ctypes.c_int), ("input_space", ctypes.c_int),
                ("target_space", ctypes.c_int), ("temperature", ctypes.c_double),
                ("dim", ctypes.c_void_p), ("n_dim", ctypes.c_size_t),
                ("broadcast", ctypes.c_bool), ("weight", ctypes.c_void_p),
                ("mask", ctypes.c_void_p)]


class Results(ctypes.Structure):
    _fields_ = [("loss", ctypes.c_void_p), ("grad", ctypes.c_void_p * 2)]


PLAN_SIZE = 1 << 14  # more than struct kl_plan has


class Library:
    def __init__(self, path):
        self.kl = ctypes.CDLL(path)
        self.kl.kl_simd_name.restype = ctypes.c_char_p
        self.kl.kl_pool_new.restype = ctypes.c_void_p
        self.kl.kl_pool_new.argtypes = [ctypes.c_size_t]
        self.simd = self.kl.kl_simd_name().decode()

    def pool(self, threads):
        return self.kl.kl_pool_new(threads)

    def prepare(self, x, t, reduction, log_target=False, input_space=None, target_space=None,
                temperature=0, gradient=False, pool=None):
        """Returns a function that computes the loss and, with `gradient`, the gradient by x."""
        shape = (ctypes.c_size_t * x.dim())(*x.shape)
        tensors = [Tensor(DTYPES[v.dtype], v.dim(), shape, v.data_ptr()) for v in (x, t)]
        options = Options(reduction=REDUCTIONS[reduction], log_target=log_target,
                          input_space=SPACES[input_space], target_space=SPACES[target_space],
                          temperature=temperature)
        plan = ctypes.create_string_buffer(PLAN_SIZE)
        loss = torch.empty_like(x) if reduction == "none" else torch.empty((), dtype=x.dtype)
        slopes = torch.empty_like(x) if gradient else None
        results = Results(loss.data_ptr(), (slopes.data_ptr() if gradient else None, None))
        if not self.kl.kl_plan(plan, ctypes.byref(tensors[0]), ctypes.byref(tensors[1]),
                                    ctypes.byref(options), None):
            raise ValueError("kl_plan refuses the call")
        kept = (shape, tensors, options)

        def run():
            self.kl.kl_run_gradients(plan, None, ctypes.c_void_p(pool),
                                          ctypes.byref(results), None)
            return loss, slopes, kept

        return run
