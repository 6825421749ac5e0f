/* Every wire format against every other: equal random tensors of odd sizes give the same bits. */
#include "api/files/dtypes.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum { MAX_NDIM = 4, MAX_COUNT = 24 * 24 * 12, TENSORS = 4 };

/* array: a tensor in row-major order and the machine's byte order, of a dtype of api/files/dtypes.h. */
struct array {
    const char *name;
    enum kl_dtype dtype;
    size_t ndim, shape[MAX_NDIM], count;
    char data[MAX_COUNT * sizeof(double)];
};

struct tensors {
    struct array of[TENSORS];
    size_t n;
};

/* layout: the order of an array's elements in a .npy file. */
struct layout {
    bool fortran_order, big_endian;
};

static const char *const npy_kinds[] = {"f8", "f4", "f2", "", "b1", "i4", "i8"};
static const char *const safetensors_dtypes[] = {"F64", "F32", "F16", "BF16", "BOOL", "I32", "I64"};
static const char *const oip_datatypes[] = {"FP64", "FP32",  "FP16", "BF16",
                                            "BOOL", "INT32", "INT64"};

static size_t size_of(const struct array *a) { return api_dtype_size(a->dtype); }

static void append_shape(struct api_buffer *out, const struct array *a)
{
    api_append_sizes(out, a->shape, a->ndim);
}

/* ---- Bodies */

/* Index in `a` of element `n` of the file. */
static size_t element_at(const struct array *a, bool fortran_order, size_t n)
{
    size_t index = 0, subscripts[MAX_NDIM];
    for (size_t i = 0; i < a->ndim; i++) {
        size_t axis = fortran_order ? i : a->ndim - 1 - i;
        subscripts[axis] = n % a->shape[axis];
        n /= a->shape[axis];
    }
    for (size_t i = 0; i < a->ndim; i++)
        index = index * a->shape[i] + subscripts[i];
    return index;
}

static void append_npy(struct api_buffer *out, const struct array *a, struct layout layout)
{
    char header[256];
    int n = snprintf(header, sizeof header, "{'descr': '%s%s', 'fortran_order': %s, 'shape': (",
                     a->dtype == API_BYTE ? "|"
                     : layout.big_endian  ? ">"
                                          : "<",
                     npy_kinds[a->dtype], layout.fortran_order ? "True" : "False");
    for (size_t i = 0; i < a->ndim; i++)
        n += snprintf(header + n, sizeof header - (size_t)n, "%zu,%s", a->shape[i],
                      i + 1 < a->ndim ? " " : "");
    n += snprintf(header + n, sizeof header - (size_t)n, "), }\n");
    const char length[] = {(char)(n & 0xff), (char)(n >> 8)};
    api_append(out, "\x93NUMPY\x01\0", 8);
    api_append(out, length, sizeof length);
    api_append(out, header, (size_t)n);
    size_t size = size_of(a);
    for (size_t i = 0; i < a->count; i++) {
        const char *element = a->data + element_at(a, layout.fortran_order, i) * size;
        for (size_t byte = 0; byte < size; byte++)
            api_append(out, element + (layout.big_endian ? size - 1 - byte : byte), 1);
    }
}

static void append_npz(struct api_buffer *out, const struct tensors *t, struct layout layout,
                       bool deflated)
{
    struct api_buffer files[TENSORS] = {{0}};
    zip_error_t error;
    zip_source_t *whole = zip_source_buffer_create(NULL, 0, 0, &error);
    cr_assert(whole);
    zip_source_keep(whole);
    zip_t *archive = zip_open_from_source(whole, ZIP_TRUNCATE, &error);
    cr_assert(archive);
    for (size_t i = 0; i < t->n; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s.npy", t->of[i].name);
        append_npy(&files[i], &t->of[i], layout);
        zip_int64_t index = zip_file_add(
            archive, name, zip_source_buffer(archive, files[i].data, files[i].size, 0), 0);
        cr_assert(index >= 0);
        zip_set_file_compression(archive, (zip_uint64_t)index,
                                 deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    }
    cr_assert_eq(zip_close(archive), 0);
    zip_stat_t stat;
    cr_assert_eq(zip_source_stat(whole, &stat), 0);
    cr_assert(api_buffer_room(out, stat.size));
    cr_assert_eq(zip_source_open(whole), 0);
    cr_assert_eq(zip_source_read(whole, out->data, stat.size), (zip_int64_t)stat.size);
    out->size = stat.size;
    zip_source_close(whole);
    zip_source_free(whole);
    for (size_t i = 0; i < t->n; i++)
        api_buffer_free(&files[i]);
}

static void append_safetensors(struct api_buffer *out, const struct tensors *t)
{
    struct api_buffer header = {0};
    size_t end = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct array *a = &t->of[i];
        api_append_format(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":", i ? "," : "{", a->name,
                          safetensors_dtypes[a->dtype]);
        append_shape(&header, a);
        api_append_format(&header, ",\"data_offsets\":[%zu,%zu]}", end,
                          end + a->count * size_of(a));
        end += a->count * size_of(a);
    }
    api_append_text(&header, "}");
    uint64_t size = header.size;
    api_append(out, &size, sizeof size);
    api_append(out, header.data, header.size);
    api_buffer_free(&header);
    for (size_t i = 0; i < t->n; i++)
        api_append(out, t->of[i].data, t->of[i].count * size_of(&t->of[i]));
}

