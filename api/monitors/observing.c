/* POST observations, of a group or of one monitor, and POST evaluate. */
#include "api/monitors/endpoints.h"

#include "api/body.h"
#include "api/monitors/hash.h"
#include "api/monitors/intake.h"
#include "api/options.h"
#include "api/reply.h"
#include "api/text/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* observed: one column, and the window that it went to. */
struct observed {
    char *name;
    struct api_config *config;
    int64_t id, revision;
    size_t column; /* of the table */
    struct api_counting counting;
    struct api_touched *touched; /* while the store's thread runs */
    struct api_view *view;
};

/* TRIES: how often observations are read again after the monitor was replaced meanwhile. */
enum { TRIES = 20, MOST_KEY = 255 };

struct observing {
    struct api_work work;
    struct api_exchange *x;
    struct api_buffer inflated, warnings;
    struct observed *observed;
    size_t n;
    int64_t time;
    bool is_read, evaluates, stale, replayed, has_key;
    unsigned tries;
    unsigned char key[API_HASH], body[API_HASH];
    struct api_buffer answer; /* of the key: pairs of the numbers of monitors and windows */
};

static void drop_observed(struct observing *o)
{
    for (size_t i = 0; i < o->n; i++) {
        api_config_release(o->observed[i].config);
        api_counting_free(&o->observed[i].counting);
        api_view_release(o->observed[i].view);
        free(o->observed[i].name);
    }
    free(o->observed);
    o->observed = NULL;
    o->n = 0;
    api_buffer_free(&o->warnings);
}

void api_observing_end(struct api_exchange *x)
{
    struct observing *o = x->state;
    drop_observed(o);
    api_buffer_free(&o->inflated);
    api_buffer_free(&o->answer);
    free(o);
}

/* ---- Header */

static const char *key_of(const struct api_exchange *x)
{
    return api_request_header(&x->request, "Idempotency-Key");
}

static bool check_key(struct api_exchange *x)
{
    const char *key = key_of(x);
    return !key || (*key && strlen(key) <= MOST_KEY) ||
           api_fail(&x->problem, "idempotency_key_invalid",
                    "Idempotency-Key must have 1 to 255 characters");
}

bool api_observing_begin(struct api_exchange *x)
{
    return api_intake_names(x) && api_intake_exists(x) && check_key(x) && api_intake_body(x);
}

/* ---- Body */

/* Adds a column for a monitor; false if there is none, or with a problem. */
static bool add_observed(struct observing *o, const char *name, size_t column)
{
    struct api_exchange *x = o->x;
    struct observed *observed = &o->observed[o->n];
    *observed = (struct observed){.column = column};
    observed->config = api_intake_config(x->service->monitors, api_group_of(x), name, &observed->id,
                                         &observed->revision);
    if (!observed->config)
        return false;
    o->n++;
    observed->name = strdup(name);
    return (observed->name || api_fail_for_memory(&x->problem)) &&
           api_counting_init(&observed->counting, &observed->config->bins, &x->problem);
}

static bool reserve(struct observing *o, size_t n)
{
    o->observed = calloc(n + 1, sizeof *o->observed);
    return o->observed || api_fail_for_memory(&o->x->problem);
}

/* reading: a pass over the table. `by_column` are indices into `observed`. */
struct reading {
    struct observing *o;
    const struct api_table *table;
    size_t *by_column;
};

static bool count_cell(void *context, size_t column, const struct api_cell *cell,
                       struct api_problem *problem)
{
    const struct reading *reading = context;
    struct observed *observed = &reading->o->observed[reading->by_column[column]];
    return api_intake_goes_on(reading->o->x->stop, cell, problem) &&
           api_counting_cell(&observed->counting, reading->table, column, cell, problem);
}

static bool count_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                          size_t n, struct api_problem *problem)
{
    const struct reading *reading = context;
    struct observed *observed = &reading->o->observed[reading->by_column[column]];
    return api_counting_numbers(&observed->counting, dtype, values, n, problem);
}

