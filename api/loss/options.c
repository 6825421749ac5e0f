#include "api/loss/options.h"

#include "api/request/route.h"
#include "api/text/nearest.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Values */

static bool has_text(const struct api_value *value)
{
    return value->kind == API_TEXT || value->kind == API_STRING;
}

/* True for the nulls of other languages, as text. */
static bool is_null(const struct api_value *value)
{
    static const char *const words[] = {"null", "None", "NULL", NULL};
    return value->kind == API_TEXT ? words[api_word_index(words, value->text)] != NULL
                                   : value->kind == API_NULL;
}

/* Reads the booleans of Python, JavaScript and R, and 0 and 1. */
static bool parse_boolean(const struct api_value *value, bool *boolean)
{
    static const char *const words[] = {"false", "true", "False", "True", "FALSE", "TRUE",
                                        "F",     "T",    "0",     "1",    NULL};
    size_t i = value->kind == API_TEXT ? api_word_index(words, value->text) : 0;
    *boolean = value->kind == API_BOOLEAN ? value->boolean : i % 2;
    return value->kind == API_BOOLEAN || (value->kind == API_TEXT && words[i]);
}

static bool read_boolean(const struct api_value *value, union api_field_value *to,
                         struct kl_problem *problem)
{
    (void)problem;
    return parse_boolean(value, &to->boolean);
}

static bool read_flag(const struct api_value *value, union api_field_value *to,
                      struct kl_problem *problem)
{
    bool boolean = false;
    (void)problem;
    if (!is_null(value) && !parse_boolean(value, &boolean))
        return false;
    to->word = is_null(value) ? KL_ABSENT : boolean ? KL_TRUE : KL_FALSE;
    return true;
}

