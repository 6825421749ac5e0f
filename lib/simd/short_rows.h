/* Sums of rows of few logits, over the vocabulary of template.h, which includes this. Each row has lanes of its own, which are
 * added up for SINGLE_LANES rows at once; a vector of two halves holds as much of two rows, so that rows of few elements fill
 * it. */

/* short_rows: rows of logits of both operands. With has_sentinel, a row with a shifted target that equals `sentinel` has a loss of
 * NaN. */
struct short_rows {
    enum kl_dtype dtype;
    bool has_sentinel, caches;
    const char *operands[KL_OPERANDS];
    double scale, sentinel;
    size_t rows, length;
    const struct kl_short_sums *to;
};

INLINE sd load_single(enum kl_dtype dtype, const char *from)
{
    return dtype == KL_FLOAT64   ? s_load_f64(from)
           : dtype == KL_FLOAT32 ? s_load_f32(from)
           : dtype == KL_FLOAT16 ? s_load_f16(from)
                                 : s_load_bf16(from);
}

/* A vector of a row's elements from i on; lanes behind its end hold others, or 0. */
INLINE sd load_of_row(const struct short_rows *r, int operand, size_t row, size_t i)
{
    size_t size = size_of(r->dtype), at = row * r->length + i, left = r->rows * r->length - at;
    const char *from = r->operands[operand] + at * size;
    if (__builtin_expect(left >= SINGLE_LANES, 1))
        return load_single(r->dtype, from);
    char part[SINGLE_LANES * sizeof(double)] = {0};
    memcpy(part, from, left * size);
    return load_single(r->dtype, part);
}

/* Stores the maxima of n rows, and gives what is subtracted from them: 0 where there is nothing but -inf. */
INLINE void short_maxima(const struct short_rows *r, int operand, size_t row, size_t n,
                         double *offsets)
{
    const sd nothing = s_set(-INFINITY);
    sd maxima[SINGLE_LANES];
    for (size_t k = 0; k < SINGLE_LANES; k++) {
        maxima[k] = nothing;
        for (size_t i = 0; k < n && i < r->length; i += SINGLE_LANES) {
            sd v = load_of_row(r, operand, row + k, i);
            v = r->length - i < SINGLE_LANES ? s_select(first_lanes(r->length - i).a, v, nothing)
                                             : v;
            maxima[k] = s_max(v, maxima[k]);
        }
    }
    sd max = s_reduce_maxima(maxima);
    s_store_n(r->to->row_max[operand] + row, max, n);
    s_store_f64(offsets, s_select(s_eq(max, nothing), s_set(0), max));
}

/* row_lanes: the sums of a row, or of two, as lanes. Those of exponentials of float64 begin with EXPS_START, and are
 * compensated. */
struct row_lanes {
    vd losses;
    struct running sum_p, exps;
};

/* The lanes of rows `pair`. */
INLINE struct row_lanes sum_pair(const struct short_rows *r, const size_t pair[2],
                                 const vd by[KL_OPERANDS])
{
    const bool is_f64 = r->dtype == KL_FLOAT64;
    const vd nothing = v_set(-800), scale = v_set(r->scale);
    const struct running none = {v_set(0), v_set(0)};
    struct row_lanes sums = {v_set(0), is_f64 ? exps_start() : none, is_f64 ? exps_start() : none};
    for (size_t i = 0; i < r->length; i += SINGLE_LANES) {
        size_t left = r->length - i;
        vd v[KL_OPERANDS];
        for (int k = 0; k < KL_OPERANDS; k++) {
            v[k] = (vd){load_of_row(r, k, pair[0], i), load_of_row(r, k, pair[1], i)};
            v[k] = v_mul(v_sub(v[k], by[k]), scale);
            if (left < SINGLE_LANES) {
                sm real = first_lanes(left).a;
                v[k] = v_select((vm){real, real}, v[k], nothing);
            }
        }
        struct row_term term = row_term(true, is_f64, true, v_set(NAN), v[KL_INPUT], v[KL_TARGET]);
        if (r->has_sentinel)
            term.difference =
                v_select(v_eq(v[KL_TARGET], v_set(r->sentinel)), v_set(NAN), term.difference);
        sums.losses = v_fma(term.p, term.difference, sums.losses);
        if (is_f64) {
            sums.sum_p = add_exps(sums.sum_p, term.p);
            sums.exps = add_exps(sums.exps, term.e);
        } else {
            sums.sum_p.high = v_add(sums.sum_p.high, term.p);
            sums.exps.high = v_add(sums.exps.high, term.e);
        }
        for (size_t k = 0; r->caches && k < 2; k++) {
            size_t at = pair[k] * r->length + i, n = left < SINGLE_LANES ? left : SINGLE_LANES;
            s_store_n(r->to->cached_p + at, k ? term.p.b : term.p.a, n);
            s_store_n(r->to->cached_q + at, k ? term.e.b : term.e.a, n);
        }
    }
    return sums;
}

