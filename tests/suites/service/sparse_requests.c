/* Sparse targets: `indices` beside `target`, its tail, and what is wrong with them. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#define INPUT "\"input\": [[1, 2, 3, 4], [0, 0, 1, 5]]"
#define TARGET "\"target\": [[0.5, 0.25], [0.75, 0.125]]"
#define INDICES "\"indices\": [[3, 2], [3, 0]]"
#define LOGITS "{" INPUT ", "
#define PROBS LOGITS TARGET ", "

static const struct {
    const char *query, *body, *code, *place;
} wrong[] = {
    {NULL, PROBS "\"indices\": [[3, 2], [3, 4]]}", "indices_invalid", "#/indices/1/1"},
    {NULL, PROBS "\"indices\": [[3, -2], [3, 0]]}", "indices_invalid", "#/indices/0/1"},
    {NULL, PROBS "\"indices\": [[3, 2], [0, 0]]}", "indices_invalid", "#/indices/1/1"},
    {NULL, PROBS "\"indices\": [[3, 2], [3, 0.5]]}", "element_invalid", "#/indices/1/1"},
    {NULL, PROBS "\"indices\": [[3, 2], [3, \"NaN\"]]}", "element_invalid", "#/indices/1/1"},
    {NULL, PROBS "\"indices\": [[3, 2], [3, true]]}", "element_invalid", "#/indices/1/1"},
    {NULL, PROBS "\"indices\": [[3, 2], [3, 1e300]]}", "element_invalid", "#/indices/1/1"},
    {NULL, PROBS "\"indices\": [[3, 2]]}", "shape_mismatch", "#/indices"},
    {NULL, PROBS "\"indices\": [3, 2]}", "shape_mismatch", "#/indices"},
    {NULL, PROBS "\"indices\": 3}", "shape_mismatch", "#/indices"},
    {NULL, LOGITS "\"target\": [[1], [1], [1]], \"indices\": [[0], [0], [0]]}", "shape_mismatch",
     "#/target"},
    {NULL, LOGITS "\"target\": [[], []], \"indices\": [[], []]}", "shape_mismatch", "#/target"},
    {NULL, "{\"input\": 1, \"target\": 1, \"indices\": 0}", "shape_mismatch", "#/target"},
    {NULL, LOGITS "\"target\": [[0.5, 0.5], [0.5, 0.75]], " INDICES "}", "mass_invalid",
     "#/target/1/0"},
    {NULL, LOGITS "\"target\": [[0.5, 0.5], [0.5, -0.25]], " INDICES "}", "target_negative",
     "#/target/1/1"},
    {"tail=drop", LOGITS "\"target\": [[0.5, 0.5], [1e308, 1e308]], " INDICES "}", "mass_invalid",
     "#/target/1/0"},
    {"input_space=prob", "{\"input\": [[0.5, -0.1, 0.6]], \"target\": [[0.5]], \"indices\": [[0]]}",
     "input_negative", "#/input/0/1"},
    {"input_space=prob&tail=ignore",
     "{\"input\": [[0.5, -0.1, 0.6]], \"target\": [[0.5]], \"indices\": [[1]]}", "input_negative",
     "#/input/0/1"},
    {"target_space=logit", PROBS INDICES "}", "normalizer_missing", "#/target"},
    {"target_space=logit", PROBS INDICES ", \"log_normalizer\": [1, 2, 3]}", "shape_mismatch",
     "#/log_normalizer"},
    {"target_space=logit", PROBS INDICES ", \"log_normalizer\": [1, \"x\"]}", "element_invalid",
     "#/log_normalizer/1"},
    {NULL, PROBS "\"log_normalizer\": [1, 2]}", "indices_missing", "#/log_normalizer"},
    {NULL, PROBS INDICES ", \"log_normalizer\": [1, 2]}", "normalizer_unused", "#/log_normalizer"},
    {"tail=drop", PROBS "\"mask\": [1, 1]}", "indices_missing", "tail"},
    {NULL, PROBS "\"tail\": \"ignore\"}", "indices_missing", "#/tail"},
    {"tail=none", PROBS INDICES "}", "tail_invalid", "tail"},
    {"broadcast=true", PROBS INDICES "}", "sparse_unsupported", "broadcast"},
    {"dim=0", PROBS INDICES "}", "sparse_unsupported", "dim"},
    {NULL, PROBS INDICES ", \"dim\": [0, 1]}", "sparse_unsupported", "#/dim"},
    {"diagnose=true", PROBS INDICES "}", "sparse_unsupported", "diagnose"},
    {NULL, PROBS INDICES ", \"shape\": [2, 4]}", "shape_invalid", "#/shape"},
    {NULL, PROBS "\"indicies\": [[3, 2], [3, 0]]}", "tensor_unknown", "#/indicies"},
};

Test(sparse_requests, that_are_wrong_name_the_place)
{
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct answer answer = ask_loss(wrong[i].query, wrong[i].body);
        const json_t *error = json_array_get(json_object_get(answer.json, "errors"), 0);
        const char *pointer = text_of(error, "pointer");
        cr_expect_eq(answer.status, 422, "case %zu: %d", i, answer.status);
        cr_expect_str_eq(text_of(answer.json, "code"), wrong[i].code, "case %zu", i);
        cr_expect_str_eq(*pointer ? pointer : text_of(error, "parameter"), wrong[i].place,
                         "case %zu", i);
        answer_free(&answer);
        cr_expect_eq(bytes_held(), 0, "case %zu", i);
    }
}

static double loss_of(const char *query, const char *body)
{
    struct answer answer = ask_loss(query, body);
    double loss = json_number_value(json_object_get(answer.json, "loss"));
    cr_assert_eq(answer.status, 200, "%s %s: %s", query, body, text_of(answer.json, "detail"));
    answer_free(&answer);
    return loss;
}

Test(sparse_requests, may_say_what_is_the_default)
{
    static const char start[] = "input_space=logit&reduction=sum";
    static const char *const calls[][2] = {
        {"&tail=bin&dim=-1&broadcast=false&diagnose=false", PROBS INDICES "}"},
        {"&dim=1", PROBS "\"indices\": [[3.0, 2.0e0], [3, 0]], \"tail\": \"bin\"}"},
        {"", "{" INDICES ", \"log_normalizer\": null, " TARGET ", " INPUT "}"},
    };
    double expected = loss_of(start, PROBS INDICES "}");
    for (size_t i = 0; i < COUNT(calls); i++) {
        char query[100];
        snprintf(query, sizeof query, "%s%s", start, calls[i][0]);
        cr_expect_eq(loss_of(query, calls[i][1]), expected, "case %zu", i);
    }
}

Test(sparse_requests, that_drop_the_tail_need_no_normalizer)
{
    static const char query[] = "input_space=logit&target_space=logit&tail=drop";
    double expected = loss_of(query, PROBS INDICES "}");
    cr_expect_eq(loss_of(query, PROBS INDICES ", \"log_normalizer\": [\"NaN\", 1e20]}"), expected);
}

Test(sparse_requests, of_masked_rows_alone_have_the_mean_of_their_compat)
{
    static const char *const means[][2] = {{"compat=oneflow", "{\"loss\":0.0,"},
                                           {"compat=math", "{\"loss\":\"NaN\","}};
    for (size_t i = 0; i < COUNT(means); i++) {
        struct answer answer = ask_loss(means[i][0], PROBS INDICES ", \"mask\": [0, 0]}");
        cr_expect(strncmp(answer.response.body.data, means[i][1], strlen(means[i][1])) == 0,
                  "%s: %.40s", means[i][0], answer.response.body.data);
        answer_free(&answer);
    }
}

/* ---- Against dense calls of the probabilities that tails stand for */

