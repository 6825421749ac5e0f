#include "api/monitors/store_metrics.h"

#include "api/clock.h"

#include <stdatomic.h>
#include <stdlib.h>

static const double bounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                0.025,  0.05,    0.1,    0.25,  0.5,    1,     2.5};
#define N_BOUNDS (sizeof bounds / sizeof *bounds)

static const char *const names[API_OPERATIONS] = {"write", "commit"};

struct api_store_statistics {
    struct {
        atomic_ulong buckets[N_BOUNDS + 1]; /* not cumulative; the last is above all bounds */
        atomic_ulong micros, errors;
    } operations[API_OPERATIONS];
};

struct api_store_statistics *api_statistics_new(void)
{
    return calloc(1, sizeof(struct api_store_statistics));
}

void api_statistics_free(struct api_store_statistics *statistics) { free(statistics); }

void api_statistics_add(struct api_store_statistics *statistics, enum api_operation operation,
                        double start, bool good)
{
    double seconds = api_seconds() - start;
    size_t i = 0;
    while (i < N_BOUNDS && seconds > bounds[i])
        i++;
    atomic_fetch_add(&statistics->operations[operation].buckets[i], 1);
    atomic_fetch_add(&statistics->operations[operation].micros, (unsigned long)(seconds * 1e6));
    if (!good)
        atomic_fetch_add(&statistics->operations[operation].errors, 1);
}

static void write_durations(const struct api_store_statistics *statistics, size_t operation,
                            struct api_buffer *out)
{
    static const char name[] = "kldiv_store_operation_duration_seconds";
    unsigned long below = 0;
    for (size_t i = 0; i <= N_BOUNDS; i++) {
        below += atomic_load(&statistics->operations[operation].buckets[i]);
        api_append_format(out, "%s_bucket{operation=\"%s\",le=\"", name, names[operation]);
        if (i < N_BOUNDS)
            api_append_format(out, "%g\"} %lu\n", bounds[i], below);
        else
            api_append_format(out, "+Inf\"} %lu\n", below);
    }
    api_append_format(out, "%s_sum{operation=\"%s\"} %.15g\n", name, names[operation],
                      (double)atomic_load(&statistics->operations[operation].micros) / 1e6);
    api_append_format(out, "%s_count{operation=\"%s\"} %lu\n", name, names[operation], below);
}

void api_statistics_write(const struct api_store_statistics *statistics, struct api_buffer *out)
{
    api_append_text(out, "# HELP kldiv_store_errors_total Operations of the store that failed.\n"
                         "# TYPE kldiv_store_errors_total counter\n");
    for (size_t i = 0; i < API_OPERATIONS; i++)
        api_append_format(out, "kldiv_store_errors_total{operation=\"%s\"} %lu\n", names[i],
                          atomic_load(&statistics->operations[i].errors));
    api_append_text(out, "# HELP kldiv_store_operation_duration_seconds Transactions of the store: "
                         "writing them, and waiting for the disk.\n"
                         "# TYPE kldiv_store_operation_duration_seconds histogram\n");
    for (size_t i = 0; i < API_OPERATIONS; i++)
        write_durations(statistics, i, out);
}
