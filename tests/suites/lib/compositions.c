/* Requests that compose spaces, axes, masks, weights and broadcasting, against PyTorch. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Compares nested lists as flat ones; the shapes must be equal. */
static void compare(const json_t *ours, const json_t *theirs, double scale, const char *what)
{
    cr_assert_eq(json_is_array(ours), json_is_array(theirs), "%s", what);
    if (json_is_array(theirs)) {
        cr_assert_eq(json_array_size(ours), json_array_size(theirs), "%s", what);
        for (size_t i = 0; i < json_array_size(theirs); i++)
            compare(json_array_get(ours, i), json_array_get(theirs, i), scale, what);
        return;
    }
    double a = number_of(ours), b = number_of(theirs);
    bool same = isfinite(b) ? fabs(a - b) <= 1e-12 * (fabs(b) + scale)
                : isnan(b)  ? isnan(a)
                            : a == b;
    cr_expect(same, "%s: %.17g, PyTorch has %.17g", what, a, b);
}

static void replay(const char *text, size_t line)
{
    json_t *vector = json_loads(text, 0, NULL);
    cr_assert(vector, "line %zu", line);
    char *body = json_dumps(json_object_get(vector, "body"), JSON_REAL_PRECISION(17)), what[60];
    double scale = json_number_value(json_object_get(vector, "scale"));
    struct answer answer = ask_loss(NULL, body);
    cr_assert_eq(answer.status, 200, "line %zu: %s", line, text_of(answer.json, "detail"));
    snprintf(what, sizeof what, "line %zu, loss", line);
    compare(json_object_get(answer.json, "loss"), json_object_get(vector, "loss"), scale, what);
    const json_t *ours = json_object_get(answer.json, "gradient");
    const json_t *theirs = json_object_get(vector, "gradient");
    static const char *const operands[] = {"input", "target"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(what, sizeof what, "line %zu, gradient of %s", line, operands[i]);
        compare(json_object_get(ours, operands[i]), json_object_get(theirs, operands[i]), scale,
                what);
    }
    answer_free(&answer);
    free(body);
    json_decref(vector);
}

Test(compositions, agree_with_pytorch)
{
    size_t size, line = 0;
    char *file = read_file("tests/tools/golden/compositions.jsonl", &size), *rest = file;
    for (char *text; (text = strtok_r(rest, "\n", &rest));)
        replay(text, ++line);
    cr_assert_gt(line, 390);
    cr_assert_eq(bytes_held(), 0);
    free(file);
}
