/* Encodings of tables that are text, beside the C library's iconv. */
#include "api/json/json_text.h"
#include "tests/suites/support/monitors.h"
#include "tests/suites/tables/tables.h"

#include <criterion/criterion.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Converts from UTF-8 by iconv; returns the bytes, 0 if the text cannot be. */
static size_t encode(const char *encoding, const char *text, char *to, size_t size)
{
    iconv_t converter = iconv_open(encoding, "UTF-8");
    cr_assert(converter != (iconv_t)-1, "%s", encoding);
    char *from = (char *)text, *out = to;
    size_t left = strlen(text), room = size;
    bool good = iconv(converter, &from, &left, &out, &room) != (size_t)-1;
    iconv_close(converter);
    return good ? size - room : 0;
}

static void expect_read(const char *type, const char *body, size_t size, const char *text)
{
    char expected[4000];
    struct table_text got =
        table_read(&(struct table_reading){.content_type = type, .body = body, .size = size});
    snprintf(expected, sizeof expected, "%s: `%s`|b: `1`", text, text);
    cr_expect_str_eq(got.text, expected, "%s", type);
    table_text_free(&got);
}

static const struct {
    const char *type, *iconv;
    int max; /* the greatest character that is tried */
} encodings[] = {
    {"text/csv; charset=windows-1252", "CP1252", 0x2122},
    {"text/csv;charset=\"ISO-8859-1\"", "CP1252", 0xff},
    {"text/csv; charset=latin1", "CP1252", 0xff},
    {"text/csv; header=present; charset=iso-8859-15", "ISO-8859-15", 0x20ac},
    {"text/csv; charset=utf-16", "UTF-16LE", 0x10ffff},
    {"text/csv; charset=UTF-16LE", "UTF-16LE", 0x10ffff},
    {"text/csv; charset=utf-16be", "UTF-16BE", 0x10ffff},
    {"text/plain; charset=utf-16be", "UTF-16BE", 0x10ffff},
    {"text/csv; charset=utf-8", "UTF-8", 0x10ffff},
    {"text/csv; charset=us-ascii", "ASCII", 0x7e},
};

/* Random texts of characters that the encoding has, as a name and as a field. */
Test(tables_encodings, are_those_of_iconv)
{
    unsigned long long seed = 1;
    for (size_t i = 0; i < COUNT(encodings); i++)
        for (int round = 0; round < 300; round++) {
            char text[400] = "", table[1000], body[4000];
            size_t n = 0;
            for (int tries = 0; tries < 40; tries++) {
                char one[8] = "", coded[16];
                long c = 0x21 + (long)(uniform(&seed) * uniform(&seed) * (encodings[i].max - 0x20));
                bool is_bad = (c >= 0xd800 && c < 0xe000) || (c >= 0x7f && c < 0xa0) ||
                              strchr("\",;|", (int)(c < 128 ? c : 'x')) || c == 0xfeff;
                size_t size = is_bad ? 0 : api_utf8_write(one, c);
                if (size && encode(encodings[i].iconv, one, coded, sizeof coded) > 0) {
                    memcpy(text + n, one, size);
                    n += size;
                }
            }
            if (n == 0)
                continue;
            snprintf(table, sizeof table, "%s,b\n%s,1\n", text, text);
            expect_read(encodings[i].type, body,
                        encode(encodings[i].iconv, table, body, sizeof body), text);
        }
}

/* A mark tells UTF-16 whatever the type says. */
Test(tables_encodings, of_utf_16_are_told_by_their_mark)
{
    static const char *const types[] = {"text/csv",
                                        NULL,
                                        "text/plain",
                                        "text/csv; charset=utf-8",
                                        "text/csv; charset=utf-16",
                                        "application/vnd.ms-excel"};
    for (size_t i = 0; i < COUNT(types); i++)
        for (int big = 0; big <= 1; big++) {
            char body[200];
            size_t size = encode(big ? "UTF-16BE" : "UTF-16LE",
                                 "\xef\xbb\xbf\xc3\xa9,b\r\n\xc3\xa9,1\r\n", body, sizeof body);
            expect_read(types[i], body, size, "\xc3\xa9");
        }
    char body[200];
    size_t size =
        encode("UTF-16LE", "\xef\xbb\xbf{\"columns\":{\"\xc3\xa9\":[1]}}", body, sizeof body);
    struct table_text got = table_read(&(struct table_reading){.body = body, .size = size});
    cr_expect_str_eq(got.text, "\xc3\xa9: 1");
    table_text_free(&got);
}

