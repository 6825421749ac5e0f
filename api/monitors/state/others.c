#include "api/monitors/state/others.h"

#include "api/monitors/state/group_rows.h"
#include "api/monitors/state/window_rows.h"

void api_others_note(struct api_monitors *monitors, int64_t written)
{
    monitors->epoch += api_store_last(monitors->store)->is_new || written != monitors->written;
    monitors->written = written;
}

bool api_others_write(struct api_monitors *monitors)
{
    struct api_store *store = monitors->store;
    if (!api_store_is_shared(store) || !api_store_last(store)->has_written)
        return true;
    monitors->writes = true;
    return api_store_run(store, API_SQL_META_SET, API_ROW(monitors->written + 1, "written"));
}

void api_others_end(struct api_monitors *monitors, bool is_committed)
{
    monitors->written += monitors->writes && is_committed;
    monitors->writes = false;
}

static void learn(struct api_monitors *monitors, struct api_monitor *monitor,
                  const struct api_datum *values)
{
    int64_t observations = values[3].integer, last = api_time_of(&values[4]);
    if (monitor->status.observations == observations)
        return;
    pthread_rwlock_wrlock(&monitors->registry.lock);
    monitor->status.observations = observations;
    if (last > monitor->status.last_observation)
        api_monitor_see(monitor, &monitor->status, last, monitors->now);
    pthread_rwlock_unlock(&monitors->registry.lock);
}

static void learn_row(void *context, const struct api_datum *values)
{
    struct api_monitors *monitors = context;
    struct api_named of;
    if (!api_named_read(&of, values))
        return;
    struct api_monitor *monitor = api_registry_find(&monitors->registry, of.group, of.name);
    if (monitor && monitor->id == values[2].integer)
        learn(monitors, monitor, values);
}

/* REST: the pause after a read of all rows, in times of what the read took; at most 10 s. */
bool api_others_learn(struct api_monitors *monitors)
{
    enum { REST = 20 };
    double start = api_seconds();
    if (monitors->learned == monitors->epoch || start < monitors->next_learning)
        return true;
    bool good = api_store_read(monitors->store, API_SQL_NUMBERS_OF_ALL, NULL, learn_row, monitors);
    double end = api_seconds(), rest_s = REST * (end - start);
    monitors->learned = good ? monitors->epoch : monitors->learned;
    monitors->next_learning = end + (rest_s < 10 ? rest_s : 10);
    return good;
}
