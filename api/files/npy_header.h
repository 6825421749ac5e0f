/* The header of a .npy file, versions 1.0 to 3.0
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). */
#pragma once

#include "api/json/problem.h"
#include "lib/kldiv.h"

/* API_NPY_HEADER: maximum bytes of a header, numpy's own limit; it has three members and is padded to 64
 * bytes. API_NPY_PREFIX: the bytes that tell how long it is. */
enum { API_NPY_HEADER = 10000, API_NPY_PREFIX = 12 };

/* api_npy: the array that a header describes. */
struct api_npy {
    char descr[24]; /* numpy's code of the dtype, "<f8"; cut if it is longer */
    bool fortran_order;
    size_t ndim, shape[KL_MAX_DIMS];
    size_t start; /* offset of the elements in the file */
};

/* True if the bytes start with the magic string of a .npy file. */
bool api_npy_is(const char *bytes, size_t size);

/* Bytes before the elements, as the first API_NPY_PREFIX bytes of a file tell. */
size_t api_npy_start(const char *bytes);

/* Parses a header, which must be complete. Fails with npy_malformed, dtype_unsupported for structured
 * dtypes, tensor_too_deep; the problem names no array, which the caller knows. */
bool api_npy_parse(const char *bytes, size_t size, struct api_npy *npy,
                   struct api_problem *problem);
