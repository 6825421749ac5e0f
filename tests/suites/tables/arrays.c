/* Tables of arrays: the rules of .npz and safetensors; allocations that fail in every format. */
#include "tests/suites/support/support.h"
#include "tests/suites/tables/files.h"
#include "tests/suites/tables/tables.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const double numbers[] = {1, 2.5, -3, 0, 100};
static const char texts[][8] = {"x", "", "\xc3\xa9\xf0\x9f\x98\x80"};

/* Expects the start of a table's text. */
static void expect_start(const char *text, const char *expected)
{
    cr_expect(strncmp(text, expected, strlen(expected)) == 0, "gives    %s\n  and not %s", text,
              expected);
}

static void check_npz(const struct tables_array *arrays, size_t n, const char *expected)
{
    for (int deflated = 0; deflated <= 1; deflated++) {
        struct api_buffer body = {0};
        tables_npz(&body, arrays, n, deflated);
        for (int in_turn = 0; in_turn <= 1; in_turn++) {
            struct table_text result = table_read(&(struct table_reading){
                "application/x-npz", .body = body.data, .size = body.size, .in_turn = in_turn});
            expect_start(result.text, expected);
            table_text_free(&result);
        }
        api_buffer_free(&body);
    }
}

Test(tables_arrays, npz_has_numbers_truths_and_texts)
{
    static const double large[] = {9007199254740993, 9223372036854775000, -5};
    const struct tables_array arrays[] = {
        {.name = "a", .dtype = "f8", .n = 3, .numbers = numbers},
        {.name = "b/c", .dtype = "f4", .n = 3, .numbers = numbers, .swapped = true},
        {.name = "\xc3\xa9", .dtype = "f2", .n = 3, .numbers = numbers, .swapped = true},
        {.name = "d", .dtype = "i2", .n = 3, .numbers = numbers, .swapped = true},
        {.name = "e", .dtype = "u1", .n = 3, .numbers = numbers + 2},
        {.name = "f", .dtype = "b1", .n = 3, .numbers = numbers + 2},
        {.name = "g", .dtype = "U", .n = 3, .texts = texts[0], .text_size = 8, .swapped = true},
        {.name = "h", .dtype = "i8", .n = 3, .numbers = large},
        {.name = "i", .dtype = "u8", .n = 3, .numbers = numbers + 3, .shape = "(3L,)"}};
    check_npz(arrays, COUNT(arrays) - 1,
              "a: 1 2.5 -3|b/c: 1 2.5 -3|\xc3\xa9: 1 2.5 -3|d: 1 2 -3|e: 253 0 100|"
              "f: true false true|g: 'x' '' '\xc3\xa9\xf0\x9f\x98\x80'|"
              "h: 9007199254740992 9.2233720368547748e+18 -5");
}

