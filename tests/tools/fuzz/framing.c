/* The bytes of a connection, in pieces of random sizes. What is in order must not depend on how it
 * is cut, and a refusal must come at the end of a complete request. */
#include "server/connection/framing.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads in pieces of 1 to `most` bytes; gives the number of bytes in order. */
static size_t read_in_pieces(char *bytes, size_t size, size_t max, struct srv_framing *f)
{
    size_t at = 0, requests = 0;
    while (at < size && !f->error.code) {
        size_t n = 1 + (size_t)(unsigned char)bytes[at] % max;
        n = n < size - at ? n : size - at;
        size_t good = srv_framing_read(f, bytes + at, n);
        if (good > n || (good < n && !f->error.code))
            abort();
        at += good;
        if (srv_framing_is_between_requests(f) && !f->error.code)
            requests = at;
        if (good < n)
            break;
    }
    return f->error.code ? requests : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t max[] = {1, 7, 251};
    struct srv_framing whole = {0};
    char *blanked = malloc(2 * size + 1), *bytes = blanked + size;
    memcpy(blanked, data, size);
    size_t good = srv_framing_read(&whole, blanked, size);
    for (size_t i = 0; i < sizeof max / sizeof *max; i++) {
        struct srv_framing cut = {0};
        memcpy(bytes, data, size);
        size_t cut_good = read_in_pieces(bytes, size, max[i], &cut);
        if ((max[i] == 1 && cut_good != good) || /* other pieces hide where requests end */
            (cut.error.code != NULL) != (whole.error.code != NULL) ||
            (cut.error.code && strcmp(cut.error.code, whole.error.code) != 0))
            abort();
        if (max[i] == 1 && memcmp(bytes, blanked, good) != 0)
            abort();
        srv_framing_free(&cut);
    }
    free(blanked);
    srv_framing_free(&whole);
    return 0;
}
