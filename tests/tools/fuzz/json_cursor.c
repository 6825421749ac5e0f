/* The reader of JSON texts in one pass against jansson: both accept the same texts but for repeated names and
 * numbers out of range, and read the same. */
#include "api/json/json_cursor.h"
#include "api/text/number.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void compare(struct api_json_cursor *c, const json_t *theirs)
{
    char text[API_JSON_TEXT];
    struct api_json_cursor again = *c;
    size_t n = 0, number;
    if (json_is_object(theirs)) {
        require(api_json_open(c, '{'));
        for (; api_json_member(c, text); n++)
            compare(c, json_object_get(theirs, text));
        require(n == json_object_size(theirs));
    } else if (json_is_array(theirs)) {
        require(api_json_is_boxed(c) ==
                (json_array_size(theirs) == 1 && !json_is_array(json_array_get(theirs, 0)) &&
                 !json_is_object(json_array_get(theirs, 0))));
        require(api_json_open(c, '['));
        for (; api_json_item(c); n++)
            compare(c, json_array_get(theirs, n));
        require(n == json_array_size(theirs));
    } else if (json_is_string(theirs)) {
        require(api_json_string(c, text) && strcmp(text, json_string_value(theirs)) == 0);
        require(api_json_characters(&again, text) && again.p == c->p);
    } else {
        require(theirs);
        if (api_json_size(c, &number))
            require(json_is_integer(theirs) && (json_int_t)number == json_integer_value(theirs));
        require(!api_json_string(&again, text) && again.p == c->p);
    }
    require(!c->problem->code);
}

/* Skips the whole text; false if it is malformed. */
static bool skip(const char *text, size_t size, bool is_large)
{
    struct api_problem problem = {0};
    struct api_json_cursor c;
    api_json_begin(&c, text, size, is_large, &problem);
    bool good = api_json_skip(&c) && api_json_end(&c);
    require(good == !problem.code && c.p >= text && c.p <= text + size);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + API_PADDING);
    require(text);
    memcpy(text, data, size);
    bool is_small = skip(text, size, false),
         has_mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    require(!is_small || skip(text, size, true));
    json_t *theirs = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    json_t *loose = json_loadb(text, size, JSON_DECODE_ANY, NULL);
    if (is_small && theirs) {
        struct api_problem problem = {0};
        struct api_json_cursor c;
        api_json_begin(&c, text, size, false, &problem);
        compare(&c, theirs);
    }
    /* jansson rejects numbers out of range, accepts NULs in places, and knows no marks */
    require(!is_small || loose || has_mark || memchr(text, 'e', size) || memchr(text, 'E', size) ||
            size > 18);
    require(is_small || !theirs || memchr(text, '\0', size) || size > 16);
    json_decref(theirs);
    json_decref(loose);
    free(text);
    return 0;
}