Test(tables_arrays, npz_that_has_no_columns_is_refused)
{
    static const struct {
        struct tables_array arrays[2];
        size_t n;
        const char *expected;
    } cases[] = {
        {{{.name = "a", .dtype = "f8", .n = 2, .numbers = numbers, .shape = "(2, 1)"}},
         1,
         "shape_invalid entry a.npy has 2 axes, but a column has one"},
        {{{.name = "a", .dtype = "f8", .n = 1, .numbers = numbers, .shape = "()"}},
         1,
         "shape_invalid entry a.npy has 0 axes"},
        {{{.name = "a", .dtype = "f8", .n = 1, .numbers = numbers, .shape = "(2,)"}},
         1,
         "npy_malformed entry a.npy: shape and descr do not fit the 8 bytes"},
        {{{.name = "a",
           .dtype = "f8",
           .n = 1,
           .numbers = numbers,
           .shape = "(2305843009213693953,)"}},
         1,
         "npy_malformed entry a.npy: shape and descr"},
        {{{.name = "a", .dtype = "f8", .n = 1, .numbers = numbers, .shape = "(x,)"}},
         1,
         "npy_malformed entry a.npy: byte "},
        {{{.name = "a", .dtype = "c8", .n = 1, .numbers = numbers}},
         1,
         "dtype_unsupported entry a.npy: numpy's dtype '<c8' is not one of"},
        {{{.name = "a", .dtype = "O8", .n = 1, .numbers = numbers}},
         1,
         "dtype_unsupported entry a.npy: numpy's dtype '<O8' is not one of"},
        {{{.name = "a", .dtype = "f8", .n = 2, .numbers = numbers},
          {.name = "b", .dtype = "f8", .n = 3, .numbers = numbers}},
         2,
         "columns_unequal column 'b' has 3 values, and 'a' has 2"},
        {{{.name = "a", .dtype = "f8"}}, 1, "a:"},
        {{{.name = "a", .dtype = "U"}}, 1, "a:"},
        {{{.name = "a", .dtype = "U0"}}, 1, "a:"},
        {{{.name = "a", .dtype = "U0", .shape = "(2305843009213693951,)"}},
         1,
         "dtype_unsupported entry a.npy: elements of numpy's dtype '<U0' have no bytes"},
        {{{.name = "a", .dtype = "U0", .shape = "(1,)"}},
         1,
         "dtype_unsupported entry a.npy: elements of numpy's dtype '<U0' have no bytes"},
        {{{.name = "a", .dtype = "S0", .shape = "(1000000000000,)"}},
         1,
         "dtype_unsupported entry a.npy: numpy's dtype '<S0' is not one of"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_npz(cases[i].arrays, cases[i].n, cases[i].expected);
}

static void check_body(const char *type, const struct api_buffer *body, const char *expected)
{
    struct table_text result = table_read(
        &(struct table_reading){type, .body = body->data, .size = body->size, .only = "a"});
    expect_start(result.text, expected);
    table_text_free(&result);
}

Test(tables_arrays, broken_archives_are_refused)
{
    const struct tables_array array = {.name = "a", .dtype = "f8", .n = 5, .numbers = numbers};
    struct api_buffer body = {0};
    tables_npz(&body, &array, 1, false);
    check_body(NULL, &body, "a: 1 2.5 -3 0 100");
    body.data[200] ^= 1; /* an element */
    check_body(NULL, &body, "npz_malformed entry a.npy cannot be read: CRC error");
    body.size -= 1;
    check_body(NULL, &body, "npz_malformed the body is not a valid .npz file");
    api_buffer_free(&body);
    check_body("application/x-npz", &(struct api_buffer){.data = (char[]){"x"}, .size = 1},
               "npz_malformed the body is not a valid .npz file");
}

/* Two thousand entries, and one array that inflates to more than the reader of the tests allows. */
Test(tables_arrays, archives_have_many_entries_of_a_bounded_size)
{
    enum { ENTRIES = 2000, ELEMENTS = 9 << 20 };
    static struct tables_array arrays[ENTRIES];
    static char names[ENTRIES][24];
    struct api_buffer body = {0};
    for (size_t i = 0; i < ENTRIES; i++) {
        snprintf(names[i], sizeof names[i], "a%.*zu", i > 0, i);
        arrays[i] =
            (struct tables_array){.name = names[i], .dtype = "i1", .n = 2, .numbers = numbers};
    }
    strcpy(names[0], "a");
    tables_npz(&body, arrays, ENTRIES, true);
    check_body(NULL, &body, "a: 1 2|a1:|a2:");
    api_buffer_free(&body);
    double *zeros = calloc(ELEMENTS, sizeof *zeros);
    cr_assert(zeros);
    const struct tables_array large = {.name = "a", .dtype = "f8", .n = ELEMENTS, .numbers = zeros};
    tables_npz(&body, &large, 1, true);
    check_body(NULL, &body, "body_too_large entry a.npy makes the arrays larger");
    api_buffer_free(&body);
    free(zeros);
}

/* Makes an archive of one stored entry whole again after its bytes were changed. */
static void mend_checksum(struct api_buffer *body)
{
    uint16_t name, extra;
    uint32_t size, checksum;
    memcpy(&size, body->data + 18, sizeof size);
    memcpy(&name, body->data + 26, sizeof name);
    memcpy(&extra, body->data + 28, sizeof extra);
    checksum = (uint32_t)crc32(0, (const unsigned char *)body->data + 30 + name + extra, size);
    memcpy(body->data + 14, &checksum, sizeof checksum);
    char *entry = memmem(body->data, body->size, "PK\1\2", 4);
    cr_assert(entry);
    memcpy(entry + 16, &checksum, sizeof checksum);
}

Test(tables_arrays, texts_of_numpy_are_unicode)
{
    static const uint32_t wrong[] = {0xd800, 0xdfff, 0x110000, 0xffffffff, 0};
    const struct tables_array array = {
        .name = "a", .dtype = "U", .n = 2, .texts = "w\0\0\0xyz", .text_size = 4};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct api_buffer body = {0};
        tables_npz(&body, &array, 1, false);
        char *x = memmem(body.data, body.size, "x\0\0\0y", 5);
        cr_assert(x);
        memcpy(x, &wrong[i], sizeof wrong[i]);
        mend_checksum(&body);
        check_body(NULL, &body, "value_invalid row 1 of column 'a': a text holds");
        api_buffer_free(&body);
    }
}

static void put_safetensors(struct api_buffer *to, const char *header, size_t data)
{
    uint64_t size = strlen(header);
    api_append(to, &size, sizeof size);
    api_append_text(to, header);
    for (size_t i = 0; i < data; i++)
        api_append(to, "\1", 1);
}

Test(tables_arrays, safetensors_are_read_by_their_rules)
{
    static const struct {
        const char *header;
        size_t data;
        const char *expected;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[1,5]},"
         "\"b\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         5, "columns_unequal column 'b' has 1 values, and 'a' has 2"},
        {"{\"a\":{\"dtype\":\"I16\",\"shape\":[1],\"data_offsets\":[1,3]},"
         "\"b\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         3, "a: 257|b: true"},
        {"{\"__metadata__\":{\"x\":\"y\"},\"a\":{\"dtype\":\"BF16\",\"shape\":[0],\"data_offsets\":"
         "[0,0]}}",
         0, "a:"},
        {"{}", 0, ""},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2,
         "safetensors_malformed the tensors end at byte 1 of the data, but the data has 2 bytes"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2,
         "safetensors_malformed a: data_offsets begin at 1, not at 0: tensors must neither overlap "
         "nor leave gaps"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, "safetensors_malformed b: data_offsets begin at 1, not at 2: tensors must neither"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1],\"data_offsets\":[0,1]}}", 1,
         "shape_invalid it has 2 axes, but a column has one"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
         "shape_invalid it has 0 axes"},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
         "dtype_unsupported dtype F8_E4M3 is not one of"},
        {"{\"a\":{\"dtype\":\"U16\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
         "safetensors_malformed a: shape and dtype do not fit the 1 bytes"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,9]}}", 1,
         "safetensors_malformed a: data_offsets [0, 9] are not within the 1 bytes of data"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}}", 1,
         "safetensors_malformed a: data_offsets [1, 0] are not within the 1 bytes of data"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1,
         "safetensors_malformed a: shape must be an array of at most 64 non-negative integers"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, "safetensors_malformed the header is not JSON: byte "},
        {"{\"a\":5}", 0, "safetensors_malformed a: its entry in the header is not an object"},
        {"{\"a\":{", 0, "safetensors_malformed the header is not JSON"},
        {"[]", 0, "safetensors_malformed the header does not begin with '{'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer body = {0};
        put_safetensors(&body, cases[i].header, cases[i].data);
        for (int named = 0; named <= 1; named++) {
            struct table_text result = table_read(&(struct table_reading){
                named || cases[i].header[0] != '{' || cases[i].header[1] != '"'
                    ? "application/safetensors"
                    : NULL,
                .body = body.data, .size = body.size});
            expect_start(result.text, cases[i].expected);
            table_text_free(&result);
        }
        api_buffer_free(&body);
    }
}

