/* Checks that libmicrohttpd lacks: ambiguous framing, by which requests are smuggled past
 * proxies, and malformed header fields. */
#ifndef KLDIV_SERVER_GUARD_H
#define KLDIV_SERVER_GUARD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

/* srv_framing: the framing of the body, by the header. */
struct srv_framing {
    uint64_t content_length;
    bool has_length, chunked, expects_continue;
};

/* srv_refusal: the problem for which a request is refused and its connection closed. `code` is
 * in api/problem.c. */
struct srv_refusal {
    const char *code, *detail;
};

/* Checks the raw target, the method and all header fields. Called after the header and before
 * the body. */
bool srv_guard(struct MHD_Connection *connection, const char *target, const char *method,
               const char *version, struct srv_framing *framing, struct srv_refusal *refusal);

/* srv_guard_state: the parts of srv_guard that need no connection, one field per call; the
 * counts start at 0. */
struct srv_guard_state {
    struct srv_framing *framing;
    struct srv_refusal *refusal;
    unsigned hosts, lengths, codings, types, expectations;
};
bool srv_guard_field(struct srv_guard_state *state, const char *name, size_t name_size,
                     const char *value, size_t value_size);
bool srv_guard_target(const char *target);

#endif