/* Counts the values of all columns that have a monitor. */
static bool count_values(struct observing *o, struct api_table *table)
{
    struct reading reading = {.o = o, .table = table};
    const struct api_sink sink = {&reading, count_cell, count_numbers};
    reading.by_column = calloc(table->n_columns + 1, sizeof *reading.by_column);
    if (!reading.by_column)
        return api_fail_for_memory(&o->x->problem);
    for (size_t i = 0; i < o->n; i++) {
        table->columns[o->observed[i].column].wanted = true;
        reading.by_column[o->observed[i].column] = i;
    }
    bool good = api_table_read(table, &sink, &o->x->problem);
    for (size_t i = 0; good && i < o->n; i++) {
        api_counting_finish(&o->observed[i].counting);
        api_warn_of_unreadable(&o->warnings, o->observed[i].name,
                               &o->observed[i].counting.unreadable);
    }
    free(reading.by_column);
    return good;
}

/* Finds the monitors of a table's columns; those without one are warnings. */
static bool find_monitors(struct observing *o, const struct api_table *table)
{
    if (!reserve(o, table->n_columns))
        return false;
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *name = table->columns[i].name;
        if (*name && add_observed(o, name, i))
            continue;
        if (o->x->problem.code)
            return false;
        if (*name)
            api_warn(&o->warnings, "column_unknown", name, 0, 0,
                     "the group has no monitor of this name, so the column is left out");
        else
            api_warn(&o->warnings, "column_unnamed", name, 0, 0,
                     "a column without a name is left out");
    }
    return true;
}

static bool fail_member(const char *name, const char *const *known, size_t n,
                        struct api_problem *problem)
{
    char place[200];
    const char *nearest = api_nearest(name, known, n);
    api_pointer_to_member(place, sizeof place, "#/", name);
    return api_fail_at(problem, API_BODY, place, "option_unknown",
                       "observations have no member '%.60s' here%s%s%s", name,
                       nearest ? "; did you mean '" : "", nearest ? nearest : "",
                       nearest ? "'?" : "");
}

/* Checks the names of members: values and a timestamp, or weights of one monitor. */
static bool check_members(const struct api_table *table, bool single, struct api_problem *problem)
{
    static const char *const of_table[] = {"timestamp", "columns", "rows"},
                             *const of_one[] = {"timestamp",     "values", "counts",
                                                "probabilities", "n",      "underflow",
                                                "overflow",      "other",  "missing"};
    const char *const *known = single ? of_one : of_table, *name;
    size_t n = single ? sizeof of_one / sizeof *of_one : sizeof of_table / sizeof *of_table;
    json_t *value;
    if (single && table->has_values)
        n = 2;
    json_object_foreach(table->members, name, value)
    {
        bool good = false;
        for (size_t i = 0; i < n; i++)
            good |= strcmp(known[i], name) == 0;
        if (!good)
            return fail_member(name, known, n, problem);
    }
    return true;
}

/* Reads counts or probabilities of one monitor. */
static bool read_weights(struct observing *o, const struct api_table *table)
{
    struct observed *observed = o->observed;
    struct api_weights weights = {.n = 0};
    struct api_problem *problem = &o->x->problem;
    bool good =
        api_weights_from_json(&weights, &observed->config->bins, table->members, "#", problem) &&
        api_weights_to_counts(&weights, &observed->config->bins, problem);
    for (size_t i = 0; good && i < observed->config->bins.places; i++)
        observed->counting.counts[i] = (uint64_t)weights.places[i];
    api_weights_free(&weights);
    return good;
}

static bool read_single(struct observing *o, struct api_table *table)
{
    size_t column = 0;
    uint64_t n = 0;
    const char *name = api_name_of(o->x);
    if (table->has_values && !api_intake_column(table, name, &column, &o->x->problem))
        return false;
    if (!reserve(o, 1))
        return false;
    if (!add_observed(o, name, column)) {
        api_intake_exists(o->x);
        return false;
    }
    if (!(table->has_values ? count_values(o, table) : read_weights(o, table)))
        return false;
    for (size_t i = 0; i < o->observed->config->bins.places; i++)
        n += o->observed->counting.counts[i];
    return n > 0 || api_fail(&o->x->problem, "observations_empty", "there is no observation");
}

static bool read_many(struct observing *o, struct api_table *table)
{
    if (!find_monitors(o, table) || !count_values(o, table))
        return false;
    if (table->n_rows == 0) {
        struct api_buffer warnings = o->warnings;
        o->warnings = (struct api_buffer){.budget = warnings.budget};
        drop_observed(o);
        o->warnings = warnings;
    }
    return true;
}