/* 200 columns, which is more than calls have members, and metadata longer than a text of calls. */
Test(tables_arrays, safetensors_have_many_columns_and_long_metadata)
{
    static const struct {
        const char *name, *expected;
    } cases[] = {
        {"last", "c0: 1|"},
        {"c7", "safetensors_malformed the header is not JSON: byte "},
        {"\\u00637", "safetensors_malformed the header is not JSON: byte "},
        {NULL, "safetensors_malformed a name in the header is longer than 1024 bytes"},
    };
    enum { COLUMNS = 200 };
    char padding[2001], long_name[1101];
    memset(padding, 'x', sizeof padding - 1);
    memset(long_name, 'n', sizeof long_name - 1);
    padding[sizeof padding - 1] = long_name[sizeof long_name - 1] = '\0';
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer header = {0}, body = {0};
        api_append_text(&header, "{\"__metadata__\":{\"a\":\"");
        api_append_text(&header, padding);
        api_append_text(&header, "\"},");
        for (size_t j = 0; j < COLUMNS; j++)
            api_append_format(&header,
                              "\"c%zu\":{\"dtype\":\"U8\",\"shape\":[1],"
                              "\"data_offsets\":[%zu,%zu]},",
                              j, j, j + 1);
        api_append_text(&header, "\"");
        api_append_text(&header, cases[i].name ? cases[i].name : long_name);
        api_append_text(&header, "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[200,201]}}");
        api_append(&header, "", 1);
        put_safetensors(&body, header.data, COLUMNS + 1);
        struct table_text result = table_read(&(struct table_reading){
            "application/safetensors", .body = body.data, .size = body.size});
        expect_start(result.text, cases[i].expected);
        table_text_free(&result);
        api_buffer_free(&header);
        api_buffer_free(&body);
    }
}