Test(tables_encodings, that_are_wrong_are_told_with_the_byte)
{
    static const struct {
        const char *type, *body;
        size_t size;
        const char *expected;
    } cases[] = {
        {"text/csv", "a\nM\xfcller\n", 0,
         "csv_malformed line 2: byte 3 (0xFC) is not UTF-8: save the file as UTF-8, or name its "
         "encoding~"},
        {"text/csv", "a\n\xcf\xf0\xe8\n", 0, "csv_malformed line 2: byte 2 (0xCF) is not UTF-8~"},
        {"text/csv; charset=utf-16", "a\0\n\0\x00\xd8\n\0", 8,
         "csv_malformed byte 4 is not UTF-16"},
        {"text/csv; charset=utf-16be", "\0a\0\n\0", 5, "csv_malformed byte 4 is not UTF-16"},
        {"text/csv", "a\0,\0b\0\n\0", 8, "csv_malformed line 1: there is a NUL at byte 1~"},
        {"text/csv; charset=koi8-r", "a\n1\n", 0,
         "media_type_unsupported the charset 'koi8-r' is not supported ~"},
        {"text/csv; charset=", "a\n1\n", 0, "a: `1`"},
        {"application/json; charset=iso-8859-1", "{\"columns\":{\"a\":[\"\xe9\"]}}", 0,
         "a: '\xc3\xa9'"},
        {NULL, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8,
         "media_type_unsupported this is a spreadsheet~"},
        {"application/vnd.ms-excel", "a;b\n1;2\n", 0, "a: `1`|b: `2`"},
        {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "PK", 0,
         "media_type_unsupported this is a spreadsheet~"},
        {NULL, "PK\3\4\x14\0\6\0\b\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\0\0[Content_Types].xml",
         49, "media_type_unsupported this is a spreadsheet~"},
        {NULL, "\x1f\x8b\b\0\0\0\0\0", 8, "media_type_unsupported this is a gzip file~"},
        {NULL, "PK\3\4\x14\0\0\0\0\0\0\0!\0\0\0\0\0\2\0\0\0\2\0\0\0\5\0\0\0a.csvx\n", 37,
         "media_type_unsupported this is a ZIP archive~"},
        {"text/csv", "BZh91AY&SY\0\0", 12, "media_type_unsupported this is bzip2~"},
        {NULL,
         "\xfd"
         "7zXZ\0",
         6, "media_type_unsupported this is xz~"},
        {NULL, "\x28\xb5\x2f\xfd\4", 5, "media_type_unsupported this is zstd~"},
        {NULL, "SQLite format 3\0\x10", 17, "media_type_unsupported this is a database of SQLite~"},
        {NULL, "\x80\4\x95", 3, "media_type_unsupported this is a pickle~"},
        {NULL, "\x93NUMPY\1", 7, "media_type_unsupported this is a .npy file~"},
        {"text/csv", "version https://git-lfs.github.com/spec/v1\noid sha256:aa\n", 0,
         "media_type_unsupported this is a pointer of Git LFS~"},
        {NULL, "<!DOCTYPE html>\n", 0, "media_type_unsupported this is a page of HTML~"},
        {"text/x-csv", "BZh,b\n1,2\n", 0, "BZh: `1`|b: `2`"},
        {"binary/octet-stream", "a,b\n1,2\n", 0, "a: `1`|b: `2`"},
        {"text/csv", "Report of June\nx,y\n1,2\n", 0,
         "csv_malformed line 1 is no header: it has one field, and line 2 has more; remove it"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_text got = table_read(&(struct table_reading){
            .content_type = cases[i].type, .body = cases[i].body, .size = cases[i].size});
        bool is_begin = strchr(cases[i].expected, '~') != NULL;
        size_t size = strcspn(cases[i].expected, "~");
        cr_expect(strncmp(got.text, cases[i].expected, size) == 0 && (is_begin || !got.text[size]),
                  "%zu: %s", i, got.text);
        table_text_free(&got);
    }
}

/* A converted text is bounded as an unpacked one. */
Test(tables_encodings, have_a_bound)
{
    struct api_budget small = {.limit = 100000};
    static char body[100001];
    memset(body, 0xe9, sizeof body - 1);
    memcpy(body, "a\n", 2);
    struct table_text got = table_read(&(struct table_reading){
        .content_type = "text/csv; charset=latin1", .body = body, .budget = &small});
    cr_expect_str_eq(got.problem.code, "out_of_memory", "%s", got.text);
    table_text_free(&got);
}

/* ---- gzip */

static size_t zip(const char *text, size_t size, char *to, size_t room)
{
    z_stream z = {.next_in = (unsigned char *)text,
                  .avail_in = (unsigned)size,
                  .next_out = (unsigned char *)to,
                  .avail_out = (unsigned)room};
    cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static struct answer send(const struct api_service *service, const char *line, const char *type,
                          const char *coding, const char *body, size_t size)
{
    return monitors_send(service,
                         &(struct monitors_request){.line = line,
                                                    .type = type,
                                                    .body = body,
                                                    .size = size,
                                                    .headers = {{"Content-Encoding", coding}}});
}

Test(tables_encodings, gzip_is_undone_whether_it_is_said_or_not)
{
    static const char *const types[] = {"text/csv", NULL, "application/x-gzip",
                                        "application/x-www-form-urlencoded"};
    static const char table[] = "a,b\n1.5,x\n2.5,y\n1.5,x\n";
    char zipped[400], twice[500];
    size_t size = zip(table, strlen(table), zipped, sizeof zipped),
           twice_size = zip(zipped, size, twice, sizeof twice);
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(types); i++)
        for (int said = 0; said <= 1; said++) {
            const char *coding = said ? "gzip" : NULL;
            struct answer answer =
                send(&service, "PUT /monitors/g", types[i], coding, zipped, size);
            cr_expect_eq(answer.status, i + (size_t)said ? 200 : 201, "%s",
                         text_of(answer.json, "detail"));
            answer_free(&answer);
            answer =
                send(&service, "POST /monitors/g/observations", types[i], coding, zipped, size);
            cr_expect_eq(answer.status, 200, "%s", text_of(answer.json, "detail"));
            cr_expect_eq(number_at(answer.json, "monitors.0.kl"), 0);
            answer_free(&answer);
        }
    struct answer answer = send(&service, "PUT /monitors/g", "text/csv", NULL, zipped, size - 9);
    cr_expect_str_eq(text_of(answer.json, "code"), "content_malformed");
    answer_free(&answer);
    answer = send(&service, "PUT /monitors/g", NULL, NULL, twice, twice_size);
    cr_expect_str_eq(text_of(answer.json, "code"), "media_type_unsupported");
    answer_free(&answer);
    monitors_end(&service);
}

Test(tables_encodings, gzip_that_is_not_said_has_the_same_bounds)
{
    enum { LARGE = 3 << 20 };
    struct api_service service = monitors_new(10);
    char *text = malloc(LARGE), *zipped = malloc(LARGE);
    memset(text, '1', LARGE);
    memcpy(text, "a\n", 2);
    size_t size = zip(text, LARGE, zipped, LARGE);
    struct answer answer = send(&service, "PUT /monitors/g", "text/csv", NULL, zipped, size);
    cr_expect_str_eq(text_of(answer.json, "code"), "body_too_large", "%d %s", answer.status,
                     text_of(answer.json, "detail"));
    answer_free(&answer);
    free(text);
    free(zipped);
    monitors_end(&service);
}
