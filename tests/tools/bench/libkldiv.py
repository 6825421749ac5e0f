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
                ("mask", ctypes.c_void_p), ("divergence", ctypes.c_int), ("beta", ctypes.c_double),
                ("alpha", ctypes.c_double), ("scale", ctypes.c_int),
                ("sparse", ctypes.c_void_p)]


class Sparse(ctypes.Structure):
    _fields_ = [("indices", ctypes.c_void_p), ("is_int64", ctypes.c_bool), ("tail", ctypes.c_int),
                ("log_normalizer", ctypes.c_void_p)]


class Mask(ctypes.Structure):
    _fields_ = [("ndim", ctypes.c_size_t), ("shape", ctypes.POINTER(ctypes.c_size_t)),
                ("data", ctypes.c_void_p)]


class Results(ctypes.Structure):
    _fields_ = [("loss", ctypes.c_void_p), ("grad", ctypes.c_void_p * 2),
                ("diagnosis", ctypes.c_void_p)]


PLAN_SIZE = 1 << 14  # more than struct kl_plan has
DIAGNOSIS_SIZE = 1 << 13  # likewise
COMPATS = {"pytorch": 0, "oneflow": 1, "math": 2}
DIVERGENCES = {"forward": 0, "reverse": 1, "js": 2, "skew": 3}


def tensor_of(v):
    shape = (ctypes.c_size_t * v.dim())(*v.shape)
    return Tensor(DTYPES[v.dtype], v.dim(), shape, v.data_ptr())


def mask_of(v):
    return Mask(v.dim(), (ctypes.c_size_t * v.dim())(*v.shape), v.data_ptr())


class Library:
    def __init__(self, path):
        self.kl = ctypes.CDLL(path)
        self.kl.kl_simd_name.restype = ctypes.c_char_p
        self.kl.kl_pool_new.restype = ctypes.c_void_p
        self.kl.kl_pool_new.argtypes = [ctypes.c_size_t]
        self.simd = self.kl.kl_simd_name().decode()

    def pool(self, threads):
        return self.kl.kl_pool_new(threads)

    def select(self, simd):
        if not self.kl.kl_simd_select(simd.encode(), None):
            raise ValueError(f"{simd} is not supported")

    def prepare(self, x, t, reduction, log_target=False, input_space=None, target_space=None,
                temperature=0, gradient=False, pool=None, dim=None, broadcast=False, weight=None,
                mask=None, base2=False, compat="pytorch", loss_shape=None, diagnose=False,
                divergence="forward", beta=0, alpha=0, indices=None):
        """Returns a function that computes the loss and, with `gradient`, the gradient by x; both
        gradients if it is "both". `loss_shape` is needed where the loss has another than x; int64
        `indices` name the elements of a t that is sparse, and the rest is one element more."""
        tensors = [tensor_of(v) for v in (x, t)]
        options = Options(reduction=REDUCTIONS[reduction], log_target=log_target,
                          input_space=SPACES[input_space], target_space=SPACES[target_space],
                          temperature=temperature, broadcast=broadcast, base=int(base2),
                          compat=COMPATS[compat], divergence=DIVERGENCES[divergence], beta=beta,
                          alpha=alpha)
        diagnosis = ctypes.create_string_buffer(DIAGNOSIS_SIZE)
        kept = [tensors, options, x, t, weight, mask, diagnosis]
        if dim is not None:
            kept.append((ctypes.c_int * 1)(dim))
            options.dim, options.n_dim = ctypes.addressof(kept[-1]), 1
        if indices is not None:
            kept += [indices, Sparse(indices.data_ptr(), True)]
            options.sparse = ctypes.addressof(kept[-1])
        if weight is not None:
            kept.append(tensor_of(weight))
            options.weight = ctypes.addressof(kept[-1])
        if mask is not None:
            kept.append(mask_of(mask))
            options.mask = ctypes.addressof(kept[-1])
        plan = ctypes.create_string_buffer(PLAN_SIZE)
        shape = loss_shape or (x.shape if reduction == "none" else ())
        loss = torch.empty(shape, dtype=x.dtype)
        slopes = [torch.empty_like(x) if gradient else None,
                  torch.empty_like(t) if gradient == "both" else None]
        results = Results(loss.data_ptr(),
                          tuple(v.data_ptr() if v is not None else None for v in slopes),
                          ctypes.addressof(diagnosis) if diagnose else None)
        if not self.kl.kl_plan(plan, ctypes.byref(tensors[0]), ctypes.byref(tensors[1]),
                                    ctypes.byref(options), None):
            raise ValueError("kl_plan refuses the call")

        def run():
            self.kl.kl_run_gradients(plan, None, ctypes.c_void_p(pool),
                                          ctypes.byref(results), None)
            return loss, slopes[0], kept

        return run
