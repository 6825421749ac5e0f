/* The reader of small JSON texts against jansson: both accept the same texts, and every accepted
 * text can be iterated. */
#include "api/json/json_reader.h"
#include "api/text/number.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const char *value, const json_t *theirs)
{
    char text[API_JSON_TEXT];
    const char *inner;
    size_t n = 0, number;
    if (json_is_object(theirs)) {
        struct api_json_reader reader = api_json_read_object(value);
        for (; api_json_next_member(&reader, text, &inner); n++)
            compare(inner, json_object_get(theirs, text));
        if (n != json_object_size(theirs))
            abort();
    } else if (json_is_array(theirs)) {
        struct api_json_reader reader = api_json_read_array(value);
        for (; api_json_next_item(&reader, &inner); n++)
            compare(inner, json_array_get(theirs, n));
        if (n != json_array_size(theirs))
            abort();
    } else if (json_is_string(theirs)) {
        if (!api_json_string(value, text) || strcmp(text, json_string_value(theirs)) != 0)
            abort();
    } else if (json_is_integer(theirs) && api_json_size(value, &number)) {
        if ((json_int_t)number != json_integer_value(theirs))
            abort();
    } else if (!theirs) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at, *what;
    char *text = calloc(1, size + API_PADDING);
    if (!text)
        abort();
    memcpy(text, data, size);
    json_t *theirs = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    bool is_small = api_json_check(text, size, false, &at, &what);
    if (is_small && !api_json_check(text, size, true, &at, &what))
        abort();
    if (is_small) {
        const char *start = text + strspn(text, " \t\r\n");
        /* jansson rejects numbers out of range */
        if (theirs && (*start == '{' || *start == '['))
            compare(start, theirs);
        else if (!theirs && !strpbrk(text, "eE") && !strpbrk(text, "0123456789"))
            abort();
    } else if (at < text || at > text + size + 1 || !what) {
        abort();
    }
    json_decref(theirs);
    free(text);
    return 0;
}