/* ---- Memory */

static void fail_each(const char *type, const char *body, size_t size, const char *expected)
{
    for (int sticky = 0; sticky <= 1; sticky++)
        for (long n = 0;; n++) {
            cr_assert_lt(n, 500);
            fail_allocation(n, sticky);
            struct table_text result = table_read(
                &(struct table_reading){type, .body = body, .size = size, .kind = API_ONE_COLUMN});
            bool failed = allocation_failed();
            fail_allocation(-1, false);
            if (!failed || !result.problem.code)
                cr_expect(strcmp(result.text, expected) == 0, "%s, %ld", type, n);
            else
                cr_expect_str_eq(result.problem.code, "out_of_memory", "%s, %ld: %s", type, n,
                                 result.problem.detail);
            table_text_free(&result);
            if (!failed)
                break;
        }
}

Test(tables_arrays, each_allocation_fails_in_turn)
{
    static char quoted[3000] = "a,b\n\"";
    static const char json[] = "{\"values\":[\"\\u0061\",1],\"n\":[1,2]}";
    static const char rows[] = "{\"rows\":[{\"a\":\"\\n\",\"\\u0062\":2},{\"b\":1}]}";
    static const char columns[] = "{\"columns\":{\"a\":[1,2],\"b\":[true,null]}}";
    memset(quoted + 5, 'x', 2000);
    memcpy(quoted + 1000, "\"\"", 2); /* only then is the field copied */
    strcpy(quoted + 2005, "\",1\n");
    char expected[3000] = "a: `";
    memset(expected + 4, 'x', 1999);
    expected[999] = '"';
    strcpy(expected + 2003, "`|b: `1`");
    fail_each("text/csv", quoted, 0, expected);
    fail_each("application/json", json, 0, "values: 'a' 1");
    fail_each("application/json", rows, 0, "a: '\\' -|b: 2 1");
    fail_each("application/json", columns, 0, "a: 1 2|b: true -");
    const struct tables_array arrays[] = {
        {.name = "a", .dtype = "f8", .n = 2, .numbers = numbers},
        {.name = "b", .dtype = "U", .n = 2, .texts = texts[0], .text_size = 8}};
    struct api_buffer body = {0};
    tables_npz(&body, arrays, 2, true);
    fail_each("application/x-npz", body.data, body.size, "a: 1 2.5|b: 'x' ''");
    api_buffer_free(&body);
    tables_safetensors(&body, arrays, 1, 3);
    fail_each("application/x-safetensors", body.data, body.size, "a: 1 2.5");
    api_buffer_free(&body);
}

/* A table is read with little memory beside its body. */
Test(tables_arrays, csv_of_many_columns_takes_little_memory)
{
    enum { COLUMNS = 100, ROWS = 10000 };
    struct api_budget budget = {.limit = 200 << 10};
    struct api_buffer body = {0};
    for (int row = 0; row <= ROWS; row++)
        for (int i = 0; i < COLUMNS; i++)
            api_append_format(&body, row ? "\"%d\"%s" : "a%d%s", i, i + 1 < COLUMNS ? "," : "\n");
    size_t before = bytes_allocated();
    struct table_text result = table_read(&(struct table_reading){
        "text/csv", .body = body.data, .size = body.size, .only = "none", .budget = &budget});
    cr_expect(!result.problem.code, "%s", result.text);
    cr_expect_eq(result.n_rows, ROWS);
    cr_expect_lt(bytes_allocated() - before, 200 << 10);
    table_text_free(&result);
    api_buffer_free(&body);
}
