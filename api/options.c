#include "api/options.h"

#include "api/text/nearest.h"

#include <stdio.h>
#include <string.h>

/* Forms of PHP, Rails and others name a list "dim[]". */
static bool is_name(const struct api_loss_option *row, const char *name)
{
    size_t size = strlen(row->name);
    return strncmp(name, row->name, size) == 0 &&
           (name[size] == '\0' || (row->is_list && strcmp(name + size, "[]") == 0));
}

int api_option_find(const char *name)
{
    for (int i = 0; i < API_OPTIONS; i++)
        if (is_name(&api_loss_options[i], name))
            return i;
    return -1;
}

bool api_option_is_list(int option) { return api_loss_options[option].is_list; }

/* ---- Problems with their locations */

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
    const struct api_origin origin = {options->within[option], api_loss_options[option].name};
    return options->given[option] ? fail_option(origin, problem, code, detail)
                                  : api_fail(problem, code, "%s", detail);
}

static size_t append(char *to, size_t used, size_t size, const char *before, const char *word)
{
    return used < size ? used + (size_t)snprintf(to + used, size - used, "%s%s", before, word)
                       : used;
}

/* Appends ", " and the names of all options. */
static void list_options(char *to, size_t used, size_t size)
{
    for (size_t i = 0; i < API_OPTIONS; i++)
        used = append(to, used, size, i ? ", " : "", api_loss_options[i].name);
}

static bool is_tensor(const struct api_options *options, const char *name)
{
    const char *const *tensor = options->tensors;
    while (tensor && *tensor && strcmp(*tensor, name) != 0)
        tensor++;
    return tensor && *tensor;
}

static bool fail_unknown(const struct api_options *options, struct api_origin origin,
                         const char *const *also, struct api_problem *problem)
{
    const char *known[API_OPTIONS + 8];
    char detail[500];
    size_t n = 0, used;
    for (; n < API_OPTIONS; n++)
        known[n] = api_loss_options[n].name;
    for (; also && *also && n < sizeof known / sizeof *known; also++)
        known[n++] = *also;
    if (is_tensor(options, origin.name)) {
        snprintf(detail, sizeof detail, "%s is a tensor: send it in the body", origin.name);
        return fail_option(origin, problem, "option_unknown", detail);
    }
    const char *nearest = api_nearest(origin.name, known, n);
    const char *mean = nearest ? "; did you mean '" : "", *end = nearest ? "'?" : ".";
    if (nearest && is_tensor(options, nearest)) {
        snprintf(detail, sizeof detail,
                 "there is no tensor '%.60s'%s%s%s The tensors are input, target, grad_output, "
                 "weight and mask",
                 origin.name, mean, nearest, end);
        return fail_option(origin, problem, "tensor_unknown", detail);
    }
    used =
        (size_t)snprintf(detail, sizeof detail, "there is no option '%.60s'%s%s%s The options are ",
                         origin.name, mean, nearest ? nearest : "", end);
    list_options(detail, used, sizeof detail);
    return fail_option(origin, problem, "option_unknown", detail);
}

static bool fail_conflict(struct api_origin origin, struct api_problem *problem)
{
    char detail[300];
    snprintf(detail, sizeof detail,
             "%s is given twice, with different values (in the query and in the body)",
             origin.name);
    return fail_option(origin, problem, "option_conflict", detail);
}

/* Fails with the reader's detail, followed by the values that the option has. */
static bool fail_value(const struct api_option_input *setting, const struct api_value *value,
                       const struct kl_problem *from)
{
    const struct api_loss_option *row = &api_loss_options[setting->option];
    bool has_text = value->kind == API_TEXT || value->kind == API_STRING;
    char detail[500];
    size_t n = 0, used;
    if (!from->code) {
        snprintf(detail, sizeof detail, "%s must be %s%s%.100s%s", row->name, row->expected,
                 has_text ? ", not '" : "", has_text ? value->text : "", has_text ? "'" : "");
        return fail_option(setting->origin, setting->problem, "option_invalid", detail);
    }
    used = (size_t)snprintf(detail, sizeof detail, "%s", from->detail);
    while (row->words && row->words[n])
        n++;
    const char *nearest = has_text && n > 0 ? api_nearest(value->text, row->words, n) : NULL;
    if (nearest)
        used = append(detail, append(detail, used, sizeof detail, "; did you mean '", nearest),
                      sizeof detail, "'", "");
    for (size_t i = 0; i < n; i++)
        used = append(detail, used, sizeof detail,
                      i         ? ", "
                      : nearest ? "? It takes "
                                : "; it takes ",
                      row->words[i]);
    return fail_option(setting->origin, setting->problem, from->code, detail);
}

/* ---- Setting */

bool api_option_begin(struct api_option_input *setting, struct api_options *options,
                      struct api_origin origin, const char *const *also,
                      struct api_problem *problem)
{
    *setting = (struct api_option_input){.options = options,
                                         .origin = origin,
                                         .problem = problem,
                                         .option = api_option_find(origin.name)};
    return setting->option >= 0 || fail_unknown(options, origin, also, problem);
}

static const char separators[] = "[]\", ";

/* Adds each word of a text such as "0,1" or, as in JSON, "[0, 1]". */
static bool add_list(struct api_option_input *setting, const char *text)
{
    char word[64];
    for (const char *p = text + strspn(text, separators); *p; p += strspn(p, separators)) {
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
    const struct api_loss_option *row = &api_loss_options[setting->option];
    struct kl_problem problem = {0};
    bool is_text = value->kind == API_TEXT || value->kind == API_STRING;
    bool is_word = value->kind == API_STRING && *value->text && !strpbrk(value->text, separators);
    if (row->read(value, &setting->value, &problem))
        return true;
    if (row->is_list && is_text && !is_word)
        return add_list(setting, value->text);
    return fail_value(setting, value, &problem);
}

/* Adds to a list that was given before in the same place: the query, or a form. */
static bool join_lists(struct api_option_input *setting)
{
    struct api_options *options = setting->options;
    if (setting->origin.within != options->within[setting->option])
        return false;
    options->dim.from_first |= setting->option == API_DIM ? setting->value.axes.from_first : 0;
    options->dim.from_last |= setting->option == API_DIM ? setting->value.axes.from_last : 0;
    options->gradient |= setting->option == API_GRADIENT ? setting->value.bits : 0;
    return true;
}

bool api_option_end(struct api_option_input *setting)
{
    const struct api_loss_option *row = &api_loss_options[setting->option];
    struct api_options *options = setting->options;
    char *field = (char *)options + row->offset;
    if (!options->given[setting->option]) {
        memcpy(field, setting->value.bytes, row->size);
        options->given[setting->option] = true;
        options->within[setting->option] = setting->origin.within;
        return true;
    }
    return memcmp(field, setting->value.bytes, row->size) == 0 ||
           (row->is_list && join_lists(setting)) ||
           fail_conflict(setting->origin, setting->problem);
}

bool api_option_set_text(struct api_options *options, struct api_origin origin, const char *text,
                         const char *const *also, struct api_problem *problem)
{
    struct api_option_input setting;
    const struct api_value value = {.kind = API_TEXT, .text = text};
    return api_option_begin(&setting, options, origin, also, problem) &&
           api_option_add(&setting, &value) && api_option_end(&setting);
}