static bool read_table(struct observing *o, const json_t *parameters)
{
    struct api_exchange *x = o->x;
    struct api_table table;
    if (!api_intake_open(x, &table))
        return false;
    bool single = api_name_of(x) != NULL;
    bool good =
        check_members(&table, single, &x->problem) &&
        api_intake_time(json_object_get(parameters, "timestamp"),
                        json_object_get(table.members, "timestamp"), &o->time, &x->problem) &&
        (single ? read_single(o, &table) : read_many(o, &table));
    api_table_free(&table);
    return good;
}

/* Hashes the key with the path, and the body. False if memory is exhausted. */
static bool hash_key(struct observing *o)
{
    const struct api_exchange *x = o->x;
    struct api_buffer text = {0};
    o->has_key = key_of(x) && !o->evaluates;
    if (!o->has_key)
        return true;
    api_append_text(&text, key_of(x));
    api_append(&text, "", 1);
    api_append_text(&text, api_group_of(x));
    api_append(&text, "", 1);
    api_append_text(&text, api_name_of(x) ? api_name_of(x) : "");
    bool good = !text.failed || api_fail_for_memory(&o->x->problem);
    if (good)
        api_hash(text.data, text.size, o->key);
    api_hash(x->request.body, x->request.body_size, o->body);
    api_buffer_free(&text);
    return good;
}

static bool read_all(struct observing *o)
{
    static const char *const known[] = {"timestamp", NULL};
    json_t *parameters = json_object();
    bool good = parameters || api_fail_for_memory(&o->x->problem);
    good = good &&
           api_settings_from_query(NULL, o->x->request.query, known, parameters, &o->x->problem) &&
           read_table(o, parameters);
    json_decref(parameters);
    return good && hash_key(o);
}

/* ---- In the store's thread */

static struct observing *observing_of(struct api_work *work) { return (struct observing *)work; }

struct kept_key {
    struct observing *o;
    bool found, same;
};

static void read_key(void *context, const struct api_datum *values)
{
    struct kept_key *kept = context;
    kept->found = true;
    kept->same = values[0].size == API_HASH && memcmp(values[0].text, kept->o->body, API_HASH) == 0;
    kept->o->answer.size = 0;
    api_append(&kept->o->answer, values[1].text, values[1].size);
}

/* True if the kept answer is of a monitor that is still there: another one of its name knows nothing
 * of what was counted. */
static bool is_of_these(const struct observing *o)
{
    const int64_t *pairs = (const void *)o->answer.data;
    size_t n = o->answer.size / (2 * sizeof *pairs);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < o->n; j++)
            if (pairs[2 * i] == o->observed[j].id)
                return true;
    return false;
}

static bool check_kept(struct observing *o, struct api_monitors *monitors, bool *found)
{
    struct kept_key kept = {.o = o};
    const struct api_datum key[] = {API_BYTES((const char *)o->key, API_HASH)};
    *found = false;
    if (!o->has_key)
        return true;
    if (!api_store_run(monitors->store, API_SQL_KEY, key, &(struct api_rows){read_key, &kept}))
        return false;
    *found = kept.found && is_of_these(o);
    return !*found || kept.same ||
           api_fail(&o->work.problem, "idempotency_key_reused",
                    "the Idempotency-Key came with another body before");
}

static bool keep_key(struct observing *o, struct api_monitors *monitors)
{
    o->answer.size = 0;
    for (size_t i = 0; i < o->n; i++) {
        const int64_t pair[] = {o->observed[i].id, o->observed[i].touched->view->window.id};
        api_append(&o->answer, pair, sizeof pair);
    }
    const struct api_datum row[] = {
        API_BYTES((const char *)o->key, API_HASH), API_BYTES((const char *)o->body, API_HASH),
        API_INTEGER(monitors->now), API_BYTES(o->answer.data, o->answer.size)};
    if (o->answer.failed)
        return api_work_out_of_memory(monitors);
    monitors->keys++;
    return api_store_run(monitors->store, API_SQL_KEY_PUT, row, NULL);
}

/* Finds the monitor that observations were counted for; NULL if it is not the same any more. */
static struct api_monitor *same_monitor(struct observing *o, struct api_monitors *monitors,
                                        const struct observed *observed)
{
    struct api_monitor *monitor =
        api_registry_find(&monitors->registry, api_group_of(o->x), observed->name);
    bool same = monitor && monitor->id == observed->id && monitor->revision == observed->revision;
    return same ? monitor : NULL;
}

