/* Operations that are the compiler's own operators on single vectors, alike in all instruction sets. The file that includes this has defined
 * INLINE, sd and si. */

INLINE sd s_add(sd a, sd b) { return a + b; }
INLINE sd s_sub(sd a, sd b) { return a - b; }
INLINE sd s_mul(sd a, sd b) { return a * b; }
INLINE sd s_div(sd a, sd b) { return a / b; }
INLINE si s_bits(sd a) { return (si)a; }
INLINE sd from_bits(si a) { return (sd)a; }
