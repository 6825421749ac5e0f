/* Losses summed over axes, against sums of the losses of each element. */
#include "lib/kldiv.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    size_t shape[6], ndim, count;
    double *x, *t, *each, *sums;
};

static struct sample make(const size_t *shape, size_t ndim, unsigned long long *state)
{
    struct sample s = {.ndim = ndim, .count = 1};
    for (size_t i = 0; i < ndim; i++)
        s.count *= s.shape[i] = shape[i];
    double **arrays[] = {&s.x, &s.t, &s.each, &s.sums};
    for (size_t i = 0; i < COUNT(arrays); i++) {
        *arrays[i] = calloc(s.count + 1, sizeof(double));
        cr_assert(*arrays[i]);
    }
    for (size_t i = 0; i < s.count; i++) {
        s.x[i] = log(uniform(state) + 1e-9);
        s.t[i] = uniform(state);
        s.each[i] = s.t[i] * (log(s.t[i]) - s.x[i]);
    }
    return s;
}

static void end(struct sample *s)
{
    free(s->x);
    free(s->t);
    free(s->each);
    free(s->sums);
}

/* Sums by definition: finds each element's entry by its subscripts. */
static size_t sum_by_definition(struct sample *s, const bool *summed, double *sums)
{
    size_t places = 1;
    for (size_t i = 0; i < s->ndim; i++)
        places *= summed[i] ? 1 : s->shape[i];
    memset(sums, 0, places * sizeof *sums);
    for (size_t e = 0; e < s->count; e++) {
        size_t place = 0, stride = 1, rest = e;
        for (size_t i = s->ndim; i-- > 0; rest /= s->shape[i]) {
            if (summed[i])
                continue;
            place += rest % s->shape[i] * stride;
            stride *= s->shape[i];
        }
        sums[place] += s->each[e];
    }
    return places;
}

static void check(struct sample *s, unsigned axes, struct kl_pool *pool)
{
    int dim[6];
    bool summed[6] = {false};
    struct kl_options options = {.dim = dim};
    for (size_t i = 0; i < s->ndim; i++)
        if (axes >> i & 1) {
            dim[options.n_dim++] = i & 1 ? (int)i : (int)i - (int)s->ndim;
            summed[i] = true;
        }
    size_t places = sum_by_definition(s, summed, s->sums);
    struct kl_tensor input = {KL_FLOAT64, s->ndim, s->shape, s->x};
    struct kl_tensor target = {KL_FLOAT64, s->ndim, s->shape, s->t};
    double *loss = malloc((places + 1) * sizeof *loss), total = 0, one;
    struct kl_plan plan;
    options.reduction = KL_NONE;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert_eq(plan.kept_count, places);
    cr_assert_eq(plan.loss_size, places * sizeof *loss);
    cr_assert(kl_run(&plan, pool, loss, NULL));
    for (size_t i = 0; i < places; i++) {
        cr_expect_lt(fabs(loss[i] - s->sums[i]), 1e-11 * (1 + fabs(s->sums[i])),
                     "axes %x, place %zu: %g is not %g", axes, i, loss[i], s->sums[i]);
        total += s->sums[i];
    }
    options.reduction = KL_MEAN;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert(kl_run(&plan, pool, &one, NULL));
    cr_expect_lt(fabs(one - total / (double)places), 1e-11 * (1 + fabs(one)));
    options.reduction = KL_BATCHMEAN;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert(kl_run(&plan, pool, &one, NULL));
    cr_expect_lt(fabs(one - total / (double)plan.batch), 1e-11 * (1 + fabs(one)));
    free(loss);
}

Test(axes, any_of_them_may_be_summed_over)
{
    static const struct {
        size_t ndim, shape[6];
    } shapes[] = {{1, {7}},          {2, {5, 3}},          {2, {1, 4}},
                  {2, {700, 3}},     {2, {3, 1300}},       {2, {90, 200}},
                  {3, {4, 5, 6}},    {3, {2, 600, 3}},     {4, {3, 4, 5, 6}},
                  {4, {2, 1, 7, 1}}, {5, {2, 3, 2, 3, 2}}, {6, {2, 2, 3, 1, 2, 150}}};
    unsigned long long state = 17;
    struct kl_pool *pool = kl_pool_new(2);
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct sample s = make(shapes[i].shape, shapes[i].ndim, &state);
        for (unsigned axes = 0; axes < 1u << shapes[i].ndim; axes++)
            check(&s, axes, axes & 1 ? pool : NULL);
        end(&s);
    }
    kl_pool_free(pool);
}

