/* Local time by a TZif file (RFC 8536) and by the rule in its footer, a TZ of POSIX with the extensions of that RFC. Times
 * are seconds since 1970, in UTC or local; offsets are seconds east of UTC. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* API_TZ_MAX_OFFSET: of files and rules; RFC 8536 has those that are further from UTC be refused. */
enum { API_TZ_MAX_OFFSET = 26 * 3600 };

/* api_tz_change: when a year's clocks change: at `time` seconds after the begin of a day. */
struct api_tz_change {
    enum { API_TZ_JULIAN, API_TZ_DAY, API_TZ_WEEKDAY } form; /* Jn, n, Mm.w.d */
    unsigned month, week, day;
    int64_t time;
};

/* api_tz_rule: the offsets of each year, standard time first; `start` and `end` are those of summer time, if there is any. */
struct api_tz_rule {
    bool is_set, has_summer;
    int64_t offsets[2];
    struct api_tz_change start, end;
};

/* Reads a rule such as CET-1CEST,M3.5.0,M10.5.0/3; false if it is none. */
bool api_tz_rule_read(const char *text, struct api_tz_rule *rule);

/* api_tzif: transitions, and the rule for all times from the last one on. Empty if zeroed, which is UTC. */
struct api_tzif {
    size_t n;
    int64_t *times;        /* of the transitions, ascending */
    int32_t *offsets;      /* before the first, then from each on */
    const char *rule_text; /* "" if there is none */
    struct api_tz_rule rule;
};

/* Reads the bytes of a file, of version 1 or later; leap seconds are left out, as in the files below posix/. What it
 * allocates is one block, at `times`. False for what is no such file, or without memory. */
bool api_tzif_read(struct api_tzif *tzif, const unsigned char *bytes, size_t size);

/* api_tz_span: a time of one offset: seconds from `from`, inclusive, to `to`. */
struct api_tz_span {
    int64_t from, to, offset;
};
struct api_tz_span api_tzif_span(const struct api_tzif *tzif, int64_t second);
