#include "api/loss/call.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

void api_call_init(struct api_call *call, const struct api_service *service)
{
    struct api_budget *budget = service->budget;
    call->service = service;
    call->stop = NULL;
    call->is_shared = false;
    call->options = (struct api_options){.tensors = api_tensor_names};
    call->plan = (struct kl_plan){0};
    for (size_t i = 0; i < KL_FINDINGS; i++)
        call->diagnosis.findings[i].count = 0;
    call->loss = (struct api_buffer){.budget = budget};
    call->oip.id = (struct api_buffer){.budget = budget};
    call->oip.binary = call->oip.wanted = ~0u;
    call->oip.nonfinite = API_BARE;
    for (size_t i = 0; i < KL_OPERANDS; i++)
        call->gradients[i] = (struct api_buffer){.budget = budget};
    call->pairs[0] = call->pairs[1] = (struct api_buffer){.budget = budget};
    for (size_t i = 0; i < API_TENSORS; i++) {
        struct api_tensor *tensor = &call->tensors[i];
        tensor->operand = (enum kl_operand)i;
        tensor->present = tensor->is_input = false;
        tensor->data = (struct api_buffer){.budget = budget};
        tensor->slice = (struct api_slice){0};
    }
    for (size_t i = 0; i < API_RESULTS; i++)
        call->oip.slices[i] = (struct api_slice){0};
    for (size_t i = 0; i < KL_OPERANDS; i++)
        api_buffer_borrow(&call->tensors[i].data, call->small.operands[i], API_CALL_SMALL);
    api_buffer_borrow(&call->loss, call->small.loss, API_CALL_SMALL);
}

void api_call_free(struct api_call *call)
{
    for (size_t i = 0; i < API_TENSORS; i++) {
        api_buffer_free(&call->tensors[i].data);
        api_slice_end(&call->tensors[i].slice);
    }
    for (size_t i = 0; i < API_RESULTS; i++)
        api_slice_end(&call->oip.slices[i]);
    for (size_t i = 0; i < KL_OPERANDS; i++)
        api_buffer_free(&call->gradients[i]);
    api_buffer_free(&call->pairs[0]);
    api_buffer_free(&call->pairs[1]);
    api_buffer_free(&call->loss);
    api_buffer_free(&call->oip.id);
}

/* Fails with the shape of indices beside that of values. */
static bool fail_shape(const struct api_tensor *indices, const struct kl_tensor *values,
                       struct api_problem *problem)
{
    char memory[2 * (22 * KL_MAX_DIMS + 3)];
    struct api_buffer text = {0};
    api_buffer_borrow(&text, memory, sizeof memory);
    api_append_sizes(&text, indices->shape, indices->view.ndim);
    api_append_text(&text, ", expected ");
    api_append_sizes(&text, values->shape, values->ndim);
    return api_tensor_fail(indices, NULL, problem, "shape_mismatch",
                           "one is needed for each number of target (got %.*s)", (int)text.size,
                           text.data);
}

/* Checks what comes with a sparse target alone, or never does. A tail may be the default, which clients send that send all
 * options. */
static bool check_sparse(const struct api_call *call, struct api_problem *problem)
{
    const struct api_options *options = &call->options;
    const struct api_tensor *indices = &call->tensors[KL_INDICES],
                            *normalizer = &call->tensors[KL_LOG_NORMALIZER];
    const struct kl_tensor *values = &call->tensors[KL_TARGET].view;
    if (indices->present && (options->diagnose || options->loss.broadcast))
        return api_option_fail(options, options->diagnose ? API_DIAGNOSE : API_BROADCAST, problem,
                               "sparse_unsupported",
                               "a sparse target does not broadcast, and is not diagnosed");
    if (!indices->present && normalizer->present)
        return api_tensor_fail(normalizer, NULL, problem, "indices_missing",
                               "it is of a sparse target, but there are no indices");
    if (!indices->present && options->tail != KL_TAIL_BIN)
        return api_option_fail(options, API_TAIL, problem, "indices_missing",
                               "tail is of a sparse target, but there are no indices");
    return !indices->present ||
           (indices->view.ndim == values->ndim &&
            memcmp(indices->shape, values->shape, values->ndim * sizeof *values->shape) == 0) ||
           fail_shape(indices, values, problem);
}

