#include "api/formats/npy.h"

#include "api/formats/dtypes.h"
#include "api/reply.h"
#include "api/warnings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, ALIGNMENT = 64 };

/* MAX_HEADER: numpy's own limit, in bytes; a header has three members and is padded to 64 bytes. */
enum { MAX_HEADER = 10000 };

/* reader: parses the header, a Python dictionary literal that ends with a NUL. */
struct reader {
    const struct api_call *call;
    struct api_tensor *tensor;
    const char *header, *p;
    enum kl_dtype dtype;
    bool swapped, fortran_order;
    size_t ndim;
    bool has_descr, has_order, has_shape;
    struct api_problem *problem;
};

static bool malformed(struct reader *r, const char *what)
{
    return api_tensor_fail(r->call, r->tensor, NULL, r->problem, "npy_malformed", "%s", what);
}

static bool malformed_here(struct reader *r, const char *expected)
{
    return api_tensor_fail(r->call, r->tensor, NULL, r->problem, "npy_malformed",
                           "byte %zu of the .npy header: expected %s", (size_t)(r->p - r->header),
                           expected);
}

static bool skip(struct reader *r, const char *word)
{
    r->p += strspn(r->p, " \t\n");
    size_t size = strlen(word);
    bool there = strncmp(r->p, word, size) == 0;
    r->p += there ? size : 0;
    return there;
}

/* Reads a string without escapes, which no member of a header needs. */
static bool read_string(struct reader *r, const char **text, size_t *size)
{
    const char *quote = skip(r, "'") ? "'" : skip(r, "\"") ? "\"" : NULL;
    const char *end = quote ? strchr(r->p, *quote) : NULL;
    if (!end)
        return malformed_here(r, "a string");
    *text = r->p;
    *size = (size_t)(end - r->p);
    r->p = end + 1;
    return true;
}

static bool fail_descr(struct reader *r, const char *text, size_t size, bool is_mask)
{
    char known[60];
    const char *kind = size < 2 ? "" : text + 1;
    const char *reason = is_mask        ? ""
                         : *kind == 'c' ? ": kl_div: Complex inputs not supported."
                         : *kind && strchr("iub", *kind)
                             ? ": kl_div: Integral inputs not supported."
                         : *kind == 'O' ? ": Python objects are never read"
                                        : "";
    api_dtype_list(API_NUMPY, is_mask, known, sizeof known);
    return api_tensor_fail(r->call, r->tensor, NULL, r->problem, "dtype_unsupported",
                           "numpy's dtype '%.*s' is not one of %s%s", (int)(size < 20 ? size : 20),
                           text, known, reason);
}

static bool read_descr(struct reader *r)
{
    const char *text = "";
    size_t size = 0;
    bool is_mask = api_tensor_is_mask(r->call, r->tensor);
    if (skip(r, "[") || skip(r, "("))
        return api_tensor_fail(r->call, r->tensor, NULL, r->problem, "dtype_unsupported",
                               "a structured dtype is not a tensor of numbers");
    if (!read_string(r, &text, &size))
        return false;
    r->swapped = *text == '>';
    r->has_descr = size == 3 && strchr("<>=|", *text) &&
                   api_dtype_find(API_NUMPY, text + 1, size - 1, is_mask, &r->dtype);
    return r->has_descr || fail_descr(r, text, size, is_mask);
}

static bool read_order(struct reader *r)
{
    r->fortran_order = skip(r, "True");
    if (!r->fortran_order && !skip(r, "False"))
        return malformed_here(r, "True or False");
    return r->has_order = true;
}

/* Reads a shape: "()", "(3,)", "(2, 3)", or "(2L, 3L)" of numpy on Python 2. */
static bool read_shape(struct reader *r)
{
    if (!skip(r, "("))
        return malformed_here(r, "'('");
    while (!skip(r, ")")) {
        char *end;
        r->p += strspn(r->p, " ");
        unsigned long long size = strtoull(r->p, &end, 10);
        if (*r->p < '0' || *r->p > '9' || size > INT64_MAX)
            return malformed_here(r, "a size");
        if (r->ndim == KL_MAX_DIMS)
            return api_tensor_fail(r->call, r->tensor, NULL, r->problem, "tensor_too_deep",
                                   "a tensor may have at most 64 dimensions");
        r->tensor->shape[r->ndim++] = (size_t)size;
        r->p = end;
        skip(r, "L");
        if (!skip(r, ",") && (r->ndim == 1 || strncmp(r->p, ")", 1) != 0))
            return malformed_here(r, "','");
    }
    return r->has_shape = true;
}