static void append_element(struct api_buffer *out, const struct array *a, size_t n)
{
    if (a->dtype == API_BYTE)
        api_append_text(out, a->data[n] ? "true" : "false");
    else if (a->dtype == API_INT32)
        api_append_format(out, "%d", ((const int32_t *)(const void *)a->data)[n]);
    else if (a->dtype == API_INT64)
        api_append_format(out, "%lld", (long long)((const int64_t *)(const void *)a->data)[n]);
    else
        api_append_format(out, "%.17g", kl_load(a->dtype, a->data, n));
}

/* Appends the elements in brackets, nested by the shape or flat. */
static void append_numbers(struct api_buffer *out, const struct array *a, bool nested)
{
    for (size_t n = 0; n < a->count; n++) {
        size_t inner = 1;
        api_append_text(out, n ? "," : "");
        if (!nested && n == 0)
            api_append_text(out, "[");
        for (size_t i = a->ndim; nested && i-- > 0;)
            if (n % (inner *= a->shape[i]) == 0)
                api_append_text(out, "[");
        append_element(out, a, n);
        inner = 1;
        for (size_t i = a->ndim; nested && i-- > 0;)
            if ((n + 1) % (inner *= a->shape[i]) == 0)
                api_append_text(out, "]");
    }
    api_append_text(out, nested ? "" : "]");
}

static void append_json(struct api_buffer *out, const struct tensors *t)
{
    for (size_t i = 0; i < t->n; i++) {
        api_append_format(out, "%s\"%s\":", i ? "," : "{", t->of[i].name);
        append_numbers(out, &t->of[i], true);
    }
    api_append_format(out, ",\"dtype\":\"%s\"}", kl_dtype_name(t->of[0].dtype));
}

static const char content_disposition[] =
    "--limit\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n";

static void append_form(struct api_buffer *out, const struct tensors *t, struct layout layout,
                        bool as_json)
{
    for (size_t i = 0; i < t->n; i++) {
        api_append_format(out, content_disposition, t->of[i].name);
        if (as_json)
            append_numbers(out, &t->of[i], true);
        else
            append_npy(out, &t->of[i], layout);
        api_append_text(out, "\r\n");
    }
    if (as_json) {
        api_append_format(out, content_disposition, "dtype");
        api_append_format(out, "%s\r\n", kl_dtype_name(t->of[0].dtype));
    }
    api_append_text(out, "--limit--\r\n");
}

/* Appends an inference request; returns the size of its JSON part. */
static size_t append_inference(struct api_buffer *out, const struct tensors *t, bool binary)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct array *a = &t->of[i];
        api_append_format(out, "%s{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":",
                          i ? "," : "{\"inputs\":[", a->name, oip_datatypes[a->dtype]);
        append_shape(out, a);
        if (binary) {
            api_append_format(out, ",\"parameters\":{\"binary_data_size\":%zu}}",
                              a->count * size_of(a));
            continue;
        }
        api_append_text(out, ",\"data\":");
        append_numbers(out, a, i % 2 && a->ndim > 0);
        api_append_text(out, "}");
    }
    api_append_text(out, "],\"parameters\":{\"binary_data_output\":true}}");
    size_t size = out->size;
    for (size_t i = 0; binary && i < t->n; i++)
        api_append(out, t->of[i].data, t->of[i].count * size_of(&t->of[i]));
    return size;
}

/* ---- One request, and the bytes of its loss */

struct form {
    const char *name, *path, *content_type;
    struct layout layout;
    bool variant; /* deflated, as JSON, or binary */
    bool one_dtype, no_bfloat16;
    enum { NPZ, SAFETENSORS, JSON, MULTIPART, INFERENCE } kind;
};

