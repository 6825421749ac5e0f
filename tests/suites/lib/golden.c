/* Requests of vectors.jsonl against PyTorch's recorded answers. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Distance between neighbours of the dtype at `value`. */
static double ulp_of(const char *dtype, double value)
{
    double size = fabs(value);
    if (strcmp(dtype, "float64") == 0)
        return nextafter(size, (double)INFINITY) - size;
    int bits = strcmp(dtype, "float32") == 0 ? 23 : strcmp(dtype, "float16") == 0 ? 10 : 7;
    int min = strcmp(dtype, "float16") == 0 ? -24 : -149 + 23 - bits;
    int exponent = size > 0 ? ilogb(size) - bits : min;
    return ldexp(1, exponent > min ? exponent : min);
}

/* True if `text` is PyTorch's float64 result, rounded to the dtype. */
static bool agree(double text, double theirs, const char *dtype, double scale)
{
    enum kl_dtype type;
    char cell[8];
    cr_assert(kl_dtype_parse(dtype, &type, NULL));
    kl_store(type, cell, 0, text);
    double ours = kl_load(type, cell, 0);
    if (isnan(theirs) || isinf(theirs))
        return isnan(theirs) ? isnan(ours) : ours == theirs;
    double rounding = strcmp(dtype, "float64") == 0 ? 0 : ulp_of(dtype, theirs) / 2;
    return fabs(ours - theirs) <= 1.0001 * rounding + 1e-14 * scale;
}

static void compare(const json_t *ours, const json_t *theirs, const char *dtype, double scale,
                    size_t line)
{
    if (!json_is_array(theirs)) {
        double a = number_of(ours), b = number_of(theirs);
        cr_expect(agree(a, b, dtype, scale), "line %zu: %.17g, PyTorch has %.17g", line, a, b);
        return;
    }
    cr_assert_eq(json_array_size(ours), json_array_size(theirs), "line %zu", line);
    for (size_t i = 0; i < json_array_size(theirs); i++)
        compare(json_array_get(ours, i), json_array_get(theirs, i), dtype, scale, line);
}

static void compare_warnings(const json_t *ours, const json_t *theirs, const json_t *texts,
                             size_t line)
{
    size_t n = json_array_size(theirs);
    const json_t *own = json_array_get(ours, n); /* PyTorch has no such warning */
    cr_expect(json_array_size(ours) == n + (own != NULL) &&
                  (!own || strcmp(text_of(own, "code"), "loss_negative") == 0),
              "line %zu", line);
    for (size_t i = 0; i < n; i++) {
        size_t index = (size_t)json_integer_value(json_array_get(theirs, i));
        cr_expect_str_eq(text_of(json_array_get(ours, i), "message"),
                         json_string_value(json_array_get(texts, index)), "line %zu", line);
    }
}

static void replay(const char *text, const json_t *texts, size_t line)
{
    json_t *vector = json_loads(text, 0, NULL);
    cr_assert(vector, "line %zu", line);
    const json_t *theirs = json_object_get(vector, "answer");
    char *body = json_dumps(json_object_get(vector, "body"), JSON_REAL_PRECISION(17));
    struct answer answer = ask_loss(NULL, body);
    const char *dtype = text_of(theirs, "dtype");

    cr_assert_eq(answer.status, 200, "line %zu: %s", line, text_of(answer.json, "detail"));
    cr_expect_str_eq(text_of(answer.json, "dtype"), dtype, "line %zu", line);
    cr_expect_str_eq(text_of(answer.json, "reduction"), text_of(theirs, "reduction"), "line %zu",
                     line);
    cr_expect(json_equal(json_object_get(answer.json, "shape"), json_object_get(theirs, "shape")),
              "line %zu", line);
    compare(json_object_get(answer.json, "loss"), json_object_get(theirs, "loss"), dtype,
            json_number_value(json_object_get(theirs, "scale")), line);
    compare_warnings(json_object_get(answer.json, "warnings"), json_object_get(theirs, "warnings"),
                     texts, line);
    answer_free(&answer);
    free(body);
    json_decref(vector);
}

Test(golden, every_vector_agrees_with_pytorch)
{
    size_t size, line = 1;
    char *file = read_file("tests/tools/golden/vectors.jsonl", &size);
    char *rest = NULL, *text = strtok_r(file, "\n", &rest);
    json_t *head = json_loads(text, 0, NULL);
    while ((text = strtok_r(NULL, "\n", &rest)))
        replay(text, json_object_get(head, "warnings"), ++line);
    cr_assert_gt(line, 600);
    cr_assert_eq(bytes_held(), 0);
    json_decref(head);
    free(file);
}