static bool read_member(struct reader *r)
{
    static const struct {
        const char *name;
        bool (*read)(struct reader *r);
    } members[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
    const char *key = NULL;
    size_t size = 0;
    if (!read_string(r, &key, &size))
        return false;
    if (!skip(r, ":"))
        return malformed_here(r, "':'");
    const bool had[] = {r->has_descr, r->has_order, r->has_shape};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strlen(members[i].name) == size && memcmp(members[i].name, key, size) == 0 && !had[i])
            return members[i].read(r);
    return malformed(r, "the .npy header has an unknown member, or a member twice");
}

static bool read_header(struct reader *r)
{
    if (!skip(r, "{"))
        return malformed_here(r, "'{'");
    while (!skip(r, "}")) {
        if (!read_member(r))
            return false;
        if (!skip(r, ",") && strncmp(r->p, "}", 1) != 0)
            return malformed_here(r, "',' or '}'");
    }
    skip(r, "");
    if (*r->p)
        return malformed_here(r, "nothing more");
    if (!r->has_descr || !r->has_order || !r->has_shape)
        return malformed(r, "the .npy header lacks descr, fortran_order or shape");
    return true;
}

/* Copies one element, its bytes in reverse if `swapped`. */
static void copy_element(char *to, const char *from, size_t size, bool swapped)
{
    if (!swapped) {
        memcpy(to, from, size);
        return;
    }
    for (size_t i = 0; i < size; i++)
        to[i] = from[size - 1 - i];
}

/* Copies elements to C order and the machine's byte order. `index` counts the subscripts of
 * `to`, and `strides` are those of `from`, in elements; axes of size 1 are skipped. */