INLINE vd lanes_of(bool is_f64, struct running sum)
{
    return is_f64 ? v_add(v_sub(sum.high, v_set(EXPS_START)), sum.low) : sum.high;
}

INLINE void short_sums_of(const struct short_rows *r)
{
    for (size_t row = 0, n; row < r->rows; row += n) {
        double offsets[KL_OPERANDS][SINGLE_LANES];
        sd losses[SINGLE_LANES] = {{0}}, sum_p[SINGLE_LANES] = {{0}}, exps[SINGLE_LANES] = {{0}};
        n = r->rows - row < SINGLE_LANES ? r->rows - row : SINGLE_LANES;
        for (int operand = 0; operand < KL_OPERANDS; operand++)
            short_maxima(r, operand, row, n, offsets[operand]);
        for (size_t k = 0; k < n; k += 2) {
            size_t next = k + 1 < n ? k + 1 : k; /* the last one may come twice */
            const size_t pair[] = {row + k, row + next};
            const vd by[] = {{s_set(offsets[0][k]), s_set(offsets[0][next])},
                             {s_set(offsets[1][k]), s_set(offsets[1][next])}};
            struct row_lanes sums = sum_pair(r, pair, by);
            bool is_f64 = r->dtype == KL_FLOAT64;
            vd p = lanes_of(is_f64, sums.sum_p), e = lanes_of(is_f64, sums.exps);
            losses[k] = sums.losses.a, losses[k + 1] = sums.losses.b;
            sum_p[k] = p.a, sum_p[k + 1] = p.b;
            exps[k] = e.a, exps[k + 1] = e.b;
        }
        s_store_n(r->to->losses + row, s_reduce_sums(losses), n);
        s_store_n(r->to->sum_p + row, s_reduce_sums(sum_p), n);
        s_store_n(r->to->exps + row, s_reduce_sums(exps), n);
    }
}

/* Each branch compiles short_sums_of with its own constants. */
#define SHORT_ROWS(dtype_, suffix)                                                                 \
    TARGET_ATTR static void short_sums_##suffix(const void *x, const void *t, double scale,        \
                                                double sentinel, const struct kl_short_sums *to,   \
                                                size_t rows, size_t length)                        \
    {                                                                                              \
        struct short_rows r = {.dtype = dtype_,                                                    \
                               .operands = {x, t},                                                 \
                               .scale = scale,                                                     \
                               .sentinel = sentinel,                                               \
                               .rows = rows,                                                       \
                               .length = length,                                                   \
                               .to = to};                                                          \
        if (!isnan(sentinel)) {                                                                    \
            r.has_sentinel = true;                                                                 \
            short_sums_of(&r);                                                                     \
        } else if (to->cached_p) {                                                                 \
            r.caches = true;                                                                       \
            short_sums_of(&r);                                                                     \
        } else {                                                                                   \
            short_sums_of(&r);                                                                     \
        }                                                                                          \
    }
SHORT_ROWS(KL_FLOAT64, f64)
SHORT_ROWS(KL_FLOAT32, f32)
SHORT_ROWS(KL_FLOAT16, f16)
SHORT_ROWS(KL_BFLOAT16, bf16)
