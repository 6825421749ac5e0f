#include "api/loss_options.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_text(const struct api_value *value)
{
    return value->kind == API_TEXT || value->kind == API_STRING;
}

/* True for the nulls of other languages, as text, and for an empty parameter. */
static bool is_null(const struct api_value *value)
{
    static const char *const words[] = {"", "null", "None", "NULL"};
    if (value->kind != API_TEXT)
        return value->kind == API_NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(value->text, words[i]) == 0)
            return true;
    return false;
}

/* Reads the booleans of Python, JavaScript and R, and 0 and 1. */
static bool parse_boolean(const struct api_value *value, bool *boolean)
{
    static const struct {
        const char *word;
        bool boolean;
    } words[] = {{"true", true},   {"True", true},   {"TRUE", true},   {"T", true},  {"1", true},
                 {"false", false}, {"False", false}, {"FALSE", false}, {"F", false}, {"0", false}};
    if (value->kind == API_BOOLEAN) {
        *boolean = value->boolean;
        return true;
    }
    for (size_t i = 0; value->kind == API_TEXT && i < sizeof words / sizeof *words; i++)
        if (strcmp(value->text, words[i].word) == 0) {
            *boolean = words[i].boolean;
            return true;
        }
    return false;
}

static bool read_boolean(const struct api_value *value, union api_option_value *to,
                         struct kl_problem *problem)
{
    (void)problem;
    return parse_boolean(value, &to->boolean);
}

static bool read_flag(const struct api_value *value, union api_option_value *to,
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
    static bool read_##kind(const struct api_value *value, union api_option_value *to,             \
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

/* Reads the number 2 as the text "2". */
static bool read_base_or_two(const struct api_value *value, union api_option_value *to,
                             struct kl_problem *problem)
{
    const struct api_value two = {.kind = API_STRING, .text = "2"};
    if (value->kind != API_NUMBER)
        return read_base(value, to, problem);
    if (value->number == 2)
        return read_base(&two, to, problem);
    problem->code = "base_invalid";
    snprintf(problem->detail, sizeof problem->detail, "base must be e or 2, not %g", value->number);
    return false;
}

static bool fail(struct kl_problem *problem, const char *code, const char *expected,
                 const struct api_value *value)
{
    problem->code = code;
    if (has_text(value))
        snprintf(problem->detail, sizeof problem->detail, "%s, not '%.60s'", expected, value->text);
    else
        snprintf(problem->detail, sizeof problem->detail, "%s, not %.15g", expected, value->number);
    return false;
}

static bool read_gradient(const struct api_value *value, union api_option_value *to,
                          struct kl_problem *problem)
{
    static const char *const names[] = {[KL_INPUT] = "input", [KL_TARGET] = "target"};
    if (is_null(value))
        return true;
    for (unsigned i = 0; has_text(value) && i < KL_OPERANDS; i++)
        if (strcmp(value->text, names[i]) == 0) {
            to->bits |= 1u << i;
            return true;
        }
    return has_text(value) && fail(problem, "option_invalid",
                                   "gradient must be input, target, or a list of them", value);
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

static bool read_axis(const struct api_value *value, union api_option_value *to,
                      struct kl_problem *problem)
{
    if (is_null(value))
        return true;
    if (!has_text(value) && (value->kind != API_NUMBER || value->number != trunc(value->number)))
        return false;
    double axis = integer_of(value);
    bool good = axis >= -KL_MAX_DIMS && axis < KL_MAX_DIMS;
    uint64_t *set = axis < 0 ? &to->axes.from_last : &to->axes.from_first;
    uint64_t bit = !good ? 0 : UINT64_C(1) << (int)(axis < 0 ? -1 - axis : axis);
    if (!good || *set & bit)
        return fail(problem, "dim_invalid", "dim must be distinct integers from -64 to 63", value);
    *set |= bit;
    return true;
}

static bool read_temperature(const struct api_value *value, union api_option_value *to,
                             struct kl_problem *problem)
{
    char *end = NULL;
    double number = has_text(value) ? strtod(value->text, &end) : value->number;
    if (is_null(value))
        return true;
    if (!has_text(value) && value->kind != API_NUMBER)
        return false;
    if ((end && (end == value->text || *end)) || !(number > 0) || isinf(number))
        return fail(problem, "temperature_invalid", "temperature must be a finite number above 0",
                    value);
    to->number = number;
    return true;
}

static const char *const reductions[] = {"mean", "batchmean",        "sum",
                                         "none", "elementwise_mean", NULL};
static const char *const dtypes[] = {"float64", "float32", "float16", "bfloat16", NULL};
static const char *const compats[] = {"pytorch", "oneflow", "math", NULL};
static const char *const bases[] = {"e", "2", NULL};
static const char *const spaces[] = {"log_prob", "prob", "logit", NULL};
static const char *const operands[] = {"input", "target", NULL};

#define FIELD(name) #name, offsetof(struct api_options, name), sizeof((struct api_options *)0)->name
static const char string[] = "a string", boolean[] = "true or false",
                  flag[] = "true, false or null", list[] = "a string, an integer or a list";

const struct api_loss_option api_loss_options[API_OPTIONS] = {
    [API_REDUCTION] = {FIELD(reduction), string, false, reductions, read_reduction},
    [API_LOG_TARGET] = {FIELD(log_target), boolean, false, NULL, read_boolean},
    [API_SIZE_AVERAGE] = {FIELD(size_average), flag, false, NULL, read_flag},
    [API_REDUCE] = {FIELD(reduce), flag, false, NULL, read_flag},
    [API_DTYPE] = {FIELD(dtype), string, false, dtypes, read_dtype},
    [API_COMPAT] = {FIELD(compat), string, false, compats, read_compat},
    [API_GRADIENT] = {FIELD(gradient), list, true, operands, read_gradient},
    [API_BASE] = {FIELD(base), "e or 2", false, bases, read_base_or_two},
    [API_DIM] = {FIELD(dim), list, true, NULL, read_axis},
    [API_INPUT_SPACE] = {FIELD(input_space), string, false, spaces, read_space},
    [API_TARGET_SPACE] = {FIELD(target_space), string, false, spaces, read_space},
    [API_TEMPERATURE] = {FIELD(temperature), "a number", false, NULL, read_temperature},
    [API_BROADCAST] = {FIELD(broadcast), boolean, false, NULL, read_boolean},
    [API_DIAGNOSE] = {FIELD(diagnose), boolean, false, NULL, read_boolean},
    [API_PARTIAL] = {FIELD(partial), boolean, false, NULL, read_boolean},
};