#define INFER "/v2/models/kl_div/infer"
#define FORM_DATA "multipart/form-data; boundary=limit"
static const struct form forms[] = {
    {"safetensors", NULL, "application/safetensors", {0}, false, false, false, SAFETENSORS},
    {"npz, C", NULL, "application/x-npz", {false, false}, false, false, true, NPZ},
    {"npz, Fortran", NULL, "application/x-npz", {true, false}, false, false, true, NPZ},
    {"npz, C, swapped", NULL, "application/x-npz", {false, true}, true, false, true, NPZ},
    {"npz, Fortran, swapped", NULL, "application/x-npz", {true, true}, true, false, true, NPZ},
    {"form, C", NULL, FORM_DATA, {false, false}, false, false, true, MULTIPART},
    {"form, Fortran", NULL, FORM_DATA, {true, false}, false, false, true, MULTIPART},
    {"form, Fortran, swapped", NULL, FORM_DATA, {true, true}, false, false, true, MULTIPART},
    {"form, JSON", NULL, FORM_DATA, {0}, true, true, false, MULTIPART},
    {"JSON", NULL, "application/json", {0}, false, true, false, JSON},
    {"inference, binary", INFER, NULL, {0}, true, false, false, INFERENCE},
    {"inference, JSON", INFER, NULL, {0}, false, false, false, INFERENCE},
};

static size_t make_body(const struct form *form, const struct tensors *t, struct api_buffer *body)
{
    switch (form->kind) {
    case NPZ:
        append_npz(body, t, form->layout, form->variant);
        break;
    case SAFETENSORS:
        append_safetensors(body, t);
        break;
    case JSON:
        append_json(body, t);
        break;
    case MULTIPART:
        append_form(body, t, form->layout, form->variant);
        break;
    case INFERENCE:
        return append_inference(body, t, form->variant);
    }
    return 0;
}

/* Sends a form; returns the answer's content, whose last bytes are the loss. */
static struct api_buffer ask_form(const struct form *form, const struct tensors *t,
                                  const char *query, bool coded)
{
    struct api_buffer body = {0}, content = {0};
    char json_size[30];
    snprintf(json_size, sizeof json_size, "%zu", make_body(form, t, &body));
    if (coded)
        gzip(&body);
    struct question question = {.path = form->path,
                                .query = query,
                                .content_type = form->content_type,
                                .content_encoding = coded ? "gzip" : NULL,
                                .accept = "application/safetensors",
                                .inference_header_length =
                                    form->kind == INFERENCE && form->variant ? json_size : NULL};
    struct answer answer = ask_question(&question, NULL, body.data, body.size);
    cr_assert_eq(answer.status, 200, "%s: %.*s", form->name, (int)answer.response.body.size,
                 answer.response.body.data);
    api_append(&content, answer.response.body.data, answer.response.body.size);
    for (size_t i = 0; i < answer.response.n_tensors; i++)
        api_append(&content, answer.response.tensors[i].data, answer.response.tensors[i].size);
    answer_free(&answer);
    api_buffer_free(&body);
    return content;
}

/* ---- Random tensors */

static unsigned long state = 1;

static unsigned long draw(unsigned long n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

/* Fills an array with numbers that float16 and bfloat16 represent exactly. */
static void fill(struct array *a, double offset, double step)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->dtype == API_BYTE)
            a->data[i] = draw(4) > 0;
        else
            kl_store(a->dtype, a->data, i, offset + step * (double)draw(128));
}

static void set_shape(struct array *a, size_t ndim, const size_t *shape)
{
    a->ndim = ndim;
    a->count = 1;
    for (size_t i = 0; i < ndim; i++)
        a->count *= a->shape[i] = shape[i];
}

/* Sends the tensors in each form; the last `size` bytes of the answers are compared. */
static void check_all_forms(const struct tensors *t, const char *query, size_t size)
{
    const struct array *input = &t->of[0];
    bool one_dtype = true, bfloat16 = false;
    for (size_t i = 0; i < t->n; i++) {
        one_dtype &= t->of[i].dtype == input->dtype || t->of[i].dtype >= API_BYTE;
        bfloat16 |= t->of[i].dtype == KL_BFLOAT16;
    }
    struct api_buffer expected = ask_form(&forms[0], t, query, false);
    for (size_t i = 0; i < 2 * COUNT(forms); i++) {
        const struct form *form = &forms[i / 2];
        if ((form->one_dtype && !one_dtype) || (form->no_bfloat16 && bfloat16))
            continue;
        struct api_buffer content = ask_form(form, t, query, i % 2);
        bool same = content.size >= size && memcmp(content.data + content.size - size,
                                                   expected.data + expected.size - size, size) == 0;
        cr_expect(same, "%s: shape %zu x %zu, %zu dimensions, %s and %s", form->name,
                  input->shape[0], input->shape[1], input->ndim, kl_dtype_name(input->dtype),
                  kl_dtype_name(t->of[1].dtype));
        api_buffer_free(&content);
    }
    api_buffer_free(&expected);
}

