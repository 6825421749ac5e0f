#include "tests/suites/faults/script.h"

#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define POST "POST /kl_div"
#define SAFETENSORS "application/x-safetensors"

/* REPLY_ROWS, REPLY_COLUMNS: a loss that does not fit the buffers of a socket. */
enum { REPLY_ROWS = 1536, REPLY_COLUMNS = 1024, LARGE_BODY = 300000, CHUNK = 60000, CHUNKS = 11 };

/* Requests that are text; `type` NULL is one without a body. */
static const struct text {
    const char *name, *line, *fields, *type, *body;
} texts[] = {
    {"JSON", POST "?reduction=batchmean", "", "application/json", TWO_BY_TWO},
    {"every option", POST "?gradient=input,target&diagnose=true&broadcast=true&dim=1", "",
     "application/json",
     "{\"input\": [[1, 2], [3, 4]], \"target\": [[1, 2]], \"mask\": [1, 0], \"weight\": [2, 3]}"},
    {"an option that nobody knows", POST "?redution=mean", "", "application/json", TWO_BY_TWO},
    {"JSON cut off", POST, "", "application/json", "{\"input\": [1, "},
    {"several lines of Accept", POST, "Accept: text/plain\r\nAccept: application/x-npz\r\n",
     "application/json", TWO_BY_TWO},
    {"metrics", "GET /metrics", "", NULL, ""},
    {"the document", "GET /openapi.json", "Accept-Encoding: gzip\r\n", NULL, ""},
    {"100-continue", POST, "Expect: 100-continue\r\n", "application/json", TWO_BY_TWO},
    {"a path that leads nowhere", "GET /nothing", "", NULL, ""},
    {"two lengths", "GET /livez", "Content-Length: 0\r\nContent-Length: 0\r\n", NULL, ""},
    {"a body refused early", "POST /nothing", "Content-Length: 60000000\r\n", NULL, "{"},
};

/* Rows of the table of bodies. */
static const char table[] = "tests/tools/golden/bodies.jsonl";
static const char *const rows[][2] = {
    {"safetensors", "two float64 tensors"},
    {"safetensors", "gzip"},
    {"safetensors", "deflate"},
    {"npy", "C order"},
    {"npz", "numpy.savez_compressed"},
    {"multipart", "JSON and .npy"},
    {"inference", "JSON, flat and nested"},
    {"inference", "binary"},
};

static void begin(struct api_buffer *out, const char *line, const char *fields)
{
    api_append_format(out, "%s HTTP/1.1\r\nHost: a\r\n%s", line, fields);
}

static void end(struct api_buffer *out, const char *type, const void *body, size_t size)
{
    api_append_format(out, "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n", type, size);
    api_append(out, body, size);
}

static void write_text(const struct text *text, struct api_buffer *out)
{
    begin(out, text->line, text->fields);
    if (text->type)
        end(out, text->type, text->body, strlen(text->body));
    else
        api_append_format(out, "\r\n%s", text->body);
}

/* Writes the row of the table that has this format and name. */
static void write_row(const char *format, const char *name, struct api_buffer *out)
{
    size_t size;
    char *text = read_file(table, &size), *rest = text;
    for (char *line; out->size == 0 && (line = strtok_r(rest, "\n", &rest));) {
        json_t *row = json_loads(line, 0, NULL);
        const char *coding = text_of(row, "coding"), *json_size = text_of(row, "json_size");
        if (strcmp(text_of(row, "format"), format) == 0 &&
            strcmp(text_of(row, "name"), name) == 0) {
            char *body = decode_base64(text_of(row, "body"), &size);
            api_append_format(out, "POST %s?%s HTTP/1.1\r\nHost: a\r\n", text_of(row, "path"),
                              text_of(row, "query"));
            if (*coding)
                api_append_format(out, "Content-Encoding: %s\r\n", coding);
            if (*json_size)
                api_append_format(out, "Inference-Header-Content-Length: %s\r\n", json_size);
            end(out, text_of(row, "content_type"), body, size);
            free(body);
        }
        json_decref(row);
    }
    free(text);
    cr_assert_gt(out->size, 0, "%s has no row %s, %s", table, format, name);
}

