#include "api/monitors/model/bins.h"

#include "api/json/format.h"
#include "api/tables/field.h"
#include "api/text/decimal.h"
#include "api/text/hash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of outer bins and their indices, counted from the begin or, if negative, from the end. */
static const struct outer {
    const char *name;
    int bin;
    bool labelled, numeric;
} outers[] = {{"underflow", 0, false, true},
              {"overflow", -2, false, true},
              {"other", -2, true, false},
              {"missing", -1, true, true}};
#define N_OUTERS (sizeof outers / sizeof *outers)

static size_t place_of(const struct api_bins *bins, const struct outer *outer)
{
    bool has = bins->labelled ? outer->labelled : outer->numeric;
    return !has ? bins->n_bins : outer->bin < 0 ? bins->n_bins - (size_t)-outer->bin : 0;
}

size_t api_bins_first(const struct api_bins *bins) { return bins->labelled ? 0 : 1; }
size_t api_bins_missing(const struct api_bins *bins) { return bins->n_bins - 1; }
size_t api_bins_other(const struct api_bins *bins) { return bins->n_bins - 2; }

size_t api_bins_outer(const struct api_bins *bins, const char *name)
{
    for (const struct outer *outer = outers; outer < outers + N_OUTERS; outer++)
        if (strcmp(outer->name, name) == 0)
            return place_of(bins, outer);
    return bins->n_bins;
}

const char *api_bins_outer_name(const struct api_bins *bins, size_t bin)
{
    for (const struct outer *outer = outers; outer < outers + N_OUTERS; outer++)
        if (place_of(bins, outer) == bin)
            return outer->name;
    return NULL;
}

/* ---- Labels by name */

/* Slot of a text, or the free one where it would be. */
static size_t slot_of(const struct api_bins *bins, const char *text, size_t size)
{
    size_t slot = api_hash_text(text, size) & (bins->n_slots - 1);
    for (;; slot = (slot + 1) & (bins->n_slots - 1)) {
        if (bins->slots[slot] == 0)
            return slot;
        const char *label = bins->labels[bins->slots[slot] - 1];
        if (strncmp(label, text, size) == 0 && label[size] == '\0')
            return slot;
    }
}

size_t api_bins_find(const struct api_bins *bins, const char *text, size_t size)
{
    size_t slot = slot_of(bins, text, size);
    return bins->slots[slot] ? bins->slots[slot] - 1u : bins->n_bins;
}

/* ---- Making */

bool api_bins_of_edges(struct api_bins *bins, const double *edges, size_t n)
{
    *bins = (struct api_bins){.n = n, .n_bins = n + 3, .edges = malloc((n + 1) * sizeof *edges)};
    if (bins->edges)
        memcpy(bins->edges, edges, (n + 1) * sizeof *edges);
    return bins->edges != NULL;
}

static bool allocate_labels(struct api_bins *bins, size_t n)
{
    *bins = (struct api_bins){.labelled = true, .n_slots = 4};
    while (bins->n_slots < 2 * n)
        bins->n_slots *= 2;
    bins->labels = calloc(n + 1, sizeof *bins->labels);
    bins->slots = calloc(bins->n_slots, sizeof *bins->slots);
    bins->n_bins = n + 2;
    return bins->labels && bins->slots;
}

/* Adds a label; false if it is there, or if memory is exhausted, in which case it is not counted. */
static bool add_label(struct api_bins *bins, const char *label)
{
    size_t slot = slot_of(bins, label, strlen(label));
    char *copy = bins->slots[slot] ? NULL : strdup(label);
    if (!copy)
        return false;
    bins->labels[bins->n++] = copy;
    bins->slots[slot] = (unsigned short)bins->n;
    return true;
}

bool api_bins_of_labels(struct api_bins *bins, const char *const *labels, size_t n)
{
    bool good = allocate_labels(bins, n);
    for (size_t i = 0; good && i < n; i++)
        good = add_label(bins, labels[i]);
    return good;
}

