/* PUT of a table whose rows have times of their own: the reference, and its windows.
 *
 * A monitor has its new config only after the commit, for other threads may read the one that it has. Until then a stand-in
 * takes its place, which gives the monitor what became of it. */
#include "api/monitors/http/replacing.h"

#include "api/monitors/state/status.h"

#include <stdlib.h>
#include <string.h>

void api_history_free(struct api_replacing *d)
{
    for (size_t i = 0; d->stand_ins && i < d->history.n; i++)
        api_monitor_free(d->stand_ins[i]);
    free(d->stand_ins);
    d->stand_ins = NULL;
    if (d->history.x)
        api_observations_drop(&d->history);
}

/* ---- Rows */

static bool add_column(struct api_observations *o, const struct api_replacement *r,
                       const struct api_table *table)
{
    struct api_observed *observed = &o->observed[o->n];
    size_t column;
    if (!api_names_find(&table->names, r->name, strlen(r->name), &column))
        return true;
    o->n++;
    *observed = (struct api_observed){
        .column = column, .held.config = api_config_hold(r->config), .name = strdup(r->name)};
    return (observed->name || api_fail_oom(&o->x->problem)) &&
           api_counting_init(&observed->counting, &r->config->bins, &o->x->problem);
}

bool api_history_read(struct api_exchange *x, struct api_table *table, const json_t *parameters)
{
    struct api_replacing *d = x->state;
    struct api_references *references = &d->references;
    struct api_observations *o = &d->history;
    o->x = x;
    o->warnings.budget = x->service->budget;
    o->observed = calloc(references->n + 1, sizeof *o->observed);
    d->stand_ins = calloc(references->n + 1, sizeof *d->stand_ins);
    if (!o->observed || !d->stand_ins)
        return api_fail_oom(&x->problem);
    bool good = true;
    for (size_t i = 0; good && i < references->n; i++)
        good = add_column(o, &references->replacements[i], table);
    good = good && api_timed_begin(o, parameters, table) && api_observations_count(o, table);
    if (good && o->warnings.size > 0) {
        api_append(&references->warnings, ",", references->warnings.size > 0);
        api_append(&references->warnings, o->warnings.data, o->warnings.size);
    }
    return good;
}

/* ---- In the store's thread */

bool api_history_check(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    struct api_observations *o = &d->history;
    for (size_t i = 0; i < o->n; i++) {
        struct api_observed *observed = &o->observed[i];
        observed->monitor = api_registry_find(&monitors->registry, api_group_of(x), observed->name);
        if (observed->monitor && !api_check_age(o, monitors, observed))
            return false;
    }
    return !o->is_timed || api_check_reads(o);
}

/* The monitor, or one that stands in for it, with the config of its replacement; NULL without memory. */
static struct api_monitor *monitor_of(const struct api_replacement *r, struct api_monitor *known,
                                      struct api_monitor **stand_in)
{
    if (r->made || !r->changes)
        return r->made ? r->made : known;
    api_monitor_free(*stand_in); /* of a transaction that failed */
    *stand_in = api_monitor_new(r->id, r->group, r->name, api_config_hold(r->config));
    if (!*stand_in)
        return NULL;
    (*stand_in)->revision = r->revision;
    (*stand_in)->version = r->version;
    (*stand_in)->status = known->pending ? known->pending->status : known->status;
    return *stand_in;
}

static const struct api_replacement *find_replacement(const struct api_references *references,
                                                      const char *name)
{
    const struct api_replacement *r = references->replacements;
    while (strcmp(r->name, name) != 0)
        r++;
    return r;
}

/* Gives a monitor the status of its stand-in, and writes it. */
static bool take_over(struct api_monitors *monitors, struct api_monitor *known,
                      const struct api_monitor *stand_in)
{
    if (!stand_in || !stand_in->pending)
        return true;
    struct api_pending_monitor *pending = api_pending_of(monitors, known);
    if (!pending)
        return false;
    pending->status = stand_in->pending->status;
    return api_status_store(monitors, pending);
}

bool api_history_store(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    struct api_observations *o = &d->history;
    struct api_monitor *known;
    if (!o->is_timed)
        return true;
    for (struct api_pending_monitor *pending = monitors->staged; pending; pending = pending->next)
        api_pending_clear(pending); /* windows of former revisions, which are written */
    for (size_t i = 0; i < o->n; i++) {
        const struct api_replacement *r = find_replacement(&d->references, o->observed[i].name);
        known = api_registry_find(&monitors->registry, r->group, r->name);
        o->observed[i].held.id = r->id;
        o->observed[i].monitor = monitor_of(r, known, &d->stand_ins[i]);
        if (!o->observed[i].monitor)
            return api_transaction_fail_oom(monitors);
    }
    bool good = api_timed_store(o, monitors);
    for (size_t i = 0; good && i < o->n; i++) {
        known = api_registry_find(&monitors->registry, api_group_of(x), o->observed[i].name);
        good = take_over(monitors, known, d->stand_ins[i]);
    }
    return good;
}
