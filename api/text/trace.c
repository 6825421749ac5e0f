#include "api/text/trace.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

/* Positions in "00-TRACE-SPAN-FL". */
enum { TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, SIZE = API_TRACEPARENT - 1 };

/* True if the next `n` characters are lower-case hexadecimal digits. */
static bool is_hex(const char *text, size_t n) { return strspn(text, "0123456789abcdef") == n; }

static bool is_zero(const char *text, size_t n) { return strspn(text, "0") >= n; }

/* Blanks may follow the value of a field (RFC 9110, 5.6.3). */
static bool is_blank(const char *text) { return text[strspn(text, " \t")] == '\0'; }

static bool is_valid(const char *value)
{
    if (strnlen(value, SIZE) < SIZE || !is_hex(value, 2) || strncmp(value, "ff", 2) == 0)
        return false;
    bool is_first = strncmp(value, "00", 2) == 0;
    return value[TRACE_AT - 1] == '-' && is_hex(value + TRACE_AT, API_TRACE_ID - 1) &&
           value[SPAN_AT - 1] == '-' && is_hex(value + SPAN_AT, API_SPAN_ID - 1) &&
           value[FLAGS_AT - 1] == '-' && is_hex(value + FLAGS_AT, 2) &&
           (is_blank(value + SIZE) || (!is_first && value[SIZE] == '-')) &&
           !is_zero(value + TRACE_AT, API_TRACE_ID - 1) &&
           !is_zero(value + SPAN_AT, API_SPAN_ID - 1);
}

void api_trace_read(struct api_trace *trace, const char *value)
{
    trace->text[0] = '\0';
    if (!value || !is_valid(value))
        return;
    memcpy(trace->text, value, SIZE);
    memcpy(trace->text, "00", 2);
    trace->text[SIZE] = '\0';
}

void api_trace_ids(const struct api_trace *trace, char trace_id[API_TRACE_ID],
                   char span_id[API_SPAN_ID])
{
    memcpy(trace_id, trace->text + TRACE_AT, API_TRACE_ID - 1);
    memcpy(span_id, trace->text + SPAN_AT, API_SPAN_ID - 1);
    trace_id[API_TRACE_ID - 1] = span_id[API_SPAN_ID - 1] = '\0';
}

bool api_trace_is_same(const struct api_trace *a, const struct api_trace *b)
{
    return memcmp(a->text + TRACE_AT, b->text + TRACE_AT, API_TRACE_ID - 1) == 0;
}

struct api_trace api_trace_child(const struct api_trace *parent)
{
    struct api_trace child = *parent;
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = (uintptr_t)&number;
    number |= number == 0;
    for (size_t i = 0; i < API_SPAN_ID - 1; i++, number >>= 4)
        child.text[SPAN_AT + i] = "0123456789abcdef"[number & 15];
    return child;
}