void api_bins_free(struct api_bins *bins)
{
    if (bins->labels)
        for (size_t i = 0; i < bins->n; i++)
            free(bins->labels[i]);
    free(bins->labels);
    free(bins->slots);
    free(bins->edges);
    free(bins->described);
    free(bins->described_at);
    *bins = (struct api_bins){.n = 0};
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
    if (!allocate_labels(bins, n))
        return api_fail_oom(problem);
    for (size_t i = 0; i < n; i++) {
        char number[API_DECIMAL_MAX + 1];
        const char *label = label_of(json_array_get(array, i), number);
        if (!label)
            return fail_item(problem, "bins_invalid", "labels", i,
                             "must be strings, numbers or booleans");
        if (api_bins_find(bins, label, strlen(label)) < bins->n_bins)
            return fail_item(problem, "bins_invalid", "labels", i, "must be distinct");
        if (!add_label(bins, label))
            return api_fail_oom(problem);
    }
    return true;
}

bool api_bins_from_json(struct api_bins *bins, const json_t *object, struct api_problem *problem)
{
    const json_t *edges = json_object_get(object, "edges"),
                 *labels = json_object_get(object, "labels");
    if (!json_is_object(object) || json_object_size(object) != 1 || (!edges && !labels))
        return api_fail_at(problem, API_BODY, "#/bins", "bins_invalid",
                           "bins must be {\"edges\": [...]} or {\"labels\": [...]}");
    return edges ? read_edges(bins, edges, problem) : read_labels(bins, labels, problem);
}

bool api_bins_check(const struct api_bins *bins, struct api_problem *problem)
{
    size_t size = 0;
    if (bins->labelled)
        for (size_t i = 0; i < bins->n; i++) {
            size_t length = strlen(bins->labels[i]);
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

/* Infinite numbers are strings. */
static void write_edges(const struct api_bins *bins, struct api_buffer *out)
{
    char text[API_DECIMAL_MAX];
    api_append_text(out, "{\"edges\":[");
    for (size_t i = 0; i <= bins->n; i++) {
        const char *quote = isinf(bins->edges[i]) ? "\"" : "";
        api_append(out, ",", i > 0);
        api_append_text(out, quote);
        size_t size = api_label_of_number(text, bins->edges[i]);
        api_append(out, text, size);
        api_append_text(out, quote);
    }
    api_append_text(out, "]}");
}

void api_bins_write(const struct api_bins *bins, struct api_buffer *out)
{
    if (!bins->labelled) {
        write_edges(bins, out);
        return;
    }
    api_append_text(out, "{\"labels\":[");
    for (size_t i = 0; i < bins->n; i++) {
        api_append(out, ",", i > 0);
        api_append_json_string(out, bins->labels[i]);
    }
    api_append_text(out, "]}");
}

void api_bins_write_name(const struct api_bins *bins, size_t bin, struct api_buffer *out)
{
    char text[API_DECIMAL_MAX];
    const char *outer = api_bins_outer_name(bins, bin);
    if (outer || bins->labelled) {
        api_append_json_string(out, outer ? outer : bins->labels[bin]);
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
    struct api_buffer texts = {0};
    uint32_t *at = calloc(bins->n_bins + 1, sizeof *at);
    if (at)
        for (size_t i = 0; i < bins->n_bins; i++) {
            describe(bins, i, &texts);
            at[i + 1] = (uint32_t)texts.size;
        }
    bins->described = at && !texts.failed ? malloc(texts.size + 1) : NULL;
    bins->described_at = at;
    if (bins->described && texts.data)
        memcpy(bins->described, texts.data, texts.size);
    api_buffer_free(&texts);
    return bins->described != NULL;
}

void api_bins_write_description(const struct api_bins *bins, size_t bin, struct api_buffer *out)
{
    if (!bins->described) {
        describe(bins, bin, out);
        return;
    }
    const uint32_t *at = bins->described_at + bin;
    api_append(out, bins->described + at[0], at[1] - at[0]);
}
