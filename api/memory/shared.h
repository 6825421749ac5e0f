/* api_shared: bytes that several responses send at the same time, kept once. */
#pragma once

#include "api/memory/buffer.h"

#include <stdatomic.h>

/* The maker fills `bytes` before any other thread has the object; after that nobody changes them. */
struct api_shared {
    atomic_uint refcount;
    struct api_buffer bytes;
};

/* Makes an object without bytes and with one reference; the bytes will be on the budget. NULL if memory
 * is exhausted. */
struct api_shared *api_shared_new(struct api_budget *budget);

/* Add and drop a reference, from any thread; the last one frees the bytes. NULL is fine. */
struct api_shared *api_shared_hold(struct api_shared *shared);
void api_shared_release(struct api_shared *shared);