static bool check_age(struct observing *o, const struct api_monitor *monitor)
{
    double kept = monitor->config->settings.retention_days * 86400e6;
    int64_t newest = monitor->draft ? monitor->draft->live.newest_end : monitor->live.newest_end;
    return newest == API_NO_TIME || (double)(newest - o->time) <= kept ||
           api_fail(&o->work.problem, "timestamp_invalid",
                    "timestamp is more than retention_days before the newest window of '%.128s'",
                    monitor->name);
}

static bool run(struct api_work *work, struct api_monitors *monitors)
{
    struct observing *o = observing_of(work);
    o->stale = o->replayed = false;
    for (size_t i = 0; i < o->n && !o->stale; i++) {
        const struct api_monitor *monitor = same_monitor(o, monitors, &o->observed[i]);
        o->stale = !monitor;
    }
    if (!check_kept(o, monitors, &o->replayed))
        return false;
    o->stale = o->stale && !o->replayed;
    if (o->stale || o->replayed)
        return true;
    for (size_t i = 0; i < o->n; i++)
        if (!check_age(o, same_monitor(o, monitors, &o->observed[i])))
            return false;
    for (size_t i = 0; i < o->n; i++)
        if (!api_observe(monitors, same_monitor(o, monitors, &o->observed[i]),
                         o->observed[i].counting.counts, o->time, &o->observed[i].touched))
            return false;
    return !o->has_key || keep_key(o, monitors);
}

/* Reads the window, as it is now, that a request went to when it came first. */
static bool read_again(struct observing *o, struct api_monitors *monitors,
                       struct observed *observed, const int64_t *pair)
{
    struct api_monitor *monitor =
        api_registry_find(&monitors->registry, api_group_of(o->x), observed->name);
    struct api_window_list list;
    const struct api_datum of[] = {API_INTEGER(pair[0]), API_INTEGER(pair[1])};
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOW, of);
    if (good && list.n > 0 && monitor && monitor->id == pair[0]) {
        observed->view = api_view_of(monitors, monitor, &list.windows[0]);
        good = observed->view != NULL;
    }
    if (observed->view && monitor && monitor->draft)
        observed->view->state = observed->view->window.closed ? observed->view->window.state
                                                              : monitor->draft->live.state;
    api_window_list_free(&list);
    return good;
}

static bool collect_replay(struct observing *o, struct api_monitors *monitors)
{
    const int64_t *pairs = (const int64_t *)o->answer.data;
    size_t n = o->answer.size / (2 * sizeof *pairs);
    for (size_t i = 0; i < o->n; i++) {
        api_view_release(o->observed[i].view);
        o->observed[i].view = NULL;
        for (size_t j = 0; j < n; j++)
            if (pairs[2 * j] == o->observed[i].id &&
                !read_again(o, monitors, &o->observed[i], &pairs[2 * j]))
                return false;
    }
    return true;
}

static bool collect(struct api_work *work, struct api_monitors *monitors)
{
    struct observing *o = observing_of(work);
    if (o->replayed)
        return collect_replay(o, monitors);
    for (size_t i = 0; i < o->n && !o->stale; i++) {
        api_view_release(o->observed[i].view);
        o->observed[i].view = o->observed[i].touched->view;
        atomic_fetch_add(&o->observed[i].view->references, 1);
    }
    return true;
}

/* ---- Evaluation */

/* Makes the view of counts that are not stored, compared with the config's reference. */
static bool view_counts(struct observing *o, struct observed *observed)
{
    struct api_view *view = api_view_new(api_group_of(o->x), observed->name, observed->config);
    observed->view = view;
    if (!view || (view->settings.previous == 0 && !api_view_refer(view)))
        return api_fail_for_memory(&o->x->problem);
    for (size_t i = 0; i < observed->config->bins.places; i++)
        view->counts[i] = (double)observed->counting.counts[i];
    view->window.revision = observed->revision;
    return true;
}

/* Reads the reference of an evaluation: the last closed windows before its time. */
static bool run_evaluation(struct api_work *work, struct api_monitors *monitors)
{
    struct observing *o = observing_of(work);
    struct observed *observed = o->observed;
    struct api_view *view = observed->view;
    size_t places = observed->config->bins.places;
    const struct api_datum before[] = {API_INTEGER(observed->id), API_INTEGER(observed->revision),
                                       API_INTEGER(o->time), API_INTEGER(INT64_MAX),
                                       API_INTEGER(view->settings.previous)};
    free(view->reference);
    view->reference = calloc(places, sizeof *view->reference);
    if (!view->reference)
        return api_work_out_of_memory(monitors);
    return api_counts_run(view->reference, places, monitors->store, API_SQL_COUNTS_BEFORE, before);
}

