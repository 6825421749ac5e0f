#include "api/options.h"

#include "api/text/nearest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the library reads, as the number of an enum. */
#define PARSE(word_kind)                                                                           \
    static bool parse_##word_kind(const char *word, int64_t *value, struct kl_problem *problem)    \
    {                                                                                              \
        enum kl_##word_kind parsed;                                                                \
        if (!kl_##word_kind##_parse(word, &parsed, problem))                                       \
            return false;                                                                          \
        *value = (int64_t)parsed;                                                                  \
        return true;                                                                               \
    }
PARSE(reduction)
PARSE(dtype)
PARSE(compat)
PARSE(base)
PARSE(space)

static bool is_absent(const char *text)
{
    return strcmp(text, "null") == 0 || strcmp(text, "None") == 0;
}

/* "input", "target", both with a comma between, or as a JSON array's text; nothing is neither. */
static bool parse_gradient(const char *words, int64_t *value, struct kl_problem *problem)
{
    static const char *const names[] = {"input", "target"}, separators[] = "[]\", ";
    *value = 0;
    if (is_absent(words))
        return true;
    for (const char *p = words + strspn(words, separators); *p; p += strspn(p, separators)) {
        size_t size = strcspn(p, separators), i = 0;
        while (i < 2 && (strlen(names[i]) != size || strncmp(p, names[i], size) != 0))
            i++;
        if (i == 2) {
            problem->code = "option_invalid";
            snprintf(problem->detail, sizeof problem->detail,
                     "gradient must be input, target, or a list of them, not '%.*s'",
                     size < 60 ? (int)size : 60, p);
            return false;
        }
        *value |= INT64_C(1) << i;
        p += size;
    }
    return true;
}

/* Integers with commas between, or as a JSON array's text. */
static bool parse_dim(const char *words, int64_t *value, struct kl_problem *problem)
{
    enum { MOST = 31 };
    static const char separators[] = "[], ";
    *value = 0;
    if (is_absent(words))
        return true;
    for (const char *p = words + strspn(words, separators); *p; p += strspn(p, separators)) {
        char *end;
        long dim = strtol(p, &end, 10);
        bool good =
            end > p && (!*end || strchr(separators, *end)) && dim >= -MOST - 1 && dim <= MOST;
        uint64_t bit = good ? UINT64_C(1) << (dim < 0 ? MOST - dim : dim) : 0;
        if (!good || (uint64_t)*value & bit) {
            problem->code = "dim_invalid";
            snprintf(problem->detail, sizeof problem->detail,
                     "dim must be integers from -32 to 31, each once, not '%.60s'", words);
            return false;
        }
        *value = (int64_t)((uint64_t)*value | bit);
        p = end;
    }
    return true;
}

static bool parse_temperature(const char *word, int64_t *value, struct kl_problem *problem)
{
    char *end;
    double temperature = strtod(word, &end);
    if (is_absent(word)) {
        *value = 0;
        return true;
    }
    if (end == word || *end || !(temperature > 0) || isinf(temperature)) {
        problem->code = "temperature_invalid";
        snprintf(problem->detail, sizeof problem->detail,
                 "temperature must be a finite number above 0, not '%.40s'", word);
        return false;
    }
    memcpy(value, &temperature, sizeof *value);
    return true;
}

/* What an option takes, and the values it has for null, true and false. */
enum kind { WORD, NUMBER, LIST, BOOLEAN, FLAG };

static const struct row {
    const char *name;
    enum kind kind;
    bool (*parse)(const char *word, int64_t *value,
                  struct kl_problem *problem); /* the first three */
} rows[API_OPTIONS] = {
    [API_REDUCTION] = {"reduction", WORD, parse_reduction},
    [API_LOG_TARGET] = {"log_target", BOOLEAN, NULL},
    [API_SIZE_AVERAGE] = {"size_average", FLAG, NULL},
    [API_REDUCE] = {"reduce", FLAG, NULL},
    [API_DTYPE] = {"dtype", WORD, parse_dtype},
    [API_COMPAT] = {"compat", WORD, parse_compat},
    [API_GRADIENT] = {"gradient", LIST, parse_gradient},
    [API_BASE] = {"base", WORD, parse_base},
    [API_DIM] = {"dim", LIST, parse_dim},
    [API_INPUT_SPACE] = {"input_space", WORD, parse_space},
    [API_TARGET_SPACE] = {"target_space", WORD, parse_space},
    [API_TEMPERATURE] = {"temperature", NUMBER, parse_temperature},
    [API_BROADCAST] = {"broadcast", BOOLEAN, NULL},
    [API_DIAGNOSE] = {"diagnose", BOOLEAN, NULL},
};

static const char *const expected[] = {[WORD] = "a string",
                                       [NUMBER] = "a number",
                                       [LIST] = "a string, an integer or a list",
                                       [BOOLEAN] = "true or false",
                                       [FLAG] = "true, false or null"};

struct kl_options api_options_for_loss(const struct api_options *options, int *dim)
{
    size_t n_dim = 0;
    double temperature;
    memcpy(&temperature, &options->value[API_TEMPERATURE], sizeof temperature);
    for (int i = 0; i < API_MAX_AXES; i++)
        if ((uint64_t)options->value[API_DIM] >> i & 1)
            dim[n_dim++] = i < API_MAX_AXES / 2 ? i : API_MAX_AXES / 2 - 1 - i;
    return (struct kl_options){
        .reduction = (enum kl_reduction)options->value[API_REDUCTION],
        .size_average = (enum kl_flag)options->value[API_SIZE_AVERAGE],
        .reduce = (enum kl_flag)options->value[API_REDUCE],
        .log_target = options->value[API_LOG_TARGET] != 0,
        .compat = (enum kl_compat)options->value[API_COMPAT],
        .base = (enum kl_base)options->value[API_BASE],
        .input_space = (enum kl_space)options->value[API_INPUT_SPACE],
        .target_space = (enum kl_space)options->value[API_TARGET_SPACE],
        .temperature = temperature,
        .broadcast = options->value[API_BROADCAST] != 0,
        .dim = dim,
        .n_dim = n_dim,
    };
}

enum kl_dtype api_options_dtype(const struct api_options *options)
{
    return (enum kl_dtype)options->value[API_DTYPE];
}

int api_option_find(const char *name)
{
    for (int i = 0; i < API_OPTIONS; i++)
        if (strcmp(name, rows[i].name) == 0)
            return i;
    return -1;
}

void api_pointer_to_member(char *to, size_t size, const char *within, const char *name)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-._!$&'()*+,;=:@?";
    size_t used = (size_t)snprintf(to, size, "%s", within);
    for (; *name && used + 4 < size; name++) {
        if (*name == '~' || *name == '/')
            used += (size_t)snprintf(to + used, size - used, "~%d", *name == '/');
        else if (strchr(plain, *name))
            to[used++] = *name;
        else
            used += (size_t)snprintf(to + used, size - used, "%%%02X", (unsigned char)*name);
    }
    to[used] = '\0';
}

