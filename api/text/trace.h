/* api_trace: the trace that a request is part of, by W3C Trace Context (https://www.w3.org/TR/trace-context/). */
#pragma once

#include <stdbool.h>

/* API_TRACEPARENT, API_TRACE_ID, API_SPAN_ID: bytes of a traceparent of version 00 and of its parts, each with its NUL. */
enum { API_TRACEPARENT = 56, API_TRACE_ID = 33, API_SPAN_ID = 17 };

/* api_trace: "00-", the trace's id, "-", the id of the caller's span, "-", flags; lower-case hexadecimal digits. Empty
 * if there is none. */
struct api_trace {
    char text[API_TRACEPARENT];
};

static inline bool api_trace_is_set(const struct api_trace *trace) { return *trace->text; }

/* Reads the value of a traceparent header, or NULL. *trace stays empty unless the value is valid: its version is not
 * ff, neither id is all zeros, and it has four fields. A version above 00 may have more, which are dropped. */
void api_trace_read(struct api_trace *trace, const char *value);

/* True if two requests are of one trace; both are set. */
bool api_trace_is_same(const struct api_trace *a, const struct api_trace *b);

/* Makes the parent of a request that is sent because of one: of the same trace, from a span that no other has. */
struct api_trace api_trace_child(const struct api_trace *parent);

/* Copies the ids of a trace that is set. */
void api_trace_ids(const struct api_trace *trace, char trace_id[API_TRACE_ID],
                   char span_id[API_SPAN_ID]);