Test(axes, gradients_go_back_to_every_element_of_a_row)
{
    const size_t shape[] = {3, 4, 5};
    const int dim[] = {1};
    unsigned long long state = 3;
    struct sample s = make(shape, 3, &state);
    struct kl_tensor input = {KL_FLOAT64, 3, shape, s.x}, target = {KL_FLOAT64, 3, shape, s.t};
    struct kl_options options = {.reduction = KL_NONE, .dim = dim, .n_dim = 1};
    struct kl_plan plan;
    double g[15], gradient[60];
    const struct kl_results results = {.grad[KL_INPUT] = gradient};
    for (int i = 0; i < 15; i++)
        g[i] = i + 1;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    struct kl_tensor upstream = {KL_FLOAT64, 2, (const size_t[]){3, 5}, g};
    cr_assert(kl_run_gradients(&plan, &upstream, NULL, &results, NULL));
    for (size_t i = 0; i < 60; i++)
        cr_expect_eq(gradient[i], -s.t[i] * g[i / 20 * 5 + i % 5], "%zu", i);
    options.reduction = KL_MEAN;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, NULL));
    for (size_t i = 0; i < 60; i++)
        cr_expect_lt(fabs(gradient[i] + s.t[i] / 15), 1e-16, "%zu", i);
    end(&s);
}

Test(axes, must_be_there_and_stand_once)
{
    static const struct {
        size_t ndim;
        int dim[2];
        size_t n_dim;
        const char *detail;
    } cases[] = {
        {2, {2}, 1, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"},
        {2, {-3}, 1, "Dimension out of range (expected to be in range of [-2, 1], but got -3)"},
        {0, {1}, 1, "Dimension out of range (expected to be in range of [-1, 0], but got 1)"},
        {2, {0, 0}, 2, "dim 0 appears multiple times in the list of dims"},
        {2, {1, -1}, 2, "dim 1 appears multiple times in the list of dims"},
    };
    const size_t shape[] = {1, 1};
    const double one = 1;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kl_tensor tensor = {KL_FLOAT64, cases[i].ndim, shape, &one};
        struct kl_options options = {.dim = cases[i].dim, .n_dim = cases[i].n_dim};
        struct kl_problem problem = {0};
        struct kl_plan plan;
        cr_expect_not(kl_plan(&plan, &tensor, &tensor, &options, &problem));
        cr_expect_str_eq(problem.code, "dim_invalid");
        cr_expect_str_eq(problem.detail, cases[i].detail);
    }
}

Test(axes, of_empty_operands_leave_zeros)
{
    const size_t shape[] = {3, 0};
    const int dim[] = {-1};
    struct kl_tensor tensor = {KL_FLOAT64, 2, shape, ""};
    struct kl_options options = {.reduction = KL_NONE, .dim = dim, .n_dim = 1};
    struct kl_plan plan;
    double loss[3] = {7, 7, 7};
    cr_assert(kl_plan(&plan, &tensor, &tensor, &options, NULL));
    cr_expect_eq(plan.loss_size, sizeof loss);
    cr_assert(kl_run(&plan, NULL, loss, NULL));
    for (int i = 0; i < 3; i++)
        cr_expect_eq(loss[i], 0);
}

