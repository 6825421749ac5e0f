#include "tests/system/load/report.h"

#include <stdarg.h>
#include <stdio.h>

static int misses;

void report_head(void) { printf("\n%-34s | %-30s | %s\n", "promise", "bound", "measured"); }

void report_row(bool good, const char *promise, const char *bound, const char *measured, ...)
{
    va_list arguments;
    va_start(arguments, measured);
    printf("%-34s | %-30s | ", promise, bound);
    vprintf(measured, arguments);
    puts(good ? "" : "  MISSED");
    va_end(arguments);
    misses += !good;
}

int report_misses(void) { return misses; }
