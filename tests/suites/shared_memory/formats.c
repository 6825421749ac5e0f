/* Tensors in shared memory against the same in the binary part: random dtypes, shapes, options. */
#include "tests/suites/shared_memory/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(shared_memory_formats, .init = shared_memory_begin, .fini = shared_memory_end);

/* Numbers of the outputs, as bits, and their bytes in the answer or in the object. */
enum { OUTPUTS = 3, RESULT_AT = OBJECT_SIZE / 2, ROOM = OBJECT_SIZE / 8 };

static const struct dtype {
    const char *name;
    size_t size;
} dtypes[] = {{"FP64", 8}, {"FP32", 4}, {"FP16", 2}, {"BF16", 2}};

static const char *const outputs[OUTPUTS] = {"loss", "gradient.input", "gradient.target"};

static const char *const options[] = {
    "\"reduction\":\"sum\"",
    "\"reduction\":\"none\"",
    "\"reduction\":\"none\",\"log_target\":true",
    "\"reduction\":\"batchmean\",\"input_space\":\"logit\"",
    "\"reduction\":\"none\",\"input_space\":\"logit\",\"target_space\":\"logit\",\"dim\":-1",
    "\"reduction\":\"mean\",\"base\":2",
};

struct draw {
    unsigned long long state;
    const struct dtype *dtype;
    size_t shape[2], sizes[2]; /* sizes: of input and target, in bytes */
    size_t at[2];              /* where they are */
    const char *options;
};

static size_t below(struct draw *d, size_t n) { return (size_t)(uniform(&d->state) * (double)n); }

/* Writes bytes that are small numbers of any of the dtypes. */
static void draw_values(struct draw *d, size_t at, size_t size)
{
    for (size_t i = 0; i < size / d->dtype->size; i++) {
        double value = uniform(&d->state);
        float narrow = (float)value;
        unsigned short half = (unsigned short)(0x2c00 + below(d, 0x800));
        char *to = bytes + at + i * d->dtype->size;
        if (d->dtype->size == 8)
            memcpy(to, &value, 8);
        else if (d->dtype->size == 4)
            memcpy(to, &narrow, 4);
        else
            memcpy(to, d->dtype->name[0] == 'B' ? (char *)&narrow + 2 : (char *)&half, 2);
    }
}

static void draw(struct draw *d)
{
    d->dtype = &dtypes[below(d, COUNT(dtypes))];
    d->shape[0] = 1 + below(d, 40);
    d->shape[1] = below(d, 300);
    d->options = options[below(d, COUNT(options))];
    d->at[0] = below(d, 20);
    for (size_t i = 0; i < 2; i++) {
        d->sizes[i] = d->shape[0] * d->shape[1] * d->dtype->size;
        if (i > 0)
            d->at[i] = d->at[0] + d->sizes[0] + below(d, 20);
        draw_values(d, d->at[i], d->sizes[i]);
    }
}

/* Appends the JSON of a request, with tensors in shared memory or in the binary part. */
static void write_json(struct draw *d, bool shared, struct api_buffer *out)
{
    api_append_format(out, "{\"parameters\":{%s,\"gradient\":\"input,target\"},\"inputs\":[",
                      d->options);
    for (size_t i = 0; i < 2; i++) {
        api_append_format(out, "%s{\"name\":\"%s\",\"shape\":[%zu,%zu],\"datatype\":\"%s\",",
                          i ? "," : "", i ? "target" : "input", d->shape[0], d->shape[1],
                          d->dtype->name);
        api_append_format(out,
                          shared ? "\"parameters\":{\"shared_memory_region\":\"a\","
                                   "\"shared_memory_byte_size\":%zu,\"shared_memory_offset\":%zu}}"
                                 : "\"parameters\":{\"binary_data_size\":%zu}}",
                          d->sizes[i], d->at[i]);
    }
    api_append_text(out, "],\"outputs\":[");
    for (size_t i = 0; i < OUTPUTS; i++) {
        api_append_format(out, "%s{\"name\":\"%s\",\"parameters\":{", i ? "," : "", outputs[i]);
        api_append_format(out,
                          shared ? "\"shared_memory_region\":\"a\",\"shared_memory_byte_size\":%d,"
                                   "\"shared_memory_offset\":%zu}}"
                                 : "\"binary_data\":true}}",
                          ROOM, RESULT_AT + i * ROOM + i);
    }
    api_append_text(out, "]}");
}

static struct answer ask_draw(struct draw *d, bool shared)
{
    struct api_buffer body = {0};
    char size[20];
    write_json(d, shared, &body);
    snprintf(size, sizeof size, "%zu", body.size);
    for (size_t i = 0; i < 2 && !shared; i++)
        api_append(&body, bytes + d->at[i], d->sizes[i]);
    const struct question question = {.path = INFER, .inference_header_length = size};
    struct answer answer = ask_question(&question, &service, body.data, body.size);
    api_buffer_free(&body);
    return answer;
}

/* Appends the binary part of an answer. */
static void append_binary(const struct api_response *response, struct api_buffer *out)
{
    size_t json = 0;
    for (size_t i = 0; i < response->n_headers; i++)
        if (strcmp(response->headers[i].name, "Inference-Header-Content-Length") == 0)
            json = strtoul(response->headers[i].value, NULL, 10);
    cr_assert(json > 0);
    api_append(out, response->body.data + json, response->body.size - json);
    for (size_t i = 0; i < response->n_tensors; i++)
        api_append(out, response->tensors[i].data, response->tensors[i].size);
}

/* Compares outputs in the object with those of a binary part; gradients have their operands' size. */
static void compare(const struct draw *d, const struct api_buffer *binary)
{
    const char *expected = binary->data;
    size_t gradients = d->sizes[0] + d->sizes[1];
    cr_assert_geq(binary->size, gradients);
    const size_t sizes[OUTPUTS] = {binary->size - gradients, d->sizes[0], d->sizes[1]};
    for (size_t i = 0; i < OUTPUTS; i++) {
        const char *location = bytes + RESULT_AT + i * ROOM + i;
        cr_assert(sizes[i] == 0 || memcmp(expected, location, sizes[i]) == 0,
                  "%s of (%zu, %zu) %s, %s", outputs[i], d->shape[0], d->shape[1], d->dtype->name,
                  d->options);
        cr_assert_eq(location[sizes[i]], 0x77, "%s ends where it must", outputs[i]);
        if (sizes[i] > 0)
            expected += sizes[i];
    }
}

Test(shared_memory_formats, gives_the_bytes_of_the_binary_part)
{
    struct draw d = {.state = 11};
    register_whole();
    for (size_t i = 0; i < 300; i++) {
        struct api_buffer expected = {0};
        draw(&d);
        memset(bytes + RESULT_AT, 0x77, OBJECT_SIZE - RESULT_AT);
        struct answer binary = ask_draw(&d, false);
        cr_assert_eq(binary.status, 200, "%s: %.300s", d.options, binary.response.body.data);
        append_binary(&binary.response, &expected);
        struct answer shared = ask_draw(&d, true);
        cr_assert_eq(shared.status, 200, "%s: %.300s", d.options, shared.response.body.data);
        compare(&d, &expected);
        api_buffer_free(&expected);
        answer_free(&binary);
        answer_free(&shared);
    }
}
