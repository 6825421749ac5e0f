/* JSON by templates. */
#include "api/json/format.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define EXPECT(expected, ...)                                                                      \
    do {                                                                                           \
        struct api_buffer out = {0};                                                               \
        api_write_json(&out, __VA_ARGS__);                                                         \
        api_append(&out, "", 1);                                                                   \
        cr_expect_str_eq(out.data, expected, "%s instead of %s", out.data, expected);              \
        api_buffer_free(&out);                                                                     \
    } while (0)

Test(format, conversions)
{
    const char *volatile none = NULL; /* else compilers warn of it */
    EXPECT("{\"a\":\"it's \\\"b\\\"\",\"c\":null}", "{'a':%s,'c':%s}", "it's \"b\"", none);
    EXPECT("[0.1,3,-2.5,null,null,1e300]", "[%g,%g,%g,%g,%g,%g]", 0.1, 3., -2.5, (double)NAN,
           (double)INFINITY, 1e300);
    EXPECT("[true,false,true]", "[%d,%d,%d]", 1, 0, -7);
    EXPECT("[0,-5,9223372036854775807,-9223372036854775808]", "[%ld,%ld,%ld,%ld]", 0L, -5L,
           (long)INT64_MAX, (long)INT64_MIN);
    EXPECT("18446744073709551615", "%zu", SIZE_MAX);
    EXPECT("[\"1970-01-01T00:00:01.500000Z\",null,\"2026-11-20T12:00:00Z\"]", "[%jd,%jd,%jd]",
           (intmax_t)1500000, (intmax_t)API_NO_TIME, (intmax_t)1795176000000000);
}

Test(format, times)
{
    EXPECT("\"0001-01-01T00:00:00Z\"", "%jd", (intmax_t)-62135596800 * 1000000);
    EXPECT("\"1969-12-31T23:59:59.999999Z\"", "%jd", (intmax_t)-1);
    EXPECT("\"2024-02-29T08:07:06.000050Z\"", "%jd", (intmax_t)1709194026000050);
    EXPECT("\"9999-12-31T23:59:59Z\"", "%jd", (intmax_t)253402300799 * 1000000);
}

/* What is written is what JSON's parser reads back, also of texts that end or begin with a quote or a percent sign. */
Test(format, is_json)
{
    static const char *const texts[] = {"", "'", "%s", "100 %", "\"", "\\", "\x01", "ä €", "\xff"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct api_buffer out = {0};
        api_write_json(&out, "{'a':[%s,%zu],'b':{'c':%d}}", texts[i], i, i == 3);
        json_t *json = json_loadb(out.data, out.size, 0, NULL);
        cr_assert(json, "%zu: %.*s", i, (int)out.size, out.data);
        const char *text = json_string_value(json_array_get(json_object_get(json, "a"), 0));
        cr_expect_str_eq(text, i == 8 ? "\xef\xbf\xbd" : texts[i], "%zu: %s", i, text);
        json_decref(json);
        api_buffer_free(&out);
    }
}

Test(format, without_memory_it_fails)
{
    struct api_budget budget = {.limit = 1};
    struct api_buffer out = {.budget = &budget};
    api_write_json(&out, "{'a':%s,'b':%jd}", "text", (intmax_t)0);
    cr_expect(out.failed);
    cr_expect_eq(out.size, 0);
    api_buffer_free(&out);
}