static void check_dense(size_t ndim, const size_t *shape, const enum kl_dtype *dtypes)
{
    static struct tensors t;
    static const char *const names[] = {"input", "target", "weight", "mask"};
    t.n = COUNT(names);
    for (size_t i = 0; i < t.n; i++) {
        t.of[i] = (struct array){.name = names[i], .dtype = i == 3 ? API_BYTE : dtypes[i]};
        set_shape(&t.of[i], ndim, shape);
        fill(&t.of[i], i == 0 ? -8 : 0.0078125, i == 0 ? 0.0625 : 0.0078125);
    }
    enum kl_dtype dtype = kl_dtype_promote(dtypes[0], dtypes[1]);
    check_all_forms(&t, "reduction=none", t.of[0].count * kl_dtype_size(dtype));
}

Test(formats, give_the_same_bits_for_every_matrix)
{
    for (size_t rows = 1; rows <= 23; rows += 2)
        for (size_t columns = 2; columns <= 23; columns += 3)
            for (int dtype = KL_FLOAT64; dtype <= KL_FLOAT16; dtype++) {
                enum kl_dtype one = (enum kl_dtype)dtype;
                const size_t shape[] = {rows, columns};
                check_dense(2, shape, (enum kl_dtype[]){one, one, one});
            }
    cr_expect_eq(bytes_held(), 0);
}

Test(formats, give_the_same_bits_for_random_shapes_and_dtypes)
{
    for (int round = 0; round < 120; round++) {
        size_t ndim = draw(MAX_NDIM + 1), shape[MAX_NDIM] = {0};
        enum kl_dtype dtypes[TENSORS];
        for (size_t i = 0; i < ndim; i++)
            shape[i] = 1 + draw(ndim > 2 ? 8 : 24);
        for (size_t i = 0; i < TENSORS; i++)
            dtypes[i] = (enum kl_dtype)draw(KL_DTYPES);
        check_dense(ndim, shape, dtypes);
    }
    cr_expect_eq(bytes_held(), 0);
}

/* Fills rows of k different indices below n: i, i + step, ... around n, with a step that has no factor of n. */
static void fill_indices(struct array *a, size_t n)
{
    size_t k = a->shape[a->ndim - 1], first = 0, step = 1;
    for (size_t i = 0; i < a->count; i++) {
        if (i % k == 0) {
            first = draw(n);
            step = n % 7 ? 7 : 1;
        }
        size_t index = (first + i % k * step) % n;
        if (a->dtype == API_INT32)
            ((int32_t *)(void *)a->data)[i] = (int32_t)index;
        else
            ((int64_t *)(void *)a->data)[i] = (int64_t)index;
    }
}

static void check_sparse(size_t ndim, const size_t *shape, size_t k, const enum kl_dtype *dtypes)
{
    static struct tensors t;
    static const char *const names[] = {"input", "target", "log_normalizer", "indices"};
    size_t named[MAX_NDIM];
    memcpy(named, shape, ndim * sizeof *shape);
    named[ndim - 1] = k;
    t.n = COUNT(names);
    for (size_t i = 0; i < t.n; i++) {
        t.of[i] = (struct array){.name = names[i], .dtype = dtypes[i]};
        set_shape(&t.of[i], i == 2 ? ndim - 1 : ndim, i == 0 ? shape : named);
        if (i < 3)
            fill(&t.of[i], i == 2 ? 16 : -8, 0.0625);
        else
            fill_indices(&t.of[i], shape[ndim - 1]);
    }
    static const char *const tails[] = {"bin", "drop", "ignore"};
    char query[200];
    snprintf(query, sizeof query, "reduction=none&input_space=logit&target_space=logit&tail=%s",
             tails[draw(COUNT(tails))]);
    enum kl_dtype dtype = kl_dtype_promote(dtypes[0], dtypes[1]);
    check_all_forms(&t, query, t.of[2].count * kl_dtype_size(dtype));
}