static void set_state(struct observing *o)
{
    struct api_registry *registry = &o->x->service->monitors->registry;
    pthread_rwlock_rdlock(&registry->lock);
    const struct api_monitor *monitor =
        api_registry_find(registry, api_group_of(o->x), api_name_of(o->x));
    if (monitor)
        o->observed->view->state = monitor->live.state;
    pthread_rwlock_unlock(&registry->lock);
}

/* ---- Steps */

static struct observing *begin(struct api_exchange *x, bool evaluates)
{
    struct observing *o = calloc(1, sizeof *o);
    if (!o) {
        api_fail_for_memory(&x->problem);
        return NULL;
    }
    o->x = x;
    o->evaluates = evaluates;
    o->inflated.budget = o->warnings.budget = x->service->budget;
    return o;
}

/* Reads the body, and hands what it holds to the store. */
static bool read_body(struct observing *o, double most_ns)
{
    struct api_exchange *x = o->x;
    if (!api_body_undo_coding(x, &o->inflated, most_ns))
        return false;
    if (x->cost_ns <= most_ns)
        x->cost_ns = api_intake_cost(x);
    if (x->cost_ns > most_ns)
        return true;
    if (!read_all(o))
        return false;
    o->is_read = true;
    if (o->evaluates && !view_counts(o, o->observed))
        return false;
    if (o->evaluates)
        set_state(o);
    o->work = (struct api_work){.run = o->evaluates ? run_evaluation : run,
                                .collect = o->evaluates ? NULL : collect};
    if (o->n > 0 && (!o->evaluates || o->observed->view->settings.previous > 0))
        x->work = &o->work;
    return true;
}

/* Goes on after the store has done its work. */
static bool after_work(struct observing *o, double most_ns)
{
    struct api_exchange *x = o->x;
    x->work = NULL;
    if (o->work.problem.code) {
        x->problem = o->work.problem;
        return false;
    }
    if (!o->stale)
        return true;
    if (++o->tries == TRIES)
        return api_fail(&x->problem, "overloaded", "the monitor is replaced all the time");
    drop_observed(o);
    o->is_read = false;
    return api_intake_exists(x) && read_body(o, most_ns);
}

static bool prepare(struct api_exchange *x, bool evaluates, double most_ns)
{
    struct observing *o = x->state = x->state ? x->state : begin(x, evaluates);
    if (!o)
        return false;
    if (x->work)
        return !o->work.done || after_work(o, most_ns);
    return o->is_read || read_body(o, most_ns);
}

bool api_observing_prepare(struct api_exchange *x, double most_ns)
{
    return prepare(x, false, most_ns);
}

bool api_evaluating_prepare(struct api_exchange *x, double most_ns)
{
    return prepare(x, true, most_ns);
}

/* Appends `"name":...,` and the result. */
static bool write_result(const struct observed *observed, struct api_buffer *out)
{
    api_append_text(out, "\"name\":");
    api_append_json_string(out, observed->name);
    api_append(out, ",", 1);
    return api_view_write(observed->view, true, out);
}

bool api_observing(struct api_exchange *x)
{
    const struct observing *o = x->state;
    struct api_buffer *out = &x->reply.body;
    bool single = api_name_of(x) != NULL, first = true;
    api_intake_reply(x);
    if (o->replayed)
        api_reply_header(&x->reply, "Idempotent-Replayed", "true");
    api_append_text(out, "{\"group\":");
    api_append_json_string(out, api_group_of(x));
    api_append_text(out, single ? "," : ",\"monitors\":[");
    for (size_t i = 0; i < o->n; i++) {
        if (!o->observed[i].view)
            continue;
        api_append_text(out, single ? "" : first ? "{" : ",{");
        first = false;
        if (!write_result(&o->observed[i], out))
            return api_fail_for_memory(&x->problem);
        api_append_text(out, single ? "" : "}");
    }
    if (single && first)
        return api_fail(&x->problem, "window_not_found",
                        "the request was stored before, and its window is gone");
    api_append_text(out, single ? ",\"warnings\":[" : "],\"warnings\":[");
    api_append(out, o->warnings.data, o->warnings.size);
    api_append_text(out, "]}\n");
    x->reply.elements = 0;
    return true;
}
