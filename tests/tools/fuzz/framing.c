/* The bytes of a connection, in pieces of random sizes: what is read of them, and where it is refused, must not depend on
 * how they are cut. */
#include "server/connection/framing.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* counts: of what was read. `requests` is the number of bytes of complete ones. */
struct counts {
    size_t headers, of_bodies, requests;
};

/* Reads in pieces of 1 to `max` bytes, or in one. */
static struct counts read_all(const char *bytes, size_t size, size_t max, struct srv_framing *f)
{
    struct counts counts = {0};
    for (size_t at = 0; at < size && !f->error.code;) {
        size_t n = max ? 1 + (size_t)(unsigned char)bytes[at] % max : size;
        n = n < size - at ? n : size - at;
        enum srv_part part;
        size_t used = srv_framing_step(f, bytes + at, n, &part);
        if (used == 0 || used > n)
            abort();
        at += used;
        if (f->error.code)
            break;
        counts.headers += part == SRV_PART_HEADER_END;
        counts.of_bodies += part == SRV_PART_BODY ? used : 0;
        if (srv_framing_is_between_requests(f))
            counts.requests = at;
    }
    return counts;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t max[] = {1, 7, 251};
    struct srv_framing whole = {0};
    char *bytes = malloc(size + 1);
    memcpy(bytes, data, size);
    const struct counts expected = read_all(bytes, size, 0, &whole);
    for (size_t i = 0; i < sizeof max / sizeof *max; i++) {
        struct srv_framing cut = {0};
        const struct counts counts = read_all(bytes, size, max[i], &cut);
        if (memcmp(&counts, &expected, sizeof counts) != 0 || cut.state != whole.state ||
            (cut.error.code != NULL) != (whole.error.code != NULL) ||
            (cut.error.code && strcmp(cut.error.code, whole.error.code) != 0))
            abort();
        srv_framing_free(&cut);
    }
    free(bytes);
    srv_framing_free(&whole);
    return 0;
}