Test(formats, give_the_same_bits_for_sparse_targets)
{
    for (int round = 0; round < 60; round++) {
        size_t ndim = 1 + draw(MAX_NDIM), shape[MAX_NDIM];
        enum kl_dtype dtypes[TENSORS];
        for (size_t i = 0; i < ndim; i++)
            shape[i] = 1 + draw(ndim > 2 ? 8 : 24);
        for (size_t i = 0; i < TENSORS; i++)
            dtypes[i] = round % 2 && i ? dtypes[0] : (enum kl_dtype)draw(KL_DTYPES);
        dtypes[TENSORS - 1] = draw(2) ? API_INT32 : API_INT64;
        check_sparse(ndim, shape, 1 + draw(shape[ndim - 1]), dtypes);
    }
    cr_expect_eq(bytes_held(), 0);
}

/* ---- Answers */

/* Finds the bytes of a tensor in an answer as safetensors. */
static const char *find_in_safetensors(const struct api_buffer *content, const char *name,
                                       size_t *size)
{
    uint64_t length;
    memcpy(&length, content->data, sizeof length);
    json_t *header = json_loadb(content->data + sizeof length, length, 0, NULL);
    const json_t *offsets = json_object_get(json_object_get(header, name), "data_offsets");
    cr_assert(offsets, "%s", name);
    size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0));
    *size = (size_t)json_integer_value(json_array_get(offsets, 1)) - begin;
    json_decref(header);
    return content->data + sizeof length + length + begin;
}

static void check_entry(zip_t *archive, const char *name, const struct api_buffer *safetensors)
{
    char entry[64], file[1 << 16];
    size_t size = 0;
    const char *expected = find_in_safetensors(safetensors, name, &size);
    snprintf(entry, sizeof entry, "%s.npy", name);
    zip_file_t *opened = zip_fopen(archive, entry, 0);
    cr_assert(opened, "%s", entry);
    zip_int64_t n = zip_fread(opened, file, sizeof file);
    zip_fclose(opened);
    cr_assert_geq(n, (zip_int64_t)size);
    cr_expect(memcmp(file, "\x93NUMPY\x01", 7) == 0);
    cr_expect_eq(((size_t)n - size) % 64, 0, "numpy aligns data to 64 bytes");
    cr_expect(memcmp(file + n - (zip_int64_t)size, expected, size) == 0, "%s", name);
}

Test(formats, npz_answers_hold_what_safetensors_answers_hold)
{
    static const char query[] = "reduction=none&gradient=input,target";
    static struct tensors t;
    const size_t shape[] = {7, 9};
    t.n = 2;
    for (int dtype = KL_FLOAT64; dtype <= KL_FLOAT16; dtype++) {
        struct api_buffer body = {0}, answers[2] = {{0}};
        static const char *const accept[] = {"application/safetensors", "application/x-npz"};
        for (size_t i = 0; i < 2; i++) {
            t.of[i] = (struct array){.name = i ? "target" : "input", .dtype = (enum kl_dtype)dtype};
            set_shape(&t.of[i], 2, shape);
            fill(&t.of[i], i ? 0.0078125 : -8, i ? 0.0078125 : 0.0625);
        }
        append_safetensors(&body, &t);
        for (size_t i = 0; i < 2; i++) {
            const struct question question = {
                .query = query, .content_type = accept[0], .accept = accept[i]};
            struct answer answer = ask_question(&question, NULL, body.data, body.size);
            cr_assert_eq(answer.status, 200);
            cr_expect_str_eq(answer.response.content_type, accept[i]);
            api_append(&answers[i], answer.response.body.data, answer.response.body.size);
            for (size_t j = 0; j < answer.response.n_tensors; j++)
                api_append(&answers[i], answer.response.tensors[j].data,
                           answer.response.tensors[j].size);
            answer_free(&answer);
        }
        zip_error_t error;
        zip_t *archive = zip_open_from_source(
            zip_source_buffer_create(answers[1].data, answers[1].size, 0, &error),
            ZIP_RDONLY | ZIP_CHECKCONS, &error);
        cr_assert(archive);
        cr_expect_eq(zip_get_num_entries(archive, 0), 3);
        check_entry(archive, "loss", &answers[0]);
        check_entry(archive, "gradient.input", &answers[0]);
        check_entry(archive, "gradient.target", &answers[0]);
        zip_discard(archive);
        for (size_t i = 0; i < 2; i++)
            api_buffer_free(&answers[i]);
        api_buffer_free(&body);
    }
    cr_expect_eq(bytes_held(), 0);
}
