/* The table of a run: promise, bound, measured. */
#pragma once

#include <stdbool.h>

void report_head(void);

/* Prints a row; a row that is not `good` is a miss. */
void report_row(bool good, const char *promise, const char *bound, const char *measured, ...)
    __attribute__((format(printf, 4, 5)));

/* Number of misses. */
int report_misses(void);
