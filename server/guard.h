/* What libmicrohttpd lets pass and must not: ambiguous framing, which is how requests are
 * smuggled past proxies, and header fields that are none. */
#ifndef KLDIV_SERVER_GUARD_H
#define KLDIV_SERVER_GUARD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

/* What the header says of the body. */
struct srv_framing {
    uint64_t content_length;
    bool has_length, chunked, expects_continue;
};

/* Why the request must be refused, and the connection closed. `code` is of api/problem.c. */
struct srv_refusal {
    const char *code, *detail;
};

/* Checks the raw target, the method and all header fields. Called with the header alone. */
bool srv_guard(struct MHD_Connection *connection, const char *target, const char *method,
               const char *version, struct srv_framing *framing, struct srv_refusal *refusal);

/* The parts of it that need no connection, a field at a time; the counts start at 0. */
struct srv_guard_state {
    struct srv_framing *framing;
    struct srv_refusal *refusal;
    unsigned hosts, lengths, codings, types, expectations;
};
bool srv_guard_field(struct srv_guard_state *state, const char *name, size_t name_size,
                     const char *value, size_t value_size);
bool srv_guard_target(const char *target);

#endif