static bool fail_option(struct api_origin origin, struct api_problem *problem, const char *code,
                        const char *detail)
{
    char pointer[256];
    if (!origin.within)
        return api_fail_at(problem, API_QUERY, origin.name, code, "%s", detail);
    api_pointer_to_member(pointer, sizeof pointer, origin.within, origin.name);
    return api_fail_at(problem, API_BODY, pointer, code, "%s", detail);
}

bool api_option_fail(const struct api_options *options, enum api_option option,
                     struct api_problem *problem, const char *code, const char *detail)
{
    const struct api_origin origin = {options->within[option], rows[option].name};
    return options->given[option] ? fail_option(origin, problem, code, detail)
                                  : api_fail(problem, code, "%s", detail);
}

static bool unknown(struct api_origin origin, const char *const *also, struct api_problem *problem)
{
    const char *known[API_OPTIONS + 8];
    char detail[300];
    size_t n = 0;
    for (; n < API_OPTIONS; n++)
        known[n] = rows[n].name;
    for (; also && *also && n < sizeof known / sizeof *known; also++)
        known[n++] = *also;
    const char *nearest = api_nearest(origin.name, known, n);
    bool is_option = !nearest || api_option_find(nearest) >= 0;
    snprintf(detail, sizeof detail, "there is no %s '%.100s'%s%s%s",
             is_option ? "option" : "tensor", origin.name, nearest ? "; did you mean '" : "",
             nearest ? nearest : "", nearest ? "'?" : "");
    return fail_option(origin, problem, is_option ? "option_unknown" : "tensor_unknown", detail);
}