/* Checks that all required tensors are present in the requested dtype. */
static bool check_tensors(const struct api_call *call, struct api_problem *problem)
{
    enum kl_dtype dtype = call->options.dtype;
    for (size_t i = 0; i < API_TENSORS; i++) {
        const struct api_tensor *tensor = &call->tensors[i];
        if (!tensor->present && i >= KL_OPERANDS)
            continue;
        if (!tensor->present)
            return api_fail_at(problem, API_BODY, "#", "tensor_missing",
                               "the body has no tensor '%s'", api_tensor_names[i]);
        if (call->options.given[API_DTYPE] && tensor->dtype < API_BYTE && tensor->dtype != dtype)
            return api_tensor_fail(tensor, NULL, problem, "option_invalid",
                                   "it is %s: dtype=%s is the dtype of numbers in JSON, "
                                   "and other formats have their own",
                                   kl_dtype_name(tensor->dtype), kl_dtype_name(dtype));
    }
    if (call->tensors[KL_GRAD_OUTPUT].present && !call->options.gradient)
        return api_tensor_fail(&call->tensors[KL_GRAD_OUTPUT], NULL, problem, "option_invalid",
                               "it is given, but no gradient is requested");
    return check_sparse(call, problem);
}

/* Copies the library's problem with an option to the location where the option was given. */
static bool translate_option(const struct api_call *call, const struct kl_problem *from,
                             struct api_problem *to)
{
    static const struct {
        const char *code;
        enum api_option option;
    } options[] = {{"dim_invalid", API_DIM},
                   {"temperature_invalid", API_TEMPERATURE},
                   {"temperature_unused", API_TEMPERATURE},
                   {"sparse_unsupported", API_DIM},
                   {"space_conflict", API_TARGET_SPACE}};
    if (strcmp(from->code, "stopped") == 0)
        return api_fail(to, "client_left", "the client closed its side");
    bool is_scale =
        !call->options.given[API_TEMPERATURE] && strcmp(from->code, "temperature_unused") == 0;
    if (is_scale)
        return api_option_fail(&call->options, API_SCALE, to, from->code, from->detail);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(from->code, options[i].code) == 0)
            return api_option_fail(&call->options, options[i].option, to, from->code, from->detail);
    return api_fail(to, from->code, "%s", from->detail);
}

/* Copies the library's problem, with its location in the request. */
static bool translate(const struct api_call *call, const struct kl_problem *from,
                      struct api_problem *to)
{
    if (from->operand == KL_NO_OPERAND)
        return translate_option(call, from, to);
    const struct api_tensor *tensor = &call->tensors[from->operand];
    char location[256];
    if (from->has_index)
        api_tensor_element_location(tensor, from->index, location, sizeof location);
    else
        api_tensor_location(tensor, location, sizeof location);
    return api_fail_at(to, API_BODY, location, from->code, "%s", from->detail);
}

/* MAX_EMPTY_ROWS: maximum number of empty arrays that a response nests, which a shape may ask for without
 * a byte of data. */
enum { MAX_EMPTY_ROWS = 1 << 16 };

static bool has_few_rows(const size_t *shape, size_t ndim, size_t count)
{
    size_t rows = 1;
    for (size_t i = 0; i < ndim && shape[i] > 0 && rows <= MAX_EMPTY_ROWS; i++)
        if (__builtin_mul_overflow(rows, shape[i], &rows))
            return count > 0;
    return count > 0 || ndim == 0 || rows <= MAX_EMPTY_ROWS;
}

/* Bounds the empty rows of the response: the loss has its own shape, gradients have their
 * operands'. */
static bool check_rows(const struct api_call *call, struct api_problem *problem)
{
    const struct kl_plan *plan = &call->plan;
    bool good = plan->count > 0 || plan->kept_count <= MAX_EMPTY_ROWS;
    good &= has_few_rows(plan->shape, plan->ndim, plan->kept_count);
    for (size_t i = 0; i < KL_OPERANDS; i++)
        good &= !api_call_has_gradient(call, i) ||
                has_few_rows(call->tensors[i].shape, call->tensors[i].view.ndim, plan->counts[i]);
    return good ||
           api_fail(problem, "shape_invalid",
                    "an empty response may have at most 65536 empty rows; this shape has more");
}

static bool reserve(struct api_buffer *buffer, size_t size, struct api_problem *problem)
{
    if (!api_buffer_reserve(buffer, size + 1))
        return api_fail_oom(problem);
    buffer->size = size;
    return true;
}

static struct api_buffer *output_buffer(struct api_call *call, size_t output)
{
    return output == API_LOSS ? &call->loss : &call->gradients[output - API_GRADIENTS];
}

/* The memory of an output, or NULL if there is none. */
static char *output_data(struct api_call *call, size_t output)
{
    char *shared = call->oip.slices[output].data;
    return shared ? shared : output_buffer(call, output)->data;
}

