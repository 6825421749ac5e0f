/* The vector kernel, written once over a small vocabulary. The file that includes this has
 * defined, for one instruction set:
 *
 *   FN                 what precedes a function of the vocabulary: inline, with its target
 *   LANES, vd, vi, vm  doubles in a vector; vectors of doubles and of 64-bit integers; masks
 *   v_set v_add v_sub v_mul v_div v_abs
 *   v_max, v_min       of two, where one is NaN perhaps the other
 *   v_fma(a, b, c)     a * b + c, rounded once or twice
 *   v_residual(a, b, c)    a * b - c of a c within some units of a * b, to double's precision
 *   v_and              of the lanes' bits
 *   v_eq v_gt          comparisons, masks; v_signed(v), of the lanes with a sign bit; m_or(a, b);
 *                      m_not(m); m_any(m), if any lane holds
 *   v_select(m, a, b)  a where m holds, else b
 *   v_clamp(v, low, high)  which lets NaN through
 *   v_raise(low, v)    the greater one, which lets NaN in v through
 *   v_limit(v)         v_clamp(v, -700, 700), which need not let NaN through
 *   v_lesser_size(a, b)    min(|a|, |b|), which need not let NaN through
 *   v_total(v)         the sum of the lanes
 *   v_split(t, &k, &i) m in [1, 2) with t = m * 2^k for t > 0, and i, the first four bits of
 *                      the mantissa. Of 0, anything finite. Of rare lanes anything, NaN for
 *                      choice: then s_watch_log need not look
 *   v_rare(t)          mask of the lanes that are negative, infinite or NaN, or positive but too
 *                      small for v_split; not of -0
 *   v_watch_log(w, t, wide)
 *                      w and what it takes to know afterwards, by v_watched_log(w, wide), that
 *                      a lane of t was rare; of those whose loss comes out as NaN or an
 *                      infinity, and of 0, it need not know
 *   v_watch_exp(w, t, wide)
 *                      the same, by v_watched_exp(w), of lanes whose size is past 700, or, of
 *                      operands that are not wide, which are past 700
 *   v_bits(v)          the lanes' bits as integers
 *   v_mask(bytes)      of the lanes whose byte is not 0
 *   s_first(p, n, v)   the first n of n <= SINGLE_LANES doubles at p, and v in the other lanes of a
 *                      single vector; s_store_first(p, v, n) stores so many
 *   s_totals(rows)     the sum of each of SINGLE_LANES single vectors, as one; s_maxima(rows) the
 *                      greatest lane of each
 *   v_lookup(table, i) table[i & 15] of sixteen doubles
 *   s_tally(i, m)      i + 1 where m holds, else i
 *   v_exp2(n)          2^(n/16), for an integer n in the low 16 bits; not beyond normal doubles
 *   fs                 as many floats as single vectors of doubles have bytes: FLOATS of them;
 *                      f_set, f_max(a, b), of which one is NaN perhaps the other, f_load_f32,
 *                      f_load_bf16, f_store
 *   v_load_S, v_store_S for S in f64, f32, f16, bf16: LANES elements at any address, widened
 *                      exactly, or rounded once to nearest even
 *
 * Doubles carry the arithmetic of every dtype: "wide" for float64 operands, "narrow" for those of
 * at most 24 bits. */
#include "lib/kernel.h"
#include "lib/simd/log_exp.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "lib/simd/convert.h"

/* Losses of elements, and their derivatives. */
#include "lib/simd/elements.h"
#include "lib/simd/grad.h"

/* Rows of elements, then blocks of rows of doubles. */
#include "lib/simd/rows.h"

#include "lib/simd/blocks.h"

#include "lib/simd/bins.h"

#include "lib/simd/table.h"
