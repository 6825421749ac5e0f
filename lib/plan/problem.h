/* Filling in a struct kl_problem. */
#pragma once

#include "lib/kldiv.h"

/* Records the problem unless one is there already. Always returns false, so that a check reads
 * `return kl_fail(...)`. `problem` may be NULL. */
bool kl_fail(struct kl_problem *problem, enum kl_operand operand, const char *code,
             const char *format, ...) __attribute__((format(printf, 4, 5)));