static bool reserve_outputs(struct api_call *call, struct api_problem *problem)
{
    if (call->options.partial)
        return reserve(&call->pairs[0], sizeof(double[2]), problem) &&
               reserve(&call->pairs[1], sizeof(double[2]), problem);
    for (size_t i = 0; i < API_RESULTS; i++)
        if (api_call_has_output(call, i) && !call->oip.slices[i].in &&
            !reserve(output_buffer(call, i), api_call_output_size(call, i), problem))
            return false;
    return true;
}

/* Writes sum and divisor, each a number and what rounding left of it. */
static bool run_partial(struct api_call *call, struct kl_diagnosis *diagnosis,
                        struct kl_problem *problem)
{
    struct kl_partial partial;
    double sum[2], divisor[2];
    if (!kl_run_partial(&call->plan, call->service->pool, &partial, problem))
        return false;
    kl_partial_sum(&partial, sum);
    kl_partial_divisor(&partial, call->plan.reduction, divisor);
    memcpy(call->pairs[0].data, sum, sizeof sum);
    memcpy(call->pairs[1].data, divisor, sizeof divisor);
    return !diagnosis || kl_diagnose(&call->plan, call->service->pool, diagnosis, problem);
}

/* Runs the call with the library's allocations counted in the budget. */
static bool compute(struct api_call *call, struct api_problem *problem)
{
    const struct api_tensor *grad_output = &call->tensors[KL_GRAD_OUTPUT];
    const struct kl_results results = {.loss = output_data(call, API_LOSS),
                                       .grad = {output_data(call, API_GRADIENTS + KL_INPUT),
                                                output_data(call, API_GRADIENTS + KL_TARGET)},
                                       .diagnosis =
                                           call->options.diagnose ? &call->diagnosis : NULL};
    struct kl_problem from = {0};
    size_t scratch = kl_scratch_size(&call->plan, call->service->pool, &results);
    if (scratch > 0 && !api_budget_reserve(call->loss.budget, scratch))
        return api_fail_oom(problem);
    bool good =
        call->options.partial
            ? run_partial(call, results.diagnosis, &from)
            : kl_run_gradients(&call->plan, grad_output->present ? &grad_output->view : NULL,
                               call->service->pool, &results, &from);
    if (scratch > 0)
        api_budget_release(call->loss.budget, scratch);
    if (good && !call->options.partial)
        call->plan.warnings |= kl_loss_warnings(&call->plan, results.loss);
    return good || translate(call, &from, problem);
}

/* Bounds the joint shape, to which small operands may broadcast. */
static bool check_extent(const struct api_call *call, struct api_problem *problem)
{
    const struct kl_plan *plan = &call->plan;
    size_t max = call->service->max_body / kl_dtype_size(plan->dtype);
    return plan->count <= max || plan->count == plan->counts[KL_INPUT] ||
           plan->count == plan->counts[KL_TARGET] ||
           api_fail(problem, "broadcast_too_large",
                    "the operands broadcast to %zu elements; this server accepts at most %zu "
                    "(--max-body divided by the size of an element)",
                    plan->count, max);
}

/* Refuses contradicting spaces. An explicit log_target=false contradicts target_space; the
 * default does not. */
static bool check_spaces(const struct api_options *options, struct api_problem *problem)
{
    return !options->given[API_LOG_TARGET] || options->loss.log_target ||
           options->loss.target_space != KL_LOG_PROB ||
           api_option_fail(options, API_TARGET_SPACE, problem, "space_conflict",
                           "log_target=false contradicts target_space=log_prob");
}

/* Refuses partial results of what does not add up over shards. */
static bool check_partial(const struct api_call *call, struct api_problem *problem)
{
    const struct api_options *options = &call->options;
    if (options->partial && call->plan.reduction == KL_NONE)
        return api_option_fail(options, API_PARTIAL, problem, "partial_none",
                               "a partial result needs a reduction, and reduction is none: the "
                               "losses of shards are those of the whole");
    return !options->partial || !options->gradient ||
           api_option_fail(options, API_PARTIAL, problem, "partial_gradient",
                           "a gradient is divided by the divisor of all shards: request it with "
                           "reduction=sum and without partial, and divide");
}

/* Lists axes in `dim`, which has room for API_MAX_AXES. */
static size_t list_axes(const struct api_axes *axes, int *dim)
{
    size_t n = 0;
    for (int i = 0; i < KL_MAX_DIMS && (axes->from_first | axes->from_last) >> i; i++) {
        if (axes->from_first >> i & 1)
            dim[n++] = i;
        if (axes->from_last >> i & 1)
            dim[n++] = -1 - i;
    }
    return n;
}

