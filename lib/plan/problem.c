#include "lib/plan/problem.h"

#include <stdarg.h>
#include <stdio.h>

bool kl_fail(struct kl_problem *problem, enum kl_operand operand, const char *code,
             const char *format, ...)
{
    if (!problem || problem->code)
        return false;
    problem->code = code;
    problem->operand = operand;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem->detail, sizeof problem->detail, format, arguments);
    va_end(arguments);
    return false;
}
