#include "api/loss/json_tensor.h"

#include "api/json/json_text.h"
#include "api/text/decimal.h"
#include "api/text/number.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { UNKNOWN = -1 };

struct reader {
    const char *text, *p;
    enum kl_dtype dtype;
    size_t size; /* bytes of an element */
    struct api_tensor *tensor;
    struct api_problem *problem;
    int depth;                 /* number of open arrays */
    int leaf_depth;            /* number of arrays around each number, or UNKNOWN */
    size_t index[KL_MAX_DIMS]; /* number of values read in each open array */
    bool closed[KL_MAX_DIMS];  /* true once shape[depth] is known: an array has ended */
};

/* Fails at the element that is being read. */
static bool fail_here(struct reader *r, const char *code, const char *detail)
{
    char location[256];
    api_tensor_value_location(r->tensor, r->index, (size_t)r->depth, location, sizeof location);
    return api_fail_at(r->problem, API_BODY, location, code, "%s", detail);
}

static bool fail_object(struct reader *r)
{
    char detail[200];
    snprintf(detail, sizeof detail, "an element must be a number, not an object%s",
             api_json_array_hint(r->p));
    return fail_here(r, "element_invalid", detail);
}

static bool malformed(struct reader *r, const char *what)
{
    return api_json_malformed(r->text, r->p, NULL, what, r->problem);
}

static bool skip_word(struct reader *r, const char *word)
{
    size_t size = strlen(word);
    if (strncmp(r->p, word, size) != 0)
        return false;
    r->p += size;
    return true;
}

static bool fail_word(struct reader *r)
{
    if (skip_word(r, "\"NA\""))
        return fail_here(r, "element_invalid",
                         "\"NA\" is not a number; R writes it for a missing value: mask the "
                         "element, or send \"NaN\"");
    if (*r->p == '"')
        return fail_here(r, "element_invalid",
                         "a string in a tensor must be \"NaN\", \"Infinity\" or \"-Infinity\"");
    if (*r->p == '{')
        return fail_object(r);
    if (skip_word(r, "null"))
        return fail_here(r, "element_invalid",
                         "null is not a number; JavaScript writes it for NaN and for both "
                         "infinities: send the strings \"NaN\", \"Infinity\", \"-Infinity\"");
    if (skip_word(r, "true") || skip_word(r, "false"))
        return fail_here(r, "element_invalid", "an element must be a number, not a boolean");
    if (*r->p == '-' || (*r->p >= '0' && *r->p <= '9'))
        return malformed(r, "expected a number as JSON writes it (no leading zero, digits on both "
                            "sides of the point)");
    return malformed(r, "expected a number or an array");
}

/* Reads a word in place of a number, such as NaN, which JSON lacks; other words fail. In inferences null
 * is NaN: KServe's clients write it. */
static bool read_word(struct reader *r, double *value)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"NaN", (double)NAN},
                 {"Infinity", (double)INFINITY},
                 {"-Infinity", -(double)INFINITY},
                 {"\"NaN\"", (double)NAN},
                 {"\"Infinity\"", (double)INFINITY},
                 {"\"-Infinity\"", -(double)INFINITY},
                 {"\"Inf\"", (double)INFINITY},
                 {"\"-Inf\"", -(double)INFINITY}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (skip_word(r, words[i].word)) {
            *value = words[i].value;
            return true;
        }
    *value = (double)NAN;
    return (r->tensor->is_input && skip_word(r, "null")) || fail_word(r);
}

static bool read_bit(struct reader *r)
{
    double value;
    const char *end = api_number_read(r->p, KL_FLOAT64, &value);
    char bit = 1;
    if (end && (value == 0 || value == 1)) {
        bit = value == 1 ? 1 : 0;
        r->p = end;
    } else if (skip_word(r, "false")) {
        bit = 0;
    } else if (!skip_word(r, "true")) {
        return fail_here(r, "element_invalid", "an element of mask must be 0, 1, false or true");
    }
    api_append(&r->tensor->data, &bit, 1);
    return !r->tensor->data.failed || api_fail_oom(r->problem);
}

/* Reads an index, of which numbers up to 2^53 are exact. A number without a fraction may be written with one, as R does. */
static bool read_index(struct reader *r)
{
    const double limit = r->dtype == API_INT32 ? 0x1p31 : 0x1p53;
    double value;
    const char *end = api_number_read(r->p, KL_FLOAT64, &value);
    if (!end || value != trunc(value) || !(value >= -limit && value < limit))
        return fail_here(r, "element_invalid",
                         "an index must be a whole number, of 32 bits in INT32 and 54 otherwise");
    const int32_t small = r->dtype == API_INT32 ? (int32_t)value : 0;
    const int64_t large = (int64_t)value;
    r->p = end;
    api_append(&r->tensor->data, r->dtype == API_INT32 ? (const void *)&small : &large, r->size);
    return !r->tensor->data.failed || api_fail_oom(r->problem);
}

