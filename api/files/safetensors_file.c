#include "api/files/safetensors_file.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool find_header(struct api_safetensors *file, size_t *size)
{
    uint64_t length;
    if (file->size < API_SAFETENSORS_PREFIX)
        return api_fail(file->problem, "safetensors_malformed",
                        "the body has %zu bytes, but a safetensors file begins with 8 bytes for "
                        "the length of its header",
                        file->size);
    memcpy(&length, file->body, sizeof length);
    if (length > file->size - API_SAFETENSORS_PREFIX)
        return api_fail(file->problem, "safetensors_malformed",
                        "the header's length is %llu bytes, more than the body has",
                        (unsigned long long)length);
    if (length > file->max_header)
        return api_fail(file->problem, "members_too_large",
                        "the header has %llu bytes; at most %zu are allowed",
                        (unsigned long long)length, file->max_header);
    if (length == 0 || file->body[API_SAFETENSORS_PREFIX] != '{')
        return api_fail(file->problem, "safetensors_malformed",
                        "the header does not begin with '{'");
    *size = (size_t)length;
    return true;
}

bool api_safetensors_begin(struct api_safetensors *file, struct api_budget *budget)
{
    const char *header = file->body + API_SAFETENSORS_PREFIX;
    size_t size = 0;
    file->spans = (struct api_buffer){.budget = budget};
    api_buffer_borrow(&file->spans, file->few, sizeof file->few);
    if (!find_header(file, &size))
        return false;
    file->data = header + size;
    file->data_size = file->size - API_SAFETENSORS_PREFIX - size;
    file->has_metadata = false;
    api_json_begin(&file->json, header, size, true, file->problem);
    file->json.is_header = true;
    return api_json_open(&file->json, '{');
}

bool api_safetensors_next(struct api_safetensors *file)
{
    if (!api_json_member(&file->json, file->name)) {
        if (!file->problem->code)
            api_json_end(&file->json);
        return false;
    }
    if (file->json.is_cut)
        return api_fail(file->problem, "safetensors_malformed",
                        "a name in the header is longer than 1024 bytes");
    bool is_metadata = strcmp(file->name, "__metadata__") == 0;
    if (is_metadata && file->has_metadata)
        return api_json_repeated(&file->json);
    file->has_metadata |= is_metadata;
    file->key = file->json.key;
    return true;
}

/* Fails at a field of the current member, "" for the member itself. */
static bool malformed(const struct api_safetensors *file, const char *field, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
static bool malformed(const struct api_safetensors *file, const char *field, const char *format,
                      ...)
{
    enum { FIELD = 20 }; /* room for its name */
    char location[sizeof file->problem->location], detail[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    api_pointer_to_member(location, sizeof location - FIELD, "#/", file->name);
    size_t used = strlen(location);
    snprintf(location + used, sizeof location - used, "%s", field);
    return api_fail_at(file->problem, API_BODY, location, "safetensors_malformed", "%.100s: %s",
                       file->name, detail);
}

bool api_safetensors_read(struct api_safetensors *file, struct api_safetensor *tensor)
{
    enum { DTYPE, SHAPE, OFFSETS };
    static const char *const names[] = {"dtype", "shape", "data_offsets", NULL};
    static const char *const errors[][2] = {
        {"/dtype", "it has no dtype, or one that is not a string"},
        {"/shape", "shape must be an array of at most 64 non-negative integers"},
        {"/data_offsets", "data_offsets must be an array of two non-negative integers"}};
    struct api_json_cursor *c = &file->json;
    char member[API_JSON_TEXT];
    size_t offsets[2] = {0}, n = 0, i;
    unsigned given = 0;
    if (api_json_peek(c) != '{')
        return api_json_skip(c) && malformed(file, "", "its entry in the header is not an object");
    while (api_json_field(c, names, &given, member, &i)) {
        bool good = i == DTYPE     ? api_json_string(c, tensor->dtype) && !c->is_cut
                    : i == SHAPE   ? api_json_sizes(c, tensor->shape, KL_MAX_DIMS, &tensor->ndim)
                    : i == OFFSETS ? api_json_sizes(c, offsets, 2, &n) && n == 2
                                   : api_json_skip(c);
        if (!good)
            return names[i] && malformed(file, errors[i][0], "%s", errors[i][1]);
    }
    for (i = 0; i <= OFFSETS; i++)
        if (!(given >> i & 1))
            return malformed(file, errors[i][0], "%s", errors[i][1]);
    if (file->problem->code)
        return false;
    if (offsets[0] > offsets[1] || offsets[1] > file->data_size)
        return malformed(file, "/data_offsets",
                         "data_offsets [%zu, %zu] are not within the %zu bytes of data", offsets[0],
                         offsets[1], file->data_size);
    tensor->begin = offsets[0];
    tensor->end = offsets[1];
    return true;
}

bool api_safetensors_fit(struct api_safetensors *file, const struct api_safetensor *tensor,
                         size_t size)
{
    const struct kl_tensor whole = {.ndim = tensor->ndim, .shape = tensor->shape};
    const struct api_span span = {tensor->begin, tensor->end, file->key};
    size_t count, bytes = tensor->end - tensor->begin;
    if (!kl_tensor_count(&whole, &count) || bytes / size != count || bytes % size != 0)
        return malformed(file, "/shape",
                         "shape and dtype do not fit the %zu bytes between data_offsets", bytes);
    api_append(&file->spans, &span, sizeof span);
    return !file->spans.failed || api_fail_oom(file->problem);
}

static int compare(const void *a, const void *b)
{
    const struct api_span *x = a, *y = b;
    int order = (x->begin > y->begin) - (x->begin < y->begin);
    return order ? order : (x->end > y->end) - (x->end < y->end);
}

static bool check_coverage(struct api_safetensors *file)
{
    struct api_span *spans = (struct api_span *)(void *)file->spans.data;
    size_t due = 0, n = file->spans.size / sizeof *spans;
    qsort(spans, n, sizeof *spans, compare);
    for (size_t i = 0; i < n; i++) {
        if (spans[i].begin != due) {
            file->json.p = spans[i].key;
            api_json_string(&file->json, file->name);
            return malformed(file, "/data_offsets",
                             "data_offsets begin at %zu, not at %zu: tensors must neither overlap "
                             "nor leave gaps",
                             spans[i].begin, due);
        }
        due = spans[i].end;
    }
    return due == file->data_size ||
           api_fail(file->problem, "safetensors_malformed",
                    "the tensors end at byte %zu of the data, but the data has %zu bytes", due,
                    file->data_size);
}

bool api_safetensors_end(struct api_safetensors *file, bool good)
{
    good = good && !file->problem->code && check_coverage(file);
    api_buffer_free(&file->spans);
    return good;
}
