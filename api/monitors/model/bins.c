#include "api/monitors/model/bins.h"

#include "api/json/format.h"
#include "api/tables/field.h"
#include "api/text/decimal.h"
#include "api/text/hash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t api_bins_first(const struct api_bins *bins) { return bins->labelled ? 0 : 1; }
size_t api_bins_missing(const struct api_bins *bins) { return bins->n_bins - 1; }
size_t api_bins_other(const struct api_bins *bins) { return bins->n_bins - 2; }

const char *api_bins_outer_name(const struct api_bins *bins, size_t bin)
{
    if (bin == api_bins_missing(bins))
        return "missing";
    if (bins->labelled)
        return bin == api_bins_other(bins) ? "other" : NULL;
    return bin == 0 ? "underflow" : bin == bins->n + 1 ? "overflow" : NULL;
}

size_t api_bins_outer(const struct api_bins *bins, const char *name)
{
    for (size_t i = 0; i < bins->n_bins; i++) {
        const char *outer = api_bins_outer_name(bins, i);
        if (outer && strcmp(outer, name) == 0)
            return i;
    }
    return bins->n_bins;
}

size_t api_bins_find(const struct api_bins *bins, const char *text, size_t size)
{
    size_t i = api_labels_find(&bins->labels, text, size);
    return i < bins->n ? i : bins->n_bins;
}

/* ---- Making */

bool api_bins_of_edges(struct api_bins *bins, const double *edges, size_t n)
{
    *bins = (struct api_bins){.n = n, .n_bins = n + 3, .edges = malloc((n + 1) * sizeof *edges)};
    if (bins->edges)
        memcpy(bins->edges, edges, (n + 1) * sizeof *edges);
    return bins->edges != NULL;
}

bool api_bins_of_labels(struct api_bins *bins, const struct api_label *labels, size_t n)
{
    *bins = (struct api_bins){.labelled = true, .n_bins = n + 2};
    for (; bins->n < n; bins->n++)
        if (!api_labels_add(&bins->labels, labels[bins->n].text, strlen(labels[bins->n].text),
                            false))
            return false;
    return true;
}

bool api_bins_of_presence(struct api_bins *bins)
{
    static char present[] = "present";
    const struct api_label label = {.text = present};
    bool good = api_bins_of_labels(bins, &label, 1);
    bins->is_presence = true;
    return good;
}

void api_bins_free(struct api_bins *bins)
{
    api_labels_free(&bins->labels);
    free(bins->edges);
    api_buffer_free(&bins->described);
    free(bins->described_at);
    *bins = (struct api_bins){.n = 0};
}

size_t api_bins_size(const struct api_bins *bins)
{
    return bins->labels.texts.capacity + bins->labels.entries.capacity +
           bins->labels.slots.capacity + bins->described.capacity +
           (bins->n_bins + 1) * (sizeof *bins->edges + sizeof *bins->described_at);
}

/* ---- From JSON */

static bool fail_item(struct api_problem *problem, const char *code, const char *member, size_t i,
                      const char *what)
{
    char pointer[60];
    snprintf(pointer, sizeof pointer, "#/bins/%s/%zu", member, i);
    return api_fail_at(problem, API_BODY, pointer, code, "%s %s", member, what);
}

/* Reads an edge; -0 becomes 0. The outer ones may be infinite, as pandas.cut and Prometheus have them. */
static bool read_edge(const json_t *value, bool is_first, bool is_last, double *edge)
{
    const char *text = json_string_value(value);
    *edge = json_number_value(value) + 0.0;
    if (text && *text == '+')
        text++;
    return json_is_number(value) || (text && api_text_infinity(text, strlen(text), edge) &&
                                     (*edge < 0 ? is_first : is_last));
}

static bool read_edges(struct api_bins *bins, const json_t *array, struct api_problem *problem)
{
    double edges[API_MAX_BINS + 1];
    size_t n = json_array_size(array);
    if (!json_is_array(array) || n < 2 || n > API_MAX_BINS + 1)
        return api_fail_at(problem, API_BODY, "#/bins/edges", "bins_invalid",
                           "edges must be an array of 2 to %d numbers", API_MAX_BINS + 1);
    for (size_t i = 0; i < n; i++) {
        if (!read_edge(json_array_get(array, i), i == 0, i == n - 1, &edges[i]))
            return fail_item(
                problem, "bins_invalid", "edges", i,
                "must be numbers; \"-Infinity\" may be the first and \"Infinity\" the last");
        if (i > 0 && !(edges[i] > edges[i - 1]))
            return fail_item(problem, "bins_invalid", "edges", i, "must ascend");
    }
    return api_bins_of_edges(bins, edges, n - 1) || api_fail_oom(problem);
}

/* Text of a label, which may be in `number`; NULL for null, arrays and objects. */
static const char *label_of(const json_t *value, char number[API_DECIMAL_MAX + 1])
{
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (!json_is_number(value))
        return json_string_value(value);
    number[api_label_of_number(number, json_number_value(value))] = '\0';
    return number;
}

