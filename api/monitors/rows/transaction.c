#include "api/monitors/rows/transaction.h"

#include <string.h>

bool api_transaction_fail_oom(struct api_monitors *monitors)
{
    monitors->out_of_memory = true;
    return false;
}

void api_tell(struct api_monitors *monitors, const char *sentence)
{
    if (monitors->log)
        monitors->log(true, sentence);
    else
        api_append(&monitors->load_errors, sentence, strlen(sentence) + 1);
}

bool api_read_schema(struct api_monitors *monitors)
{
    int64_t numbers[2] = {0};
    return api_store_read(monitors->store, API_SQL_SCHEMA, NULL, api_datum_read_integers,
                          numbers) &&
           api_store_knows(monitors->store, numbers[0], numbers[1]);
}

/* ---- The size of the store */

/* Counts, for the budget, what a store in memory takes beyond OWN bytes; later, where requests have the
 * memory now. */
static void count_size(struct api_monitors *monitors, size_t size)
{
    enum { OWN = 1 << 20 };
    struct api_budget *budget = monitors->budget;
    size_t counted = monitors->counted, bytes = size > OWN ? size - OWN : 0;
    if (bytes < counted)
        api_budget_forget(budget, counted - bytes);
    if (bytes <= counted || api_budget_retain(budget, bytes - counted, true))
        monitors->counted = bytes;
    monitors->store_is_full =
        budget && budget->limit && atomic_load(&budget->retained) > budget->limit / 2;
}

bool api_note_size(struct api_monitors *monitors)
{
    int64_t bytes;
    if (!api_store_size(monitors->store, &bytes))
        return false;
    atomic_store(&monitors->size, bytes);
    if (api_store_is_in_memory(monitors->store))
        count_size(monitors, (size_t)bytes);
    return true;
}

bool api_check_store(const struct api_monitors *monitors, struct api_problem *problem)
{
    long long size = atomic_load(&monitors->size);
    if (monitors->store_is_full)
        return api_fail(problem, "store_full",
                        "the store in memory has %lld bytes; with the monitors it may have half of "
                        "--max-memory; delete monitors, or lower retention_days",
                        size);
    return monitors->max_store == 0 || size < monitors->max_store ||
           api_fail(problem, "store_full",
                    "the store has %lld bytes, and --max-store is %lld; delete monitors, or lower "
                    "retention_days",
                    size, (long long)monitors->max_store);
}
