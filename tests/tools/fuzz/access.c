/* Tokens and hosts: the input up to a NUL is a header's value, the rest a token file or a list. */
#include "api/request/tokens.h"
#include "api/text/hosts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts if an empty set takes a token, or a mistake has no place in the text. */
static void check_tokens(const char *header, const char *text, size_t size)
{
    struct api_tokens *tokens = api_tokens_new();
    struct api_parse_error mistake;
    struct api_token found;
    if (!tokens || api_tokens_check(tokens, header, &found) == API_BEARER_KNOWN)
        abort();
    bool good = api_tokens_read(tokens, text, size, &mistake);
    if (good != (api_tokens_count(tokens) > 0) || mistake.line > size + 1)
        abort();
    if (api_tokens_check(tokens, header, &found) == API_BEARER_KNOWN &&
        (!found.scopes || !*found.name || strlen(found.name) >= sizeof found.name))
        abort();
    api_tokens_free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    if (!text)
        abort();
    memcpy(text, data, size);
    size_t header_size = strlen(text);
    char *rest = header_size < size ? text + header_size + 1 : text + size;
    check_tokens(text, rest, (size_t)(text + size - rest));
    if (api_hosts_valid(rest) && api_hosts_have(rest, text, 80) && !*text)
        abort();
    free(text);
    return 0;
}