/* share: an option of one divergence. The defaults: beta as TRL's GKD has it, alpha as DistiLLM. */
static const struct share {
    enum api_option option;
    enum kl_divergence divergence;
    size_t member; /* its offset in kl_options */
    double fallback;
    const char *unused, *detail; /* the problem where another divergence has it */
} shares[] = {{API_BETA, KL_JS, offsetof(struct kl_options, beta), 0.5, "beta_unused",
               "beta is of divergence=js alone"},
              {API_ALPHA, KL_SKEW, offsetof(struct kl_options, alpha), 0.1, "alpha_unused",
               "alpha is of divergence=skew alone"}};

/* Sets the shares of mixtures. One of another divergence must be its default, which clients send that send all options. */
static bool set_shares(const struct api_options *given, struct kl_options *options,
                       struct api_problem *problem)
{
    for (const struct share *s = shares; s < shares + sizeof shares / sizeof *shares; s++) {
        double *share = (double *)(void *)((char *)options + s->member);
        bool is_used = options->divergence == s->divergence;
        if (!is_used && given->given[s->option] && *share != s->fallback)
            return api_option_fail(given, s->option, problem, s->unused, s->detail);
        if (!is_used || !given->given[s->option])
            *share = is_used ? s->fallback : 0;
    }
    return true;
}

static bool plan(struct api_call *call, struct api_problem *problem)
{
    int dim[API_MAX_AXES];
    struct kl_options options = call->options.loss;
    struct kl_problem from = {0};
    const struct api_tensor *weight = &call->tensors[KL_WEIGHT], *mask = &call->tensors[KL_MASK],
                            *indices = &call->tensors[KL_INDICES],
                            *normalizer = &call->tensors[KL_LOG_NORMALIZER];
    const struct kl_mask kept = {mask->view.ndim, mask->view.shape, mask->view.data};
    const struct kl_sparse sparse = {indices->view.data, indices->dtype == API_INT64,
                                     call->options.tail,
                                     normalizer->present ? &normalizer->view : NULL};
    options.dim = dim;
    options.n_dim = list_axes(&call->options.dim, dim);
    options.weight = weight->present ? &weight->view : NULL;
    options.mask = mask->present ? &kept : NULL;
    options.sparse = indices->present ? &sparse : NULL;
    if (!set_shares(&call->options, &options, problem))
        return false;
    if (!kl_plan(&call->plan, &call->tensors[KL_INPUT].view, &call->tensors[KL_TARGET].view,
                 &options, &from))
        return translate(call, &from, problem);
    return check_rows(call, problem) && check_extent(call, problem);
}

bool api_call_plan(struct api_call *call, struct api_problem *problem)
{
    return check_tensors(call, problem) && plan(call, problem) &&
           check_spaces(&call->options, problem) && check_partial(call, problem) &&
           api_call_check_slices(call, problem);
}

/* True if nobody waits for the response any more, or if it cannot be right. */
static bool is_stopped(const void *context)
{
    const struct api_call *call = context;
    return (call->stop && atomic_load(call->stop)) ||
           (call->is_shared && api_call_has_lost_slices(call));
}

bool api_call_run(struct api_call *call, struct api_problem *problem)
{
    const struct api_tensor *mask = &call->tensors[KL_MASK];
    call->plan.stopped = is_stopped;
    call->plan.stop_context = call;
    bool good = (!call->is_shared || api_call_begin_slices(call, problem)) &&
                (!mask->present || api_mask_check(mask, problem)) &&
                reserve_outputs(call, problem) && compute(call, problem);
    return (!call->is_shared || api_call_end_slices(call, problem)) && good;
}

struct api_buffer *api_call_output(struct api_call *call, size_t output, struct kl_tensor *view)
{
    const struct kl_plan *plan = &call->plan;
    if (output >= API_SUM) {
        static const size_t two = 2;
        struct api_buffer *pair = &call->pairs[output - API_SUM];
        *view = (struct kl_tensor){KL_FLOAT64, 1, &two, pair->data};
        return call->options.partial ? pair : NULL;
    }
    if (!api_call_has_output(call, output) || (output == API_LOSS && call->options.partial))
        return NULL;
    if (output == API_LOSS)
        *view = (struct kl_tensor){plan->dtype, plan->ndim, plan->shape, NULL};
    else
        *view = call->tensors[output - API_GRADIENTS].view;
    view->data = output_data(call, output);
    return output_buffer(call, output);
}