enum { ROWS = 3, N = 7, K = 4, CELLS = K + 1 };

/* sample: rows of logits, of a target, and of the cells that its tail makes of both. */
struct sample {
    double input[ROWS][N], target[ROWS][K], p[ROWS][CELLS], q[ROWS][CELLS];
    size_t indices[ROWS][K], cells;
};

static double draw(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 24);
}

static void draw_row(struct sample *s, size_t row, unsigned *state)
{
    size_t first = (size_t)(N * draw(state));
    double mass = 0, most = 0.5 + 0.4 * draw(state);
    for (size_t i = 0; i < N; i++)
        s->input[row][i] = 8 * draw(state) - 4;
    for (size_t i = 0; i < K; i++) {
        s->indices[row][i] = (first + 3 * i) % N;
        mass += s->target[row][i] = 0.1 + draw(state);
    }
    for (size_t i = 0; i < K; i++)
        s->target[row][i] *= most / mass;
}

/* Fills the cells of a row: named elements, and with tail=bin the rest; with tail=drop target's are divided by their sum. */
static void fill_cells(struct sample *s, size_t row, bool drops)
{
    double sum_exp = 0, *p = s->p[row], *q = s->q[row], mass = 0;
    p[K] = q[K] = 1;
    for (size_t i = 0; i < N; i++)
        sum_exp += exp(s->input[row][i]);
    for (size_t i = 0; i < K; i++) {
        p[i] = s->target[row][i];
        q[i] = exp(s->input[row][s->indices[row][i]]) / sum_exp;
        mass += p[i];
        p[K] -= p[i];
        q[K] -= q[i];
    }
    for (size_t i = 0; drops && i < K; i++)
        p[i] /= mass;
    p[K] = drops ? 0 : p[K];
}

