/* Elements of every dtype as doubles, and back, over the vocabulary of template.h. */

INLINE vd load(enum kl_dtype dtype, const void *from)
{
    return dtype == KL_FLOAT64   ? v_load_f64(from)
           : dtype == KL_FLOAT32 ? v_load_f32(from)
           : dtype == KL_FLOAT16 ? v_load_f16(from)
                                 : v_load_bf16(from);
}

INLINE void store(enum kl_dtype dtype, void *to, vd v)
{
    switch (dtype) {
    case KL_FLOAT64:
        v_store_f64(to, v);
        break;
    case KL_FLOAT32:
        v_store_f32(to, v);
        break;
    case KL_FLOAT16:
        v_store_f16(to, v);
        break;
    case KL_BFLOAT16:
        v_store_bf16(to, v);
        break;
    }
}

INLINE size_t size_of(enum kl_dtype dtype)
{
    return dtype == KL_FLOAT64 ? 8 : dtype == KL_FLOAT32 ? 4 : 2;
}

/* The last, partial vector goes with some of the elements before it, once more, if there are. */
INLINE void convert(enum kl_dtype from_dtype, const char *from, enum kl_dtype to_dtype, char *to,
                    size_t n)
{
    size_t before = n > LANES && n % LANES ? LANES - n % LANES : 0;
    for (; n >= LANES; n -= LANES) {
        store(to_dtype, to, load(from_dtype, from));
        from += LANES * size_of(from_dtype);
        to += LANES * size_of(to_dtype);
    }
    if (n && before) {
        from -= before * size_of(from_dtype);
        store(to_dtype, to - before * size_of(to_dtype), load(from_dtype, from));
    } else if (n) {
        char rest[LANES * sizeof(double)] = {0}, converted[LANES * sizeof(double)];
        memcpy(rest, from, n * size_of(from_dtype));
        store(to_dtype, converted, load(from_dtype, rest));
        memcpy(to, converted, n * size_of(to_dtype));
    }
}

/* ---- Vectors at the end of an array: missing elements are a number that does no harm. */

INLINE vd load_part(const double *from, size_t n, double padding)
{
    if (__builtin_expect(n >= LANES, 1))
        return v_load_f64(from);
    bool two = n > SINGLE_LANES;
    return (vd){s_load_n(from, two ? SINGLE_LANES : n, padding),
                s_load_n(two ? from + SINGLE_LANES : from, two ? n - SINGLE_LANES : 0, padding)};
}

INLINE void store_part(double *to, vd v, size_t n)
{
    if (__builtin_expect(n >= LANES, 1)) {
        v_store_f64(to, v);
        return;
    }
    s_store_n(to, v.a, n < SINGLE_LANES ? n : SINGLE_LANES);
    if (n > SINGLE_LANES)
        s_store_n(to + SINGLE_LANES, v.b, n - SINGLE_LANES);
}

/* The first n lanes. */
INLINE vm first_lanes(size_t n)
{
    static const double lanes[2 * LANES] = {[0 ... LANES - 1] = 1};
    return v_eq(v_load_f64(lanes + LANES - n), v_set(1));
}

/* n elements of any dtype, and 0 in the other lanes. */
INLINE vd load_elements_part(enum kl_dtype dtype, const char *from, size_t n)
{
    if (__builtin_expect(n >= LANES, 1))
        return load(dtype, from);
    char part[LANES * sizeof(double)] = {0};
    memcpy(part, from, n * size_of(dtype));
    return load(dtype, part);
}

/* Stores n elements at most. */
INLINE void store_elements_part(enum kl_dtype dtype, char *to, vd v, size_t n)
{
    if (__builtin_expect(n >= LANES, 1)) {
        store(dtype, to, v);
        return;
    }
    char part[LANES * sizeof(double)];
    store(dtype, part, v);
    memcpy(to, part, n * size_of(dtype));
}

/* The lanes whose bytes, n of them at most, are not 0. */
INLINE vm load_mask_part(const unsigned char *mask, size_t n)
{
    if (__builtin_expect(n >= LANES, 1))
        return v_mask(mask);
    unsigned char part[LANES] = {0};
    memcpy(part, mask, n);
    return v_mask(part);
}
