/* Tables whose rows have times of their own, for tests, and a group of monitors that they are sent to. */
#pragma once

#include "api/text/zone.h"
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/support.h"

enum { TIMED_ROWS = 400, TIMED_VIEWS = 9 };

/* timed_row: its time in seconds, and values; `country` may be unknown to the monitor. */
struct timed_row {
    int64_t time;
    double age;
    const char *country;
};
extern struct timed_row timed_rows[TIMED_ROWS];
extern unsigned long long timed_seed;

/* Makes rows over some windows, in any order; what they are moves in the middle. */
void timed_make_rows(int64_t from, size_t seconds);

enum timed_form { TIMED_CSV, TIMED_COLUMNS, TIMED_OBJECTS, TIMED_LINES, TIMED_NPZ, TIMED_FORMS };
extern const char *const timed_types[TIMED_FORMS];

/* Appends the rows of [start, end) to a table, with times if `timed`, some without a zone, which then is `zone`. */
void timed_append(struct api_buffer *out, enum timed_form form, int64_t start, int64_t end,
                  bool timed, const struct api_zone *zone);
bool timed_is_wanted(const struct timed_row *row, int64_t start, int64_t end);

/* Makes the group g, of the monitors age and country, with the parameters of `query`. */
void timed_make_group(const struct api_service *service, const char *query);

/* Send a body, which is to be taken, and give the response. */
json_t *timed_post(const struct api_service *service, const char *line, enum timed_form form,
                   const struct api_buffer *body);
json_t *timed_send_csv(const struct api_service *service, const char *line, const char *text);

/* Windows, events and states of the group, as a client sees them. */
extern const char *const timed_views[TIMED_VIEWS];
void timed_look(const struct api_service *service, json_t *seen[TIMED_VIEWS]);

void timed_expect_same(json_t *first, json_t *second, const char *what);
