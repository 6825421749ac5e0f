/* What several changes are together, in a line. */
#include "api/notify/news.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* AT: 2025-01-31T12:00:00Z, in microseconds, and seconds later. */
#define AT(seconds) (INT64_C(1738324800000000) + (seconds)*INT64_C(1000000))

/* Gives the line, which the caller frees. */
static char *summary_of(const struct api_change *changes, size_t n, bool *is_incident)
{
    struct api_buffer out = {0};
    *is_incident = api_summary_write(changes, n, &out);
    api_append(&out, "", 1);
    cr_assert_not(out.failed);
    return out.data;
}

static struct api_change change_of(const char *name, int from, int to, int64_t since, double kl)
{
    return (struct api_change){.group = "credit",
                               .name = name,
                               .sentence = "",
                               .monitor = *name,
                               .at = since,
                               .since = since,
                               .from = from,
                               .to = to,
                               .kl = kl};
}

enum { MAX_CHANGES = 8 };
static const struct {
    struct {
        const char *name;
        int from, to, since;
        double kl;
    } changes[MAX_CHANGES];
    const char *text;
} lines[] = {
    {{{"age", API_OK, API_WARNING, 0, 0.05}, {"income", API_OK, API_CRITICAL, 60, 0.5}},
     "2 columns of credit since 2025-01-31T12:00:00Z: income, age; first was age; 1 critical, 1 "
     "warning"},
    {{{"b", API_OK, API_CRITICAL, 0, 0.2},
      {"a", API_INSUFFICIENT, API_CRITICAL, 0, INFINITY},
      {"d", API_OK, API_CRITICAL, 0, NAN},
      {"c", API_OK, API_CRITICAL, 0, 0.1},
      {"e", API_OK, API_WARNING, 0, 9},
      {"f", API_OK, API_WARNING, 0, 8}},
     "6 columns of credit since 2025-01-31T12:00:00Z: a, b, c, d, e …; 4 critical, 2 warning"},
    /* one that is worse within the message is one; of those that are ok again, or get less bad, none is */
    {{{"a", API_OK, API_WARNING, 0, 0.1},
      {"b", API_OK, API_WARNING, 5, 0.2},
      {"a", API_WARNING, API_CRITICAL, 0, 0.3},
      {"c", API_CRITICAL, API_OK, -9, 0},
      {"d", API_CRITICAL, API_WARNING, -9, 0.4},
      {"e", API_OK, API_CRITICAL, 0, 0.5},
      {"e", API_CRITICAL, API_OK, 0, 0},
      {"f", API_OK, API_STALE, 0, NAN}},
     "2 columns of credit since 2025-01-31T12:00:00Z: a, b; first was a; 1 critical, 1 warning; "
     "besides: 1 stale, 1 warning, 2 ok"},
    {{{"a", API_OK, API_WARNING, 0, 0.1}, {"b", API_WARNING, API_CRITICAL, -9, 0.4}},
     "credit: 2 changes: 1 critical, 1 warning"},
    {{{"a", API_STALE, API_WARNING, 0, 0.1}, {"b", API_OK, API_CRITICAL, -9, 0.4}},
     "credit: 2 changes: 1 critical, 1 warning"},
    {{{"a", API_CRITICAL, API_OK, 0, 0}, {"b", API_WARNING, API_OK, 0, 0}},
     "credit: 2 changes: 2 ok"},
};

Test(notify_summary, says_what_began_together)
{
    for (size_t c = 0; c < COUNT(lines); c++) {
        struct api_change changes[MAX_CHANGES];
        size_t n = 0;
        for (; n < MAX_CHANGES && lines[c].changes[n].name; n++)
            changes[n] = change_of(lines[c].changes[n].name, lines[c].changes[n].from,
                                   lines[c].changes[n].to, AT(lines[c].changes[n].since),
                                   lines[c].changes[n].kl);
        bool is_incident;
        char *text = summary_of(changes, n, &is_incident);
        cr_expect_eq(is_incident, strncmp(text, "credit: ", 8) != 0);
        cr_expect_str_eq(text, lines[c].text, "%zu: %s", c, text);
        free(text);
        for (size_t i = 0; i < n; i++)
            changes[i].since = AT(0) + (int64_t)i;
        text = summary_of(changes, n, &is_incident);
        cr_expect(!strstr(text, "first was"), "%s", text);
        free(text);
        for (size_t i = 0; i < n; i++)
            changes[i].since = API_NO_TIME;
        text = summary_of(changes, n, &is_incident);
        cr_expect(!strstr(text, " since "), "%s", text);
        free(text);
    }
}

/* Random courses of some monitors, against what each of them has come to. */
Test(notify_summary, of_random_courses_counts_who_has_left_ok)
{
    enum { MONITORS = 6, MAX = 30 };
    static const char *const names[MONITORS] = {"a", "b", "c", "d", "e", "f"};
    size_t incidents = 0;
    srand(1);
    for (size_t round = 0; round < 3000; round++) {
        int begins[MONITORS], states[MONITORS];
        bool changed[MONITORS] = {false};
        struct api_change changes[MAX];
        size_t n = 2 + (size_t)rand() % (MAX - 1), left = 0;
        char expected[100];
        for (size_t i = 0; i < MONITORS; i++)
            begins[i] = states[i] = rand() % API_STATES;
        for (size_t i = 0; i < n; i++) {
            int monitor = rand() % MONITORS, to = rand() % API_STATES;
            changes[i] = change_of(names[monitor], states[monitor], to, AT(0), 1);
            states[monitor] = to;
            changed[monitor] = true;
        }
        for (size_t i = 0; i < MONITORS; i++)
            left += changed[i] && begins[i] <= API_OK &&
                    (states[i] == API_WARNING || states[i] == API_CRITICAL);
        bool is_incident;
        char *text = summary_of(changes, n, &is_incident);
        cr_assert_eq(is_incident, left > 1);
        snprintf(expected, sizeof expected,
                 left > 1 ? "%zu columns of credit since " : "credit: ", left);
        cr_assert(strncmp(text, expected, strlen(expected)) == 0, "round %zu: %s", round, text);
        incidents += left > 1;
        free(text);
    }
    cr_expect_gt(incidents, 300);
}
