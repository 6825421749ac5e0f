/* Observations of a group of several kinds of monitors, or of one of them: the first byte selects, the
 * rest is the body. What is refused or evaluated adds nothing; what is stored adds as many values to
 * each monitor that it reaches. */
#include "tests/tools/fuzz/monitors.h"

/* Names, settings and configs; the timestamps of observations are those of the body. */
static const struct {
    const char *path, *query, *config;
} made[] = {
    {"/monitors/g/a", "retention_days=36500",
     "{\"bins\":{\"edges\":[-1,0,1.5,2]},\"reference\":{\"counts\":[5,6,7]}}"},
    {"/monitors/g/b", "window=60s&fire_after=2&clear_after=3",
     "{\"bins\":{\"labels\":[\"x\",\"1\",\"true\",\"\"]},\"reference\":{\"counts\":[5,6,7,8]}}"},
    {"/monitors/g/c", "window=100&pseudocount=0&min_observations=0",
     "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"probabilities\":[1,0]}}"},
    {"/monitors/g/d", "compare=previous:3&retention_days=1", "{\"bins\":{\"labels\":[\"x\"]}}"},
};
enum { MONITORS = sizeof made / sizeof *made, AGAIN = 2000 };

static void make_all(void)
{
    fuzz_ask((struct question){.method = "DELETE", .path = "/monitors/g"}, "", 0, NULL);
    for (size_t i = 0; i < MONITORS; i++)
        if (fuzz_ask((struct question){.method = "PUT",
                                       .path = made[i].path,
                                       .query = made[i].query,
                                       .content_type = "application/json"},
                     made[i].config, strlen(made[i].config), NULL) != 201)
            abort();
}

/* Values that each monitor has counted. */
static void read_totals(int64_t totals[MONITORS])
{
    char *text;
    if (fuzz_ask((struct question){.method = "GET", .path = "/metrics"}, "", 0, &text) != 200)
        abort();
    for (size_t i = 0; i < MONITORS; i++) {
        char line[100];
        snprintf(line, sizeof line,
                 "\nkldiv_monitor_observations_total{group=\"g\",monitor=\"%s\"} ",
                 strrchr(made[i].path, '/') + 1);
        const char *number = strstr(text, line);
        if (!number)
            abort();
        totals[i] = atoll(number + strlen(line));
    }
    free(text);
}

static void check_totals(const int64_t before[MONITORS], bool stored)
{
    int64_t after[MONITORS], rows = 0;
    read_totals(after);
    for (size_t i = 0; i < MONITORS; i++) {
        int64_t grown = after[i] - before[i];
        if (grown < 0 || (grown > 0 && !stored) || (grown > 0 && rows > 0 && grown != rows))
            abort();
        rows = grown > 0 ? grown : rows;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"/monitors/g/observations",   "/monitors/g/a/observations",
                                        "/monitors/g/b/observations", "/monitors/g/c/observations",
                                        "/monitors/g/d/observations", "/monitors/g/a/evaluate",
                                        "/monitors/g/b/evaluate",     "/monitors/g/d/evaluate"};
    static const char *const types[] = {NULL, "application/json", "text/csv", "application/x-npz"};
    static unsigned inputs;
    int64_t before[MONITORS];
    if (size == 0)
        return 0;
    if (inputs++ % AGAIN == 0)
        make_all();
    unsigned path = data[0] & 7;
    read_totals(before);
    struct question question = {.path = paths[path],
                                .content_type = types[data[0] >> 3 & 3],
                                .query = data[0] & 32 ? "timestamp=1000000000" : NULL};
    if (data[0] & 64)
        question.others[0] = (struct api_header){"Idempotency-Key", "k"};
    int status = fuzz_ask_table(question, data + 1, size - 1);
    check_totals(before, status == 200 && path < 5);
    if (fuzz_ask((struct question){.method = "GET", .path = "/monitors/g/b/windows"}, "", 0,
                 NULL) != 200)
        abort();
    check_memory();
    return 0;
}