static bool fail_conflict(struct api_origin origin, struct api_problem *problem)
{
    char detail[300];
    snprintf(detail, sizeof detail,
             "%s is given twice, with different values (query parameters and members of the body "
             "count alike)",
             origin.name);
    return fail_option(origin, problem, "option_conflict", detail);
}

static bool settle(struct api_options *options, int option, int64_t value, struct api_origin origin,
                   struct api_problem *problem)
{
    if (options->given[option] && options->value[option] != value)
        return fail_conflict(origin, problem);
    options->given[option] = true;
    options->value[option] = value;
    options->within[option] = origin.within;
    return true;
}

static bool settle_word(struct api_options *options, int option, const char *word,
                        struct api_origin origin, struct api_problem *problem)
{
    struct kl_problem from = {0};
    int64_t value = 0;
    if (!rows[option].parse(word, &value, &from))
        return fail_option(origin, problem, from.code, from.detail);
    return settle(options, option, value, origin, problem);
}

/* The value an option of `kind` has for a truth value. */
static int from_bool(enum kind kind, bool truth)
{
    return kind == BOOLEAN ? truth : truth ? KL_TRUE : KL_FALSE;
}

bool api_option_set_text(struct api_options *options, struct api_origin origin, const char *text,
                         const char *const *also, struct api_problem *problem)
{
    static const struct {
        const char *word;
        enum { YES, NO, ABSENT } meaning;
    } spellings[] = {{"true", YES}, {"True", YES}, {"1", YES},       {"false", NO},   {"False", NO},
                     {"0", NO},     {"", ABSENT},  {"null", ABSENT}, {"None", ABSENT}};
    char detail[300];
    int option = api_option_find(origin.name);
    if (option < 0)
        return unknown(origin, also, problem);
    enum kind kind = rows[option].kind;
    if (rows[option].parse)
        return settle_word(options, option, text, origin, problem);
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        if (strcmp(text, spellings[i].word) != 0)
            continue;
        if (spellings[i].meaning != ABSENT)
            return settle(options, option, from_bool(kind, spellings[i].meaning == YES), origin,
                          problem);
        if (kind == FLAG)
            return settle(options, option, KL_ABSENT, origin, problem);
    }
    snprintf(detail, sizeof detail, "%s must be %s, not '%.100s'", origin.name, expected[kind],
             text);
    return fail_option(origin, problem, "option_invalid", detail);
}

/* The strings and integers of an array, with commas between; null has none. False if it holds other
 * things, or too much. */
static bool join(const json_t *array, char *to, size_t size)
{
    size_t i, used = 0;
    json_t *item;
    *to = '\0';
    if (!json_is_array(array))
        return json_is_null(array);
    json_array_foreach(array, i, item)
    {
        if (json_is_string(item))
            used += (size_t)snprintf(to + used, size - used, "%s,", json_string_value(item));
        else if (json_is_integer(item))
            used += (size_t)snprintf(to + used, size - used, "%lld,",
                                     (long long)json_integer_value(item));
        else
            return false;
        if (used >= size)
            return false;
    }
    if (used > 0)
        to[used - 1] = '\0';
    return true;
}

bool api_option_set_json(struct api_options *options, struct api_origin origin, const json_t *value,
                         const char *const *also, struct api_problem *problem)
{
    char detail[300], list[300];
    int option = api_option_find(origin.name);
    if (option < 0)
        return unknown(origin, also, problem);
    enum kind kind = rows[option].kind;
    const char *word = json_string_value(value);
    if (kind == LIST && join(value, list, sizeof list)) {
        word = list;
    } else if (json_is_integer(value)) {
        snprintf(list, sizeof list, "%lld", (long long)json_integer_value(value));
        word = list;
    } else if (kind == NUMBER && json_is_real(value)) {
        snprintf(list, sizeof list, "%.17g", json_real_value(value));
        word = list;
    } else if (kind == NUMBER && json_is_null(value)) {
        word = "null";
    }
    if (rows[option].parse && word)
        return settle_word(options, option, word, origin, problem);
    if (!rows[option].parse && json_is_boolean(value))
        return settle(options, option, from_bool(kind, json_is_true(value)), origin, problem);
    if (kind == FLAG && json_is_null(value))
        return settle(options, option, KL_ABSENT, origin, problem);
    snprintf(detail, sizeof detail, "%s must be %s", origin.name, expected[kind]);
    return fail_option(origin, problem, "option_invalid", detail);
}