static void rearrange(const struct reader *r, const char *from, char *to, size_t count)
{
    size_t shape[KL_MAX_DIMS] = {0}, strides[KL_MAX_DIMS] = {0}, index[KL_MAX_DIMS] = {0};
    size_t size = api_dtype_size(r->dtype), at = 0, stride = 1, ndim = 0;
    for (size_t i = 0; i < r->ndim; i++)
        if (r->tensor->shape[i] > 1)
            shape[ndim++] = r->tensor->shape[i];
    for (size_t i = 0; i < ndim; i++) {
        size_t d = r->fortran_order ? i : ndim - 1 - i;
        strides[d] = stride;
        stride *= shape[d];
    }
    for (size_t n = 0; n < count; n++) {
        copy_element(to + n * size, from + at * size, size, r->swapped);
        for (size_t d = ndim; d-- > 0;) {
            at += strides[d];
            if (++index[d] < shape[d])
                break;
            at -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
}

static bool place_elements(struct reader *r, const char *data, size_t size)
{
    struct api_tensor *tensor = r->tensor;
    size_t count, along = 0;
    api_tensor_set(tensor, r->dtype, r->ndim, data);
    if (!kl_tensor_count(&tensor->view, &count) || count * api_dtype_size(r->dtype) != size)
        return api_tensor_fail(r->call, tensor, NULL, r->problem, "npy_malformed",
                               "the .npy header's shape and descr do not fit the %zu bytes of data "
                               "after it",
                               size);
    for (size_t i = 0; i < r->ndim; i++)
        along += tensor->shape[i] > 1;
    if (!r->swapped && (!r->fortran_order || along <= 1))
        return true;
    /* Use another buffer: `data` may lie in the tensor's own. */
    struct api_buffer rearranged = {.budget = tensor->data.budget};
    if (!api_buffer_reserve(&rearranged, size + 1))
        return api_fail_for_memory(r->problem);
    rearranged.size = size;
    rearrange(r, data, rearranged.data, count);
    api_buffer_free(&tensor->data);
    tensor->data = rearranged;
    tensor->view.data = rearranged.data;
    return true;
}

bool api_npy_is(const char *bytes, size_t size)
{
    return size >= MAGIC && memcmp(bytes, magic, MAGIC) == 0;
}

bool api_npy_read(const struct api_call *call, struct api_tensor *tensor, const char *bytes,
                  size_t size, struct api_problem *problem)
{
    char header[MAX_HEADER + 1];
    struct reader r = {
        .call = call, .tensor = tensor, .header = header, .p = header, .problem = problem};
    const unsigned char *b = (const unsigned char *)bytes;
    if (size < MAGIC + 4 || !api_npy_is(bytes, size))
        return malformed(&r, "it does not begin with the magic string of .npy");
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return api_tensor_fail(call, tensor, NULL, problem, "npy_malformed",
                               "it has version %d.%d of .npy, and 1.0, 2.0, 3.0 are read", b[6],
                               b[7]);
    size_t start = b[6] == 1 ? MAGIC + 4 : MAGIC + 6;
    size_t length = b[8] | (size_t)b[9] << 8;
    if (b[6] > 1)
        length |= size < start ? SIZE_MAX >> 1 : (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (size < start || length > size - start)
        return malformed(&r, "the file ends within its .npy header");
    if (length > MAX_HEADER)
        return malformed(&r, "the .npy header is longer than 10000 bytes");
    memcpy(header, bytes + start, length);
    header[length] = '\0';
    if (strlen(header) != length)
        return malformed(&r, "the .npy header holds a NUL");
    return read_header(&r) && place_elements(&r, bytes + start + length, size - start - length);
}

void api_npy_header(struct api_buffer *out, const struct kl_tensor *tensor)
{
    size_t start = out->size;
    api_append(out, "\x93NUMPY\x01\0\0\0", MAGIC + 4);
    api_append_format(out, "{'descr': '<%s', 'fortran_order': False, 'shape': (",
                      api_dtype_name(API_NUMPY, tensor->dtype));
    for (size_t d = 0; d < tensor->ndim; d++) {
        api_append_unsigned(out, tensor->shape[d]);
        api_append_text(out, d + 1 < tensor->ndim ? ", " : "");
    }
    api_append_text(out, tensor->ndim == 1 ? ",), }" : "), }");
    while ((out->size - start + 1) % ALIGNMENT != 0 && !out->failed)
        api_append(out, " ", 1);
    api_append(out, "\n", 1);
    if (out->failed)
        return;
    size_t length = out->size - start - MAGIC - 4;
    out->data[start + 8] = (char)(length & 0xff);
    out->data[start + 9] = (char)(length >> 8);
}

/* Converts bfloat16 to float32 in place. */
static bool widen(struct api_buffer *numbers)
{
    struct api_buffer wide = {.budget = numbers->budget};
    size_t count = numbers->size / kl_dtype_size(KL_BFLOAT16);
    if (!api_buffer_reserve(&wide, count * kl_dtype_size(KL_FLOAT32) + 1))
        return false;
    wide.size = count * kl_dtype_size(KL_FLOAT32);
    for (size_t i = 0; i < count; i++)
        kl_store(KL_FLOAT32, wide.data, i, kl_load(KL_BFLOAT16, numbers->data, i));
    api_buffer_free(numbers);
    *numbers = wide;
    return true;
}

struct api_buffer *api_npy_output(struct api_call *call, size_t output, struct kl_tensor *view)
{
    struct api_buffer *numbers = api_call_output(call, output, view);
    if (!numbers || view->dtype != KL_BFLOAT16)
        return numbers;
    numbers->failed = !widen(numbers);
    view->dtype = KL_FLOAT32;
    view->data = numbers->data;
    return numbers;
}

void api_npy_warnings(const struct api_call *call, struct api_reply *reply)
{
    const struct api_warnings warnings = api_call_warnings(call);
    if (!warnings.bits)
        return;
    api_warnings_codes(&warnings, reply->header_text, sizeof reply->header_text);
    api_reply_header(reply, "KL-Div-Warnings", reply->header_text);
}

void api_npy_encode(struct api_call *call, struct api_reply *reply)
{
    struct kl_tensor view;
    struct api_buffer *loss = api_npy_output(call, 0, &view);
    reply->body.failed |= loss->failed;
    api_npy_header(&reply->body, &view);
    api_reply_take(reply, loss);
    api_npy_warnings(call, reply);
}