static bool read_number(struct reader *r)
{
    struct api_buffer *data = &r->tensor->data;
    size_t size = r->size;
    double value;
    const char *end = api_number_read(r->p, r->dtype, &value);
    if (end && isinf(value))
        return fail_here(r, "number_too_large", "the number is too large for float64");
    if (end)
        r->p = end;
    else if (!read_word(r, &value))
        return false;
    if (data->capacity - data->size < size && !api_buffer_room(data, size))
        return api_fail_oom(r->problem);
    if (r->dtype == KL_FLOAT64)
        memcpy(data->data + data->size, &value, sizeof value);
    else
        kl_store(r->dtype, data->data, data->size / size, value);
    data->size += size;
    return true;
}

static bool open_array(struct reader *r)
{
    if (r->depth == KL_MAX_DIMS)
        return fail_here(r, "tensor_too_deep", "a tensor may have at most 64 dimensions");
    if (r->leaf_depth != UNKNOWN && r->depth >= r->leaf_depth)
        return fail_here(r, "tensor_ragged", "expected a number here, found an array");
    r->index[r->depth++] = 0;
    r->p++;
    return true;
}

static bool close_array(struct reader *r)
{
    size_t d = (size_t)--r->depth, n = r->index[d];
    if (n == 0 && r->leaf_depth == UNKNOWN)
        r->leaf_depth = r->depth + 1;
    if (r->closed[d] && r->tensor->shape[d] != n) {
        char detail[120];
        snprintf(detail, sizeof detail, "expected %zu elements in this array, found %zu",
                 r->tensor->shape[d], n);
        return fail_here(r, "tensor_ragged", detail);
    }
    if (n == 0 && r->leaf_depth != r->depth + 1)
        return fail_here(r, "tensor_ragged", "expected arrays in this array, found none");
    r->closed[d] = true;
    r->tensor->shape[d] = n;
    r->p++;
    return true;
}

static bool read_leaf(struct reader *r)
{
    if (r->leaf_depth == UNKNOWN)
        r->leaf_depth = r->depth;
    else if (r->leaf_depth != r->depth)
        return fail_here(r, "tensor_ragged", "expected an array here, found a number");
    return r->dtype == API_BYTE  ? read_bit(r)
           : r->dtype > API_BYTE ? read_index(r)
                                 : read_number(r);
}

/* Continues after a value: closes arrays until another value follows or none is open. */
static bool after_value(struct reader *r)
{
    while (r->depth > 0) {
        r->p = api_json_skip_space(r->p);
        r->index[r->depth - 1]++;
        if (*r->p == ',') {
            r->p = api_json_skip_space(r->p + 1);
            return true;
        }
        if (*r->p != ']')
            return malformed(r, "expected ',' or ']'");
        if (!close_array(r))
            return false;
    }
    return true;
}

static bool read_value(struct reader *r)
{
    while (*r->p == '[') {
        if (!open_array(r))
            return false;
        r->p = api_json_skip_space(r->p);
        if (*r->p == ']')
            return close_array(r) && after_value(r);
    }
    return read_leaf(r) && after_value(r);
}

/* Estimates the number of elements from the commas at the tensor's start, if the tensor ends
 * before the next quote or brace. The estimate avoids reallocations of the buffer, which cost
 * page faults. */
static size_t estimate_count(const char *p)
{
    enum { SAMPLE = 4096, SLACK = 16 };
    const char *end = strchrnul(p, '"');
    const char *brace = memchr(p, '}', (size_t)(end - p));
    size_t size = (size_t)((brace ? brace : end) - p), sample = size < SAMPLE ? size : SAMPLE;
    size_t commas = 0;
    for (size_t i = 0; i < sample; i++)
        commas += p[i] == ',';
    if (size <= SAMPLE)
        return commas + 1;
    size_t count = (size_t)((double)commas / SAMPLE * (double)size);
    return count + count / SLACK;
}

const char *api_json_tensor_read(struct api_tensor *tensor, const char *text, const char *at,
                                 enum kl_dtype dtype, struct api_problem *problem)
{
    enum api_tensor_kind kind = api_tensor_kind_of(tensor);
    if (kind == API_BITS)
        dtype = API_BYTE;
    else if (kind == API_INDICES && dtype != API_INT32)
        dtype = API_INT64;
    struct reader r = {.text = text,
                       .p = at,
                       .dtype = dtype,
                       .size = api_dtype_size(dtype),
                       .tensor = tensor,
                       .problem = problem,
                       .leaf_depth = UNKNOWN};
    tensor->data.size = 0;
    if (!api_buffer_reserve(&tensor->data, estimate_count(at) * r.size)) {
        api_fail_oom(r.problem);
        return NULL;
    }
    do
        if (!read_value(&r))
            return NULL;
    while (r.depth > 0);