static bool read_labels(struct api_bins *bins, const json_t *array, struct api_problem *problem)
{
    size_t n = json_array_size(array);
    if (!json_is_array(array) || n < 1 || n > API_MAX_BINS)
        return api_fail_at(problem, API_BODY, "#/bins/labels", "bins_invalid",
                           "labels must be an array of 1 to %d strings, numbers or booleans",
                           API_MAX_BINS);
    *bins = (struct api_bins){.labelled = true, .n_bins = n + 2};
    for (size_t i = 0; i < n; i++) {
        char number[API_DECIMAL_MAX + 1];
        const char *label = label_of(json_array_get(array, i), number);
        if (!label)
            return fail_item(problem, "bins_invalid", "labels", i,
                             "must be strings, numbers or booleans");
        if (api_labels_find(&bins->labels, label, strlen(label)) < bins->labels.n)
            return fail_item(problem, "bins_invalid", "labels", i, "must be distinct");
        if (!api_labels_add(&bins->labels, label, strlen(label), false))
            return api_fail_oom(problem);
    }
    bins->n = n;
    return true;
}

bool api_bins_from_json(struct api_bins *bins, const json_t *object, struct api_problem *problem)
{
    const json_t *edges = json_object_get(object, "edges"),
                 *labels = json_object_get(object, "labels");
    bool is_presence = json_is_true(json_object_get(object, "presence"));
    if (!json_is_object(object) || json_object_size(object) != 1 ||
        (!edges && !labels && !is_presence))
        return api_fail_at(problem, API_BODY, "#/bins", "bins_invalid",
                           "bins must be {\"edges\": [...]}, {\"labels\": [...]} or "
                           "{\"presence\": true}");
    if (is_presence)
        return api_bins_of_presence(bins) || api_fail_oom(problem);
    return edges ? read_edges(bins, edges, problem) : read_labels(bins, labels, problem);
}

bool api_bins_check(const struct api_bins *bins, struct api_problem *problem)
{
    size_t size = 0;
    for (size_t i = 0; bins->labelled && i < bins->n; i++) {
        size_t length = strlen(api_bins_label(bins, i));
        size += length;
        if (length > API_MAX_LABEL)
            return fail_item(problem, "labels_too_large", "labels", i,
                             "may have at most 1024 bytes each");
    }
    return size <= API_MAX_LABELS ||
           api_fail_at(
               problem, API_BODY, "#/bins/labels", "labels_too_large",
               "the labels of a monitor may have at most 65536 bytes in all; these have %zu", size);
}

/* ---- Writing */

/* Infinite edges are strings. */
void api_bins_write(const struct api_bins *bins, struct api_buffer *out)
{
    char text[API_DECIMAL_MAX + 1];
    size_t n = bins->labelled ? bins->n : bins->n + 1;
    if (bins->is_presence) {
        api_append_text(out, "{\"presence\":true}");
        return;
    }
    api_append_text(out, bins->labelled ? "{\"labels\":[" : "{\"edges\":[");
    for (size_t i = 0; i < n; i++) {
        const char *label = bins->labelled ? api_bins_label(bins, i) : text;
        if (!bins->labelled)
            text[api_label_of_number(text, bins->edges[i])] = '\0';
        api_append(out, ",", i > 0);
        if (bins->labelled || isinf(bins->edges[i]))
            api_append_json_string(out, label);
        else
            api_append_text(out, text);
    }
    api_append_text(out, "]}");
}

void api_bins_write_name(const struct api_bins *bins, size_t bin, struct api_buffer *out)
{
    char text[API_DECIMAL_MAX];
    const char *outer = api_bins_outer_name(bins, bin);
    if (outer || bins->labelled) {
        api_append_json_string(out, outer ? outer : api_bins_label(bins, bin));
        return;
    }
    api_append(out, "\"[", 2);
    api_append(out, text, api_label_of_number(text, bins->edges[bin - 1]));
    api_append(out, ", ", 2);
    api_append(out, text, api_label_of_number(text, bins->edges[bin]));
    api_append(out, bin == bins->n ? "]\"" : ")\"", 2);
}

static void describe(const struct api_bins *bins, size_t bin, struct api_buffer *out)
{
    const char *outer = api_bins_outer_name(bins, bin);
    double lower = (double)NAN, upper = (double)NAN;
    if (!bins->labelled && bin > 0 && bin <= bins->n + 1)
        lower = bins->edges[bin - 1];
    if (!bins->labelled && bin <= bins->n)
        upper = bins->edges[bin];
    api_append_text(out, "\"name\":");
    api_bins_write_name(bins, bin, out);
    api_write_json(out, ",'kind':%s,'lower':%g,'upper':%g",
                   outer            ? outer
                   : bins->labelled ? "label"
                                    : "interval",
                   lower, upper);
}

bool api_bins_describe(struct api_bins *bins)
{
    bins->described_at = calloc(bins->n_bins + 1, sizeof *bins->described_at);
    for (size_t i = 0; bins->described_at && i < bins->n_bins; i++) {
        describe(bins, i, &bins->described);
        bins->described_at[i + 1] = (uint32_t)bins->described.size;
    }
    return bins->described_at && !bins->described.failed;
}

void api_bins_write_description(const struct api_bins *bins, size_t bin, struct api_buffer *out)
{
    const uint32_t *at = bins->described_at;
    if (at)
        api_append(out, bins->described.data + at[bin], at[bin + 1] - at[bin]);
    else
        describe(bins, bin, out);
}
