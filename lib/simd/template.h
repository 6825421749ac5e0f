/* The vector kernel, written once over a small vocabulary. The file that includes this has
 * defined, for one instruction set:
 *
 *   INLINE, TARGET_ATTR  what precedes an inlined function of the vocabulary, and any other: its target
 *   SINGLE_LANES, sd, si, sm  doubles in a vector; vectors of doubles and of 64-bit integers; masks
 *
 * and the functions below on single vectors, with s_ for v_ (sm_ for m_), but for those of vectors.h, which it includes.
 * unroll2.h makes of them those on vd, vi, vm: two vectors, of LANES doubles in all.
 *
 *   v_set v_add v_sub v_mul v_div v_abs
 *   v_max, v_min       if one operand is NaN, perhaps the other one
 *   v_max_nan(low, v)  the maximum, or NaN if v is
 *   v_clamp(v, low, high)  NaN if v is
 *   v_clamp_exp(v)     v_clamp(v, -700, 700), where NaN may be lost
 *   v_min_magnitude(a, b)  min(a, |b|) of an a that is not negative, where NaN may be lost
 *   v_fma(a, b, c)     a * b + c, rounded once or twice
 *   v_mul_sub(a, b, c) a * b - c of a c within some units of a * b, to double's precision
 *   v_and              of the lanes' bits
 *   v_eq v_gt          comparisons, masks; v_signed(v), of the lanes with a sign bit; m_or(a, b);
 *                      m_not(m); m_any(m), if any lane holds
 *   v_select(m, a, b)  a where m holds, else b
 *   v_reduce_sum(v)    the sum of the lanes
 *   v_frexp(t, &k, &i) m in [1, 2) with t = m * 2^k for t > 0, and i, the first four bits of
 *                      the mantissa. Of 0, anything finite. Of special values anything, preferably
 *                      NaN: then s_track_log need not look
 *   v_special(t)       mask of the lanes that are negative, infinite or NaN, or positive but too
 *                      small for v_frexp; not of -0
 *   v_track_log(w, t, is_f64)
 *                      w with what v_tracked_log(w, is_f64) needs to tell whether any t so far was
 *                      special; it may miss 0, and values whose loss is an infinity or NaN
 *   v_track_exp(w, t, is_f64)
 *                      likewise for v_tracked_exp(w): whether any t was above 700 or, of float64,
 *                      below -700
 *   v_bits(v)          the lanes' bits as integers
 *   v_mask(bytes)      of the lanes whose byte is not 0
 *   v_lookup(table, i) table[i & 15] of sixteen doubles
 *   v_exp2(n)          2^(n/16), for an integer n in the low 16 bits; not beyond normal doubles
 *   v_load_S, v_store_S for S in f64, f32, f16, bf16: LANES elements at any address, widened
 *                      exactly, or rounded once to nearest even; stores of f16 and bf16 are defined for
 *                      both vectors at once: s_store_pair_f16(p, a, b), s_store_pair_bf16(p, a, b)
 *
 * and on single vectors alone:
 *
 *   s_load_n(p, n, v)  the first n of n <= SINGLE_LANES doubles at p, and v in the other lanes;
 *                      s_store_n(p, v, n) stores so many
 *   s_reduce_max(v)    the maximum of the lanes, none of which is NaN
 *   s_reduce_sums(rows)    the sum of each of SINGLE_LANES vectors, as one vector;
 *                      s_reduce_maxima(rows) the maximum of each
 *   s_masked_increment(i, m)   i + 1 where m holds, else i
 *   fs                 as many floats as a vector of doubles has bytes: FLOATS of them; f_set,
 *                      f_max(a, b), of which one is NaN perhaps the other, f_load_f32,
 *                      f_load_bf16, f_store
 *
 * All arithmetic is on doubles. Functions ending in _f64 are accurate enough for operands of float64;
 * those ending in _f32 for operands of at most 24 bits. */
#include "lib/simd/constants.h"
#include "lib/simd/kernel.h"
#include "lib/simd/reference.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "lib/simd/unroll2.h"

#include "lib/simd/log_exp.h"

#include "lib/simd/convert.h"

/* Losses of elements, and their derivatives. */
#include "lib/simd/elements.h"
#include "lib/simd/grad.h"

/* Rows of elements, then blocks of rows of doubles. */
#include "lib/simd/rows.h"

#include "lib/simd/short_rows.h"

#include "lib/simd/blocks.h"

#include "lib/simd/mixture.h"

#include "lib/simd/bins.h"

#include "lib/simd/table.h"