/* Defines readers for words that the library parses. */
#define READ_WORD(kind)                                                                            \
    static bool read_##kind(const struct api_value *value, union api_field_value *to,              \
                            struct kl_problem *problem)                                            \
    {                                                                                              \
        enum kl_##kind parsed;                                                                     \
        if (!has_text(value) || !kl_##kind##_parse(value->text, &parsed, problem))                 \
            return false;                                                                          \
        to->word = (int)parsed;                                                                    \
        return true;                                                                               \
    }
READ_WORD(reduction)
READ_WORD(dtype)
READ_WORD(compat)
READ_WORD(base)
READ_WORD(space)
READ_WORD(divergence)
READ_WORD(scale)
READ_WORD(tail)

/* Reads the number 2 as the text "2". */
static bool read_base_or_two(const struct api_value *value, union api_field_value *to,
                             struct kl_problem *problem)
{
    const struct api_value two = {.kind = API_STRING, .text = "2"};
    if (value->kind != API_NUMBER)
        return read_base(value, to, problem);
    if (value->number == 2)
        return read_base(&two, to, problem);
    problem->code = "base_invalid";
    snprintf(problem->detail, sizeof problem->detail, "%g is not a valid value for base",
             value->number);
    return false;
}

static bool refuse(struct kl_problem *problem, const char *code, const char *expected,
                   const struct api_value *value)
{
    problem->code = code;
    if (has_text(value))
        snprintf(problem->detail, sizeof problem->detail, "%s, not '%.60s'", expected, value->text);
    else
        snprintf(problem->detail, sizeof problem->detail, "%s, not %.17g", expected, value->number);
    return false;
}

static const char *const operands[] = {[KL_INPUT] = "input", [KL_TARGET] = "target", NULL};

static bool read_gradient(const struct api_value *value, union api_field_value *to,
                          struct kl_problem *problem)
{
    size_t operand = has_text(value) ? api_word_index(operands, value->text) : KL_OPERANDS;
    to->bits |= operand < KL_OPERANDS ? 1u << operand : 0;
    return is_null(value) || operand < KL_OPERANDS ||
           (has_text(value) &&
            refuse(problem, "option_invalid", "gradient must be a list of operands", value));
}

/* Number of a text that is an integer, or of a number; NaN for other values. */
static double integer_of(const struct api_value *value)
{
    char *end;
    if (!has_text(value))
        return value->number;
    long number = strtol(value->text, &end, 10);
    return end > value->text && !*end ? (double)number : (double)NAN;
}

static bool read_axis(const struct api_value *value, union api_field_value *to,
                      struct kl_problem *problem)
{
    if (is_null(value))
        return true;
    if (!has_text(value) && (value->kind != API_NUMBER || value->number != trunc(value->number)))
        return false;
    double axis = integer_of(value);
    bool good = axis >= -KL_MAX_DIMS && axis < KL_MAX_DIMS;
    uint64_t *set = &to->sets[axis < 0];
    uint64_t bit = !good ? 0 : UINT64_C(1) << (int)(axis < 0 ? -1 - axis : axis);
    if (!good || *set & bit)
        return refuse(problem, "dim_invalid", "dim must be distinct integers from -64 to 63",
                      value);
    *set |= bit;
    return true;
}

/* The number of a number or a text; NaN of other texts. */
static double number_of(const struct api_value *value)
{
    char *end;
    if (!has_text(value))
        return value->number;
    double number = strtod(value->text, &end);
    return end > value->text && !*end ? number : (double)NAN;
}

static bool read_temperature(const struct api_value *value, union api_field_value *to,
                             struct kl_problem *problem)
{
    if (is_null(value))
        return true;
    if (!has_text(value) && value->kind != API_NUMBER)
        return false;
    to->number = number_of(value);
    return (to->number > 0 && isfinite(to->number)) ||
           refuse(problem, "temperature_invalid", "temperature must be a finite number above 0",
                  value);
}

static bool read_share(const struct api_value *value, const char *code, const char *expected,
                       union api_field_value *to, struct kl_problem *problem)
{
    if (!has_text(value) && value->kind != API_NUMBER)
        return false;
    to->number = number_of(value);
    return (to->number >= 0 && to->number <= 1) || refuse(problem, code, expected, value);
}

static bool read_beta(const struct api_value *value, union api_field_value *to,
                      struct kl_problem *problem)
{
    return read_share(value, "beta_invalid", "beta must be a number from 0 to 1", to, problem);
}

static bool read_alpha(const struct api_value *value, union api_field_value *to,
                       struct kl_problem *problem)
{
    return read_share(value, "alpha_invalid", "alpha must be a number from 0 to 1", to, problem);
}

static const char *const reductions[] = {"mean", "batchmean",        "sum",
                                         "none", "elementwise_mean", NULL};
static const char *const dtypes[] = {"float64", "float32", "float16", "bfloat16", NULL};
static const char *const compats[] = {"pytorch", "oneflow", "math", NULL};
static const char *const bases[] = {"e", "2", NULL};
static const char *const spaces[] = {"log_prob", "prob", "logit", NULL};
static const char *const divergences[] = {"forward", "reverse", "js", "skew", NULL};
static const char *const scales[] = {"none", "temperature_squared", NULL};
static const char *const tails[] = {"bin", "drop", "ignore", NULL};

#define FIELD(name) API_FIELD(struct api_options, name)
static const char string[] = "a string", boolean[] = "true or false",
                  flag[] = "true, false or null", values[] = "a string, an integer or a list";

const struct api_field api_loss_options[API_OPTIONS + 1] = {
    [API_REDUCTION] = {"reduction", FIELD(loss.reduction), string, false, reductions,
                       read_reduction},
    [API_LOG_TARGET] = {"log_target", FIELD(loss.log_target), boolean, false, NULL, read_boolean},
    [API_SIZE_AVERAGE] = {"size_average", FIELD(loss.size_average), flag, false, NULL, read_flag},
    [API_REDUCE] = {"reduce", FIELD(loss.reduce), flag, false, NULL, read_flag},
    [API_DTYPE] = {"dtype", FIELD(dtype), string, false, dtypes, read_dtype},
    [API_COMPAT] = {"compat", FIELD(loss.compat), string, false, compats, read_compat},
    [API_GRADIENT] = {"gradient", FIELD(gradient), values, true, operands, read_gradient},
    [API_BASE] = {"base", FIELD(loss.base), "e or 2", false, bases, read_base_or_two},
    [API_DIM] = {"dim", FIELD(dim), values, true, NULL, read_axis},
    [API_INPUT_SPACE] = {"input_space", FIELD(loss.input_space), string, false, spaces, read_space},
    [API_TARGET_SPACE] = {"target_space", FIELD(loss.target_space), string, false, spaces,
                          read_space},
    [API_TEMPERATURE] = {"temperature", FIELD(loss.temperature), "a number", false, NULL,
                         read_temperature},
    [API_BROADCAST] = {"broadcast", FIELD(loss.broadcast), boolean, false, NULL, read_boolean},
    [API_DIAGNOSE] = {"diagnose", FIELD(diagnose), boolean, false, NULL, read_boolean},
    [API_PARTIAL] = {"partial", FIELD(partial), boolean, false, NULL, read_boolean},
    [API_DIVERGENCE] = {"divergence", FIELD(loss.divergence), string, false, divergences,
                        read_divergence},
    [API_BETA] = {"beta", FIELD(loss.beta), "a number", false, NULL, read_beta},
    [API_ALPHA] = {"alpha", FIELD(loss.alpha), "a number", false, NULL, read_alpha},
    [API_SCALE] = {"scale", FIELD(loss.scale), string, false, scales, read_scale},
    [API_TAIL] = {"tail", FIELD(tail), string, false, tails, read_tail},
};

/* ---- Problems with their locations */

int api_option_find(const char *name)
{
    const struct api_field *row = api_field_find(api_loss_options, name);
    return row ? (int)(row - api_loss_options) : -1;
}

bool api_option_fail(const struct api_options *options, enum api_option option,
                     struct api_problem *problem, const char *code, const char *detail)
{
    const struct api_origin origin = {options->within[option], api_loss_options[option].name};
    return options->given[option] ? api_fail_member(problem, origin, code, "%s", detail)
                                  : api_fail(problem, code, "%s", detail);
}

static bool is_tensor(const struct api_options *options, const char *name)
{
    return options->tensors && options->tensors[api_word_index(options->tensors, name)];
}

static bool fail_unknown(const struct api_options *options, struct api_origin origin,
                         const char *const *also, struct api_problem *problem)
{
    const char *known[API_OPTIONS + 8], *name = origin.name;
    char list[300] = "", mean[API_MEAN];
    size_t n = 0;
    for (; n < API_OPTIONS; n++) {
        known[n] = api_loss_options[n].name;
        api_append_word(list, sizeof list, known[n]);
    }
    for (; also && *also && n < sizeof known / sizeof *known; also++)
        known[n++] = *also;
    const char *nearest = api_nearest(name, known, n);
    if (is_tensor(options, name))
        return api_fail_member(problem, origin, "option_unknown",
                               "%s is a tensor: send it in the body", name);
    if (nearest && is_tensor(options, nearest))
        return api_fail_member(problem, origin, "tensor_unknown",
                               "there is no tensor '%.60s'%s The tensors are " API_TENSOR_LIST,
                               name, api_mean(mean, nearest, "."));
    return api_fail_member(
        problem, origin, "option_unknown", "there is no option '%.60s'%s %s options are %s", name,
        api_mean(mean, nearest, "."),
        options->tensors && origin.within ? "The tensors are " API_TENSOR_LIST ", the" : "The",
        list);
}

/* Fails with the reader's detail, followed by the values that the option has. */
static bool fail_value(const struct api_option_input *setting, const struct api_value *value,
                       const struct kl_problem *from)
{
    const struct api_field *row = setting->row;
    bool is_text = has_text(value);
    char list[200] = "", mean[API_MEAN];
    size_t n = 0;
    if (!from->code)
        return api_fail_member(setting->problem, setting->origin, "option_invalid",
                               "%s must be %s%s%.100s%s", row->name, row->expected,
                               is_text ? ", not '" : "", is_text ? value->text : "",
                               is_text ? "'" : "");
    for (; row->words && row->words[n]; n++)
        api_append_word(list, sizeof list, row->words[n]);
    const char *nearest = is_text && n > 0 ? api_nearest(value->text, row->words, n) : NULL;
    return api_fail_member(setting->problem, setting->origin, from->code, "%s%s%s%s", from->detail,
                           api_mean(mean, nearest, n > 0 ? ";" : ""),
                           nearest ? " It takes "
                           : n > 0 ? " it takes "
                                   : "",
                           list);
}

/* ---- Setting */

bool api_option_begin(struct api_option_input *setting, struct api_options *options,
                      struct api_origin origin, const char *const *also,
                      struct api_problem *problem)
{
    *setting = (struct api_option_input){
        options, origin, problem, api_field_find(api_loss_options, origin.name), {{0}}};
    return setting->row || fail_unknown(options, origin, also, problem);
}

bool api_option_is_repeated(const struct api_option_input *setting, uint64_t *read)
{
    const struct api_field *row = setting->row;
    const char *suffix = setting->origin.name + strlen(row->name);
    if (*suffix && strcmp(suffix, "[]") != 0)
        return false; /* elements of a list, "dim[0]" and "dim[1]" */
    uint64_t bit = UINT64_C(1) << (row - api_loss_options) << (*suffix ? API_OPTIONS : 0);
    bool is_repeated = *read & bit;
    *read |= bit;
    return is_repeated;
}

static const char separators[] = "[]\", ";

/* Adds each word of a text such as "0,1" or, as in JSON, "[0, 1]". */
static bool add_list(struct api_option_input *setting, const char *text)
{
    char word[64];
    for (const char *p = text; *p; p += strspn(p, separators)) {
        size_t size = strcspn(p, separators);
        snprintf(word, sizeof word, "%.*s", size < sizeof word ? (int)size : (int)sizeof word, p);
        const struct api_value value = {.kind = API_STRING, .text = word};
        if (!api_option_add(setting, &value))
            return false;
        p += size;
    }
    return true;
}

bool api_option_add(struct api_option_input *setting, const struct api_value *value)
{
    const struct api_field *row = setting->row;
    struct kl_problem problem = {0};
    if (api_field_read(row, value, &setting->value, &problem))
        return true;
    const char *text = row->is_list && has_text(value) ? value->text : "";
    const char *first = text + strspn(text, separators);
    bool is_list = *first ? strpbrk(text, separators) != NULL : strcmp(text, "[]") == 0;
    return is_list ? add_list(setting, first) : fail_value(setting, value, &problem);
}

bool api_option_end(struct api_option_input *setting)
{
    const struct api_field *row = setting->row;
    struct api_options *options = setting->options;
    const char *within = setting->origin.within;
    size_t option = (size_t)(row - api_loss_options);
    bool again = options->given[option];
    /* A list that is given again in the same place, the query or a form, is extended; lists are bits. */
    bool joins = again && row->is_list && within == options->within[option];
    for (size_t i = 0; joins && i < row->size; i++)
        setting->value.bytes[i] |= ((const unsigned char *)options)[row->offset + i];
    if (!api_field_store(row, options, &setting->value, again && !joins))
        return api_fail_member(
            setting->problem, setting->origin, "option_conflict",
            "%s is given twice, with different values (in the query and in the body)",
            setting->origin.name);
    options->given[option] = true;
    if (!again)
        options->within[option] = within;
    return true;
}

bool api_option_set_text(struct api_options *options, struct api_origin origin, const char *text,
                         const char *const *also, struct api_problem *problem)
{
    struct api_option_input setting;
    const struct api_value value = {.kind = API_TEXT, .text = text};
    return api_option_begin(&setting, options, origin, also, problem) &&
           api_option_add(&setting, &value) && api_option_end(&setting);
}

bool api_options_from_query(struct api_options *options, const char *query, bool only_known,
                            struct api_problem *problem)
{
    struct api_parameter parameter;
    const char *rest = query ? query : "";
    for (;;) {
        bool good = api_query_next(&rest, &parameter, problem);
        if (!good && !problem->code)
            return true;
        if (only_known && api_option_find(parameter.name) < 0) {
            problem->code = NULL;
            continue;
        }
        if (!good || !api_option_set_text(options, (struct api_origin){NULL, parameter.name},
                                          parameter.value, NULL, problem))
            return false;
    }
}