    if (!tensor->data.borrowed)
        api_buffer_trim(&tensor->data);
    api_tensor_set(tensor, dtype, (size_t)r.leaf_depth, tensor->data.data);
    return r.p;
}

static bool shape_fits(const size_t *shape, size_t ndim, size_t count)
{
    const struct kl_tensor whole = {.ndim = ndim, .shape = shape};
    size_t n;
    return kl_tensor_count(&whole, &n) && n == count;
}

static bool fail_reshape(const struct api_tensor *tensor, size_t count, struct api_problem *problem)
{
    char location[64] = "#/shape";
    if (tensor->is_input)
        snprintf(location, sizeof location, "#/inputs/%zu/shape", tensor->input);
    return api_fail_at(problem, API_BODY, location, "shape_invalid",
                       "shape does not fit %s, which holds %zu numbers%s", api_tensor_name(tensor),
                       count, tensor->view.ndim > 1 ? " in differently nested arrays" : "");
}

bool api_json_tensor_reshape(struct api_tensor *tensor, size_t ndim, const size_t *shape,
                             struct api_problem *problem)
{
    struct kl_tensor *view = &tensor->view;
    if (view->ndim == ndim && memcmp(view->shape, shape, ndim * sizeof *shape) == 0)
        return true;
    size_t count = 1;
    for (size_t i = 0; i < view->ndim; i++)
        count *= view->shape[i];
    if (view->ndim > 1 || !shape_fits(shape, ndim, count))
        return fail_reshape(tensor, count, problem);
    memcpy(tensor->shape, shape, ndim * sizeof *shape);
    view->ndim = ndim;
    tensor->flat = true;
    return true;
}

struct writer {
    struct api_buffer *out;
    const struct kl_tensor *tensor;
    size_t next; /* index of the next element */
    enum api_nonfinite nonfinite;
    enum kl_dtype digits; /* dtype that determines the number of digits */
};

/* Rewrites a quoted word; returns its new size. */
static size_t rewrite(char *word, size_t size, enum api_nonfinite nonfinite)
{
    static const char null[] = {'n', 'u', 'l', 'l'};
    if (nonfinite == API_QUOTED)
        return size;
    if (nonfinite == API_BARE) {
        memmove(word, word + 1, size - 2);
        return size - 2;
    }
    memcpy(word, null, sizeof null);
    return sizeof null;
}

/* Writes n numbers with commas between them. */
static void write_numbers(struct writer *w, size_t n)
{
    enum { AT_ONCE = 256 };
    const struct kl_tensor *t = w->tensor;
    for (size_t end = w->next + n; w->next < end;) {
        size_t until = end - w->next > AT_ONCE ? w->next + AT_ONCE : end;
        if (!api_buffer_room(w->out, (until - w->next) * (API_DECIMAL_MAX + 1)))
            return;
        char *p = w->out->data + w->out->size;
        for (; w->next < until; w->next++) {
            size_t size = api_decimal_write(p, w->digits, kl_load(t->dtype, t->data, w->next));
            p += *p == '"' ? rewrite(p, size, w->nonfinite) : size;
            *p++ = ',';
        }
        w->out->size = (size_t)(p - w->out->data);
    }
    w->out->size--;
}

static void write_level(struct writer *w, size_t depth)
{
    const struct kl_tensor *t = w->tensor;
    if (depth == t->ndim) {
        write_numbers(w, 1);
        return;
    }
    size_t n = t->shape[depth];
    api_append(w->out, "[", 1);
    if (depth + 1 == t->ndim && n > 0) {
        write_numbers(w, n);
    } else {
        for (size_t i = 0; i < n && !w->out->failed; i++) {
            if (i > 0)
                api_append(w->out, ",", 1);
            write_level(w, depth + 1);
        }
    }
    api_append(w->out, "]", 1);
}

void api_json_tensor_write(struct api_buffer *out, const struct kl_tensor *tensor,
                           enum api_nonfinite nonfinite, enum kl_dtype digits)
{
    enum { TYPICAL = 21 }; /* characters of a float64 and a comma */
    struct writer w = {out, tensor, 0, nonfinite, digits};
    size_t count;
    if (kl_tensor_count(tensor, &count))
        api_buffer_room(out, count * TYPICAL);
    write_level(&w, 0);
}