Test(axes, of_requests_are_summed_over_before_they_reduce)
{
    static const char tensors[] = "\"input\": [[-1, -0.5], [-2, -0.2]], "
                                  "\"target\": [[0.4, 0.6], [0.1, 0.9]]";
    static const struct {
        const char *query, *members;
        double loss[2]; /* one per row, or one in all */
        size_t rows;
    } cases[] = {
        {"reduction=none&dim=-1", "", {0.02698833299066, 0.05491702660854}, 2},
        {"reduction=none", ", \"dim\": 1", {0.02698833299066, 0.05491702660854}, 2},
        {"reduction=none&dim=0", "", {0.00322519795093, 0.07868016164836}, 2},
        {"reduction=mean&dim=1", "", {0.0409526797996476}, 0},
        {"reduction=batchmean", ", \"dim\": [0, 1]", {0.08190535959929536}, 0},
        {"reduction=none&dim=0,1", "", {0.08190535959929536}, 0},
        {"reduction=sum", ", \"dim\": \"[0]\"", {0.08190535959929536}, 0},
        {"reduction=sum&dim=null&gradient=None",
         ", \"dim\": null, \"grad_output\": null",
         {0.08190535959929536},
         0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[300];
        snprintf(body, sizeof body, "{%s%s}", tensors, cases[i].members);
        struct answer answer = ask_loss(cases[i].query, body);
        const json_t *loss = json_object_get(answer.json, "loss");
        cr_expect_eq(answer.status, 200, "case %zu", i);
        cr_expect_eq(json_array_size(loss), cases[i].rows, "case %zu", i);
        for (size_t j = 0; j < (cases[i].rows ? cases[i].rows : 1); j++) {
            double ours = number_of(cases[i].rows ? json_array_get(loss, j) : loss);
            cr_expect_lt(fabs(ours - cases[i].loss[j]), 1e-13, "case %zu: %.17g", i, ours);
        }
        answer_free(&answer);
    }
}

/* Empty rows, more of them than memory could hold losses of. */
Test(axes, empty_rows_may_be_many)
{
    enum { MAX = 3 };
    static const int last[] = {-1};
    const size_t huge = SIZE_MAX / 2;
    const struct {
        size_t ndim, shape[MAX];
        bool sums, keeps; /* the losses of rows can be summed, and stored */
    } cases[] = {{2, {huge, 0}, true, false},
                 {2, {3, 0}, true, true},
                 {3, {huge, 3, 0}, false, false},
                 {3, {huge, 0, 0}, true, true},
                 {2, {0, huge}, true, true}};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (enum kl_reduction r = KL_MEAN; r <= KL_NONE; r++) {
            struct kl_tensor empty = {KL_FLOAT64, cases[i].ndim, cases[i].shape, ""};
            struct kl_options options = {.reduction = r, .dim = last, .n_dim = 1};
            struct kl_problem problem = {0};
            struct kl_plan plan;
            double loss[3] = {7, 7, 7};
            bool good = r == KL_NONE ? cases[i].keeps : cases[i].sums;
            cr_expect_eq(kl_plan(&plan, &empty, &empty, &options, &problem), good, "case %zu, %d",
                         i, r);
            if (good && kl_run(&plan, NULL, loss, &problem))
                cr_expect(plan.loss_size == 0 || loss[0] == 0 || plan.kept_count == 0,
                          "case %zu, %d: %g", i, r, loss[0]);
            else
                cr_expect_str_eq(problem.code, "shape_invalid");
        }
}

/* Rows that options.dim masks as a whole do not count; rows whose elements are masked do. */
Test(axes, rows_that_a_diagnosis_counts)
{
    static const int last[] = {-1};
    static const double zeros[12];
    static const unsigned char kept[12] = {1, 0, 0, 1};
    const size_t shape[] = {4, 3}, rows[] = {4}, across[] = {4, 1};
    const struct {
        struct kl_mask mask;
        size_t n_dim, rows;
    } masks[] = {{{1, rows, kept}, 1, 2},
                 {{2, across, kept}, 0, 4},
                 {{2, shape, kept}, 0, 4},
                 {{0, NULL, NULL}, 1, 4},
                 {{0, NULL, NULL}, 0, 4}};
    for (size_t i = 0; i < COUNT(masks); i++) {
        struct kl_tensor tensor = {KL_FLOAT64, 2, shape, zeros};
        struct kl_options options = {.dim = last,
                                     .n_dim = masks[i].n_dim,
                                     .mask = masks[i].mask.data ? &masks[i].mask : NULL};
        struct kl_diagnosis diagnosis;
        struct kl_plan plan;
        cr_assert(kl_plan(&plan, &tensor, &tensor, &options, NULL) &&
                  kl_diagnose(&plan, NULL, &diagnosis, NULL));
        cr_expect_eq(diagnosis.rows, masks[i].rows, "case %zu: %zu", i, diagnosis.rows);
    }
}
