/* The framing guard: a target and header fields, one per line. Accepted requests must be
 * unambiguous. */
#include "server/guard.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct srv_framing framing = {0};
    struct srv_refusal refusal = {0};
    struct srv_guard_state state = {.framing = &framing, .refusal = &refusal};
    char *text = calloc(1, size + 1), *rest = NULL;
    if (!text)
        abort();
    memcpy(text, data, size);
    char *line = strtok_r(text, "\n", &rest);
    bool good = true;
    size_t lengths = 0;
    if (!line || !srv_guard_target(line))
        line = rest = NULL;
    while (line && good && (line = strtok_r(NULL, "\n", &rest))) {
        char *colon = strchr(line, ':');
        const char *value = colon ? colon + 1 : "";
        size_t name_size = colon ? (size_t)(colon - line) : strlen(line);
        good = srv_guard_field(&state, line, name_size, value, strlen(value));
        lengths += good && name_size == 14 && strncasecmp(line, "content-length", 14) == 0;
    }
    if (good == (refusal.code != NULL))
        abort();
    if (good && (lengths > 1 || framing.content_length > 999999999999999))
        abort();
    free(text);
    return 0;
}
