/* The file of --notify: what is read keeps its promises. Then messages, of which the input's texts are names and causes:
 * they are JSON. */
#include "api/memory/budget.h"
#include "api/notify/message.h"
#include "api/text/url.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_receivers(const struct api_receivers *receivers)
{
    for (size_t i = 0; i < receivers->n; i++) {
        const struct api_receiver *receiver = &receivers->list[i];
        if (!*receiver->name || strlen(receiver->name) > 128 || !receiver->groups[0] ||
            !receiver->states || api_url_reason(receiver->url) ||
            api_receivers_find(receivers, receiver->name) != i)
            abort();
        for (char *const *field = receiver->headers; *field; field++)
            if (strpbrk(*field, "\r\n") || !strstr(*field, ": "))
                abort();
        api_receiver_wants(receiver, "g", API_OK, API_CRITICAL);
    }
}

static void check_messages(const char *text, size_t size)
{
    struct api_change change = {
        .group = text, .name = text + size / 3, .sentence = text + 2 * (size / 3)};
    struct api_message message = {.id = "0", .public_url = "http://h", .n = 1, .changes = &change};
    change.from = (int)(size % API_STATES);
    change.to = (int)(size / API_STATES % API_STATES);
    for (int format = 0; format < API_NOTIFY_FORMATS; format++) {
        struct api_buffer out = {0};
        api_message_write(&message, (enum api_notify_format)format, &out);
        json_t *json = out.failed ? NULL : json_loadb(out.data, out.size, 0, NULL);
        if (!json)
            abort();
        json_decref(json);
        api_buffer_free(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct api_problem problem = {.code = NULL};
    char *text = calloc(1, size + 64); /* with the padding that the parser reads */
    if (!text)
        abort();
    memcpy(text, data, size);
    struct api_receivers *receivers = api_receivers_read(text, size, &problem);
    if (!receivers != (problem.code != NULL))
        abort();
    if (receivers)
        check_receivers(receivers);
    api_receivers_release(receivers);
    if (size <= 128)
        check_messages(text, strlen(text));
    free(text);
    return 0;
}
