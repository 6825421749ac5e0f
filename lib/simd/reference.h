/* The definition of the losses, in long double, of single elements: every kernel is tested against it, and
 * falls back on it for special values. */
#pragma once

#include "lib/simd/kernel.h"

/* The loss of an element, and its derivative by one of the operands. */
double kl_term(enum kl_rule rule, double input, double target);
double kl_grad_term(enum kl_rule rule, enum kl_operand by, double input, double target);

/* kl_quotient: operands of a KL_PROB rule that stand for probabilities q and t. The loss of q and t is
 * `times` that of x and t; the derivative by x over `divisor` is that by q. */
struct kl_quotient {
    double x, t, times, divisor;
};
struct kl_quotient kl_quotient(enum kl_rule rule, double q, double t);

/* The loss of an element of a mixture, its derivatives by what the operands hold, and their probabilities. */
struct kl_mixture_element {
    double loss, grads[KL_OPERANDS], probs[KL_OPERANDS];
};
struct kl_mixture_element kl_mixture_element(const struct kl_mixture *mixture, double input,
                                             double target);