/* Appends two JSON arrays of 1s, of `size` bytes in all. */
static void append_arrays(struct api_buffer *out, size_t size)
{
    size_t ones = size / 4;
    for (int i = 0; i < 2; i++) {
        api_append_text(out, i ? "],\"target\":[1" : "{\"input\":[1");
        for (size_t j = 1; j < ones; j++)
            api_append_text(out, ",1");
    }
    api_append_text(out, "]}");
}

/* A body that keeps its place as it arrives, and computes on a thread for jobs. */
static void write_large(struct api_buffer *out)
{
    struct api_buffer body = {0};
    append_arrays(&body, LARGE_BODY);
    begin(out, POST "?input_space=logit&target_space=logit&gradient=input,target", "");
    end(out, "application/json", body.data, body.size);
    api_buffer_free(&body);
}

/* A body whose length is not told, which moves as it grows. */
static void write_chunked(struct api_buffer *out)
{
    struct api_buffer body = {0};
    append_arrays(&body, CHUNK * CHUNKS);
    begin(out, POST, "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (size_t at = 0; at < body.size; at += CHUNK) {
        size_t size = body.size - at < CHUNK ? body.size - at : CHUNK;
        api_append_format(out, "%zx\r\n", size);
        api_append(out, body.data + at, size);
        api_append_text(out, "\r\n");
    }
    api_append_text(out, "0\r\n\r\n");
    api_buffer_free(&body);
}

/* An answer of 6 MB, in several pieces. */
static void write_answer_that_waits(struct api_buffer *out)
{
    enum { INPUT = 4 * REPLY_ROWS, TARGET = 4 * REPLY_COLUMNS };
    struct api_buffer body = {0};
    char header[300];
    int size = snprintf(header, sizeof header,
                        "{\"input\":{\"dtype\":\"F32\",\"shape\":[%d,1],\"data_offsets\":[0,%d]},"
                        "\"target\":{\"dtype\":\"F32\",\"shape\":[1,%d],\"data_offsets\":[%d,%d]}}",
                        REPLY_ROWS, INPUT, REPLY_COLUMNS, INPUT, INPUT + TARGET);
    api_append(&body, &(uint64_t){(uint64_t)size}, 8);
    api_append(&body, header, (size_t)size);
    for (size_t i = 0; i < REPLY_ROWS + REPLY_COLUMNS; i++)
        api_append(&body, &(float){0.5f}, sizeof(float));
    begin(out, POST "?broadcast=true&reduction=none", "Accept: " SAFETENSORS "\r\n");
    end(out, SAFETENSORS, body.data, body.size);
    api_buffer_free(&body);
}

size_t write_script(struct asked script[MAX_ASKED])
{
    struct asked *next = script;
    for (size_t i = 0; i < COUNT(texts); i++, next++) {
        *next = (struct asked){.name = texts[i].name,
                               .varies = strcmp(texts[i].line, "GET /metrics") == 0,
                               .libzip_loses = strstr(texts[i].fields, "npz") ? 4 : 0};
        write_text(&texts[i], &next->bytes);
    }
    for (size_t i = 0; i < COUNT(rows); i++, next++) {
        *next = (struct asked){.name = rows[i][1],
                               .libzip_loses = strcmp(rows[i][0], "npz") == 0 ? 12 : 0};
        write_row(rows[i][0], rows[i][1], &next->bytes);
    }
    *next = (struct asked){.name = "a body of 300 KB"};
    write_large(&next++->bytes);
    *next = (struct asked){.name = "a body in chunks"};
    write_chunked(&next++->bytes);
    *next = (struct asked){.name = "an answer that waits", .slow = true};
    write_answer_that_waits(&next++->bytes);
    return (size_t)(next - script);
}

void free_script(struct asked *script, size_t n)
{
    for (size_t i = 0; i < n; i++)
        api_buffer_free(&script[i].bytes);
}