static void append_rows(struct api_buffer *out, const char *name, const double *rows, size_t stride,
                        size_t n)
{
    api_append_format(out, "%s\"%s\":[", out->size ? "," : "{", name);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < n; i++)
            api_append_format(out, "%s%.17g%s",
                              i     ? ","
                              : row ? ",["
                                    : "[",
                              rows[row * stride + i], i + 1 < n ? "" : "]");
    api_append_text(out, "]");
}

static void append_indices(struct api_buffer *out, const struct sample *s)
{
    api_append_text(out, ",\"indices\":[");
    for (size_t row = 0; row < ROWS; row++) {
        api_append_text(out, row ? "," : "");
        api_append_sizes(out, s->indices[row], K);
    }
    api_append_text(out, "]");
}

static const char others[] = ",\"weight\":[0.5,2,3],\"mask\":[1,0,1]}";

static void check_sample(const struct sample *s, const char *tail, const char *options)
{
    struct api_buffer sparse = {0}, dense = {0};
    char query[200];
    append_rows(&sparse, "input", *s->input, N, N);
    append_rows(&sparse, "target", *s->target, K, K);
    append_indices(&sparse, s);
    append_rows(&dense, "input", *s->q, CELLS, s->cells);
    append_rows(&dense, "target", *s->p, CELLS, s->cells);
    api_append(&sparse, others, sizeof others);
    api_append(&dense, others, sizeof others);
    snprintf(query, sizeof query, "input_space=logit&tail=%s&%s", tail, options);
    double ours = loss_of(query, sparse.data);
    snprintf(query, sizeof query, "input_space=prob&dim=-1&compat=math&%s", options);
    double expected = loss_of(query, dense.data);
    cr_expect(fabs(ours - expected) < 1e-14 * (1 + fabs(expected)), "%s&%s: %.17g, not %.17g", tail,
              options, ours, expected);
    api_buffer_free(&sparse);
    api_buffer_free(&dense);
}

Test(sparse_requests, give_the_loss_of_the_cells_that_the_tail_makes)
{
    static const char *const tails[] = {"bin", "drop", "ignore"};
    static const char *const options[] = {
        "reduction=sum", "reduction=mean&base=2", "reduction=batchmean&divergence=reverse",
        "reduction=sum&divergence=js&beta=0.25", "reduction=mean&divergence=skew&alpha=0.75"};
    unsigned state = 1;
    for (size_t i = 0; i < COUNT(tails) * COUNT(options); i++) {
        const char *tail = tails[i % COUNT(tails)], *chosen = options[i / COUNT(tails)];
        bool is_bin = i % COUNT(tails) == 0, drops = i % COUNT(tails) == 1;
        struct sample s = {.cells = is_bin ? CELLS : K};
        if (drops && strstr(chosen, "divergence"))
            s.cells = CELLS; /* what target gives no mass counts by that of input */
        for (size_t row = 0; row < ROWS; row++) {
            draw_row(&s, row, &state);
            fill_cells(&s, row, drops);
        }
        if (!(drops && strstr(chosen, "reverse"))) /* which is infinite */
            check_sample(&s, tail, chosen);
    }
    cr_expect_eq(bytes_held(), 0);
}
