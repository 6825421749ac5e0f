/* PUT of a monitor or of a group: the first byte selects, then a query up to a NUL, then the body.
 * PUT takes the answer of GET without a change, and the texts of the store give the same config. */
#include "api/monitors/rows/touch.h"
#include "tests/tools/fuzz/monitors.h"

static void check_round_trip(void)
{
    char *first, *second;
    struct question get = {.method = "GET", .path = "/monitors/g/m"},
                    put = {.method = "PUT", .path = "/monitors/g/m"};
    if (fuzz_ask(get, "", 0, &first) != 200 ||
        fuzz_ask(put, first, strlen(first), &second) != 200 || strcmp(first, second) != 0)
        abort();
    free(first);
    free(second);
}

/* Reads all configs as the next start would. */
static void check_stored(void)
{
    struct api_monitors *monitors = fuzz_service()->monitors;
    size_t n;
    api_monitors_stop(monitors);
    if (!api_store_begin(monitors->store, false) || !api_check_all(monitors, &n) || n == 0 ||
        monitors->unreadable.size > 0)
        abort();
    api_store_rollback(monitors->store);
    if (!api_monitors_start(monitors, NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {NULL, "application/json", "text/csv", "application/x-npz"};
    if (size == 0)
        return 0;
    bool group = data[0] & 1;
    const uint8_t *nul = memchr(data + 1, 0, size - 1);
    size_t query_size = nul ? (size_t)(nul - data) - 1 : 0, start = nul ? query_size + 2 : 1;
    char *query = strndup((const char *)data + 1, query_size);
    if (!query)
        abort();
    int status = fuzz_ask_table((struct question){.method = "PUT",
                                                  .path = group ? "/monitors/g" : "/monitors/g/m",
                                                  .query = query,
                                                  .content_type = types[data[0] >> 1 & 3]},
                                data + start, size - start);
    if (status < 300)
        check_stored();
    if (status < 300 && !group)
        check_round_trip();
    const struct question away = {.method = "DELETE", .path = "/monitors/g"};
    if ((fuzz_ask(away, "", 0, NULL) == 204) != (status < 300))
        abort();
    check_memory();
    free(query);
    return 0;
}
