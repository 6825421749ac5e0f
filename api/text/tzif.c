#include "api/text/tzif.h"

#include "api/text/date.h"

#include <stdlib.h>
#include <string.h>

static const int64_t day_s = 86400;

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* ---- Rules */

/* Reads a name of letters, or of anything in <>. */
static bool skip_name(const char **p)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *end = **p == '<' ? strchr(*p, '>') : *p + strspn(*p, letters);
    bool good = end && end - *p >= 3;
    *p = good && *end == '>' ? end + 1 : end;
    return good;
}

static bool read_number(const char **p, size_t max_digits, unsigned max, unsigned *number)
{
    size_t n = strspn(*p, "0123456789");
    if (n < 1 || n > max_digits)
        return false;
    for (*number = 0; n > 0; n--)
        *number = 10 * *number + (unsigned)(*(*p)++ - '0');
    return *number <= max;
}

static bool take(const char **p, char byte)
{
    bool is_there = **p == byte;
    *p += is_there;
    return is_there;
}

/* Reads [+-]h[h[h]][:mm[:ss]]. */
static bool read_time(const char **p, unsigned max_hours, int64_t *seconds)
{
    unsigned hours, minutes = 0, rest = 0;
    bool is_negative = take(p, '-');
    if (!is_negative)
        take(p, '+');
    if (!read_number(p, 3, max_hours, &hours))
        return false;
    if (take(p, ':') &&
        (!read_number(p, 2, 59, &minutes) || (take(p, ':') && !read_number(p, 2, 59, &rest))))
        return false;
    *seconds = (int64_t)(hours * 3600 + minutes * 60 + rest) * (is_negative ? -1 : 1);
    return true;
}

/* Reads ,J60/2, ,59 or ,M10.5.0/3. */
static bool read_change(const char **p, struct api_tz_change *change)
{
    enum { MAX_HOURS = 167 };
    bool good = take(p, ',');
    change->time = 7200;
    if (take(p, 'M')) {
        change->form = API_TZ_WEEKDAY;
        good = good && read_number(p, 2, 12, &change->month) && change->month > 0 && take(p, '.') &&
               read_number(p, 1, 5, &change->week) && change->week > 0 && take(p, '.') &&
               read_number(p, 1, 6, &change->day);
    } else {
        change->form = take(p, 'J') ? API_TZ_JULIAN : API_TZ_DAY;
        good = good && read_number(p, 3, 365, &change->day) &&
               (change->form == API_TZ_DAY || change->day > 0);
    }
    return good && (!take(p, '/') || read_time(p, MAX_HOURS, &change->time));
}

bool api_tz_rule_read(const char *p, struct api_tz_rule *rule)
{
    enum { MAX_HOURS = 24 };
    *rule = (struct api_tz_rule){.is_set = true};
    if (!skip_name(&p) || !read_time(&p, MAX_HOURS, &rule->offsets[0]))
        return false;
    rule->offsets[0] *= -1; /* POSIX counts to the west */
    if (!*p)
        return true;
    rule->has_summer = true;
    rule->offsets[1] = rule->offsets[0] + 3600;
    if (!skip_name(&p))
        return false;
    if (*p != ',') {
        if (!read_time(&p, MAX_HOURS, &rule->offsets[1]))
            return false;
        rule->offsets[1] *= -1;
    }
    return read_change(&p, &rule->start) && read_change(&p, &rule->end) && !*p;
}

static bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

/* Local second at which the clocks of a year change. */
static int64_t second_of(const struct api_tz_change *change, int64_t year)
{
    int64_t days = api_days_since_1970(year, 1, 1) + change->day;
    if (change->form == API_TZ_JULIAN)
        days += (is_leap(year) && change->day >= 60) - 1;
    if (change->form == API_TZ_WEEKDAY) {
        int64_t first = api_days_since_1970(year, change->month, 1);
        int64_t next = change->month < 12 ? api_days_since_1970(year, change->month + 1, 1)
                                          : api_days_since_1970(year + 1, 1, 1);
        int64_t weekday = first + 4 - 7 * floor_div(first + 4, 7); /* 1970 began on a Thursday */
        days = first + (change->day + 7 - weekday) % 7 + 7 * (int64_t)(change->week - 1);
        days -= days >= next ? 7 : 0;
    }
    return days * day_s + change->time;
}

/* change: of the offset to that of summer time or of standard time. */
struct change {
    int64_t at;
    bool is_summer;
};

/* Inserts a change among those before, which ascend; where one ends as the other starts, it is summer. */
static void insert(struct change *changes, size_t n, struct change change)
{
    for (; n > 0 && (changes[n - 1].at > change.at ||
                     (changes[n - 1].at == change.at && changes[n - 1].is_summer));
         n--)
        changes[n] = changes[n - 1];
    changes[n] = change;
}

/* The span of a time by the rule. A year has 31,556,952 s on average; that of a time is at most one off, and its changes
 * may lie a week outside. */
static struct api_tz_span rule_span(const struct api_tz_rule *rule, int64_t second)
{
    enum { AROUND = 2, N = 2 * (2 * AROUND + 1) };
    struct api_tz_span span = {INT64_MIN, INT64_MAX, rule->offsets[0]};
    struct change changes[N] = {{0}};
    if (!rule->has_summer)
        return span;
    int64_t first = 1970 + floor_div(second, 31556952) - AROUND;
    for (size_t i = 0; i < N; i++) {
        bool is_summer = i % 2 == 0;
        int64_t year = first + (int64_t)i / 2;
        insert(changes, i,
               (struct change){second_of(is_summer ? &rule->start : &rule->end, year) -
                                   rule->offsets[!is_summer],
                               is_summer});
    }
    for (size_t i = 0; i < N && span.to == INT64_MAX; i++) {
        if (changes[i].at > second) {
            span.to = changes[i].at;
        } else {
            span.from = changes[i].at;
            span.offset = rule->offsets[changes[i].is_summer];
        }
    }
    return span;
}

/* ---- Files */

enum { HEADER = 44, TYPE = 6 };

/* block: the counts of a header, in its order, and what follows it. */
struct block {
    uint32_t counts[6]; /* of UT, of standard, leap seconds, transitions, types, characters */
    size_t time_size;
    const unsigned char *data;
    size_t size;
};
enum { UT, STANDARD, LEAPS, TIMES, TYPES, CHARACTERS };

static uint64_t big_endian(const unsigned char *bytes, size_t n)
{
    uint64_t number = 0;
    for (size_t i = 0; i < n; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* Reads the header at `bytes`; false if its data do not lie within `size`. */
static bool read_block(const unsigned char *bytes, size_t size, size_t time_size,
                       struct block *block)
{
    if (size < HEADER || memcmp(bytes, "TZif", 4) != 0)
        return false;
    for (size_t i = 0; i < 6; i++) {
        block->counts[i] = (uint32_t)big_endian(bytes + 20 + 4 * i, 4);
        if (block->counts[i] > size)
            return false;
    }
    const uint32_t *n = block->counts;
    block->time_size = time_size;
    block->data = bytes + HEADER;
    block->size = n[TIMES] * (time_size + 1) + n[TYPES] * (size_t)TYPE + n[CHARACTERS] +
                  n[LEAPS] * (time_size + 4) + n[STANDARD] + n[UT];
    return block->size <= size - HEADER && n[TYPES] > 0;
}

/* Copies the line of the rule, behind all else; "" if there is none. */
static bool read_footer(struct api_tzif *tzif, const unsigned char *bytes, size_t size, char *to)
{
    const unsigned char *end = size > 0 ? memchr(bytes + 1, '\n', size - 1) : NULL;
    if (!end || *bytes != '\n')
        return false;
    memcpy(to, bytes + 1, (size_t)(end - bytes - 1));
    to[end - bytes - 1] = '\0';
    return !*to || api_tz_rule_read(to, &tzif->rule);
}

/* Fills the tables, for which there is room. Before the first transition is the first type of standard time. */
static bool read_tables(struct api_tzif *tzif, const struct block *block)
{
    const unsigned char *types = block->data + tzif->n * block->time_size, *table = types + tzif->n;
    size_t n_types = block->counts[TYPES], first = 0;
    while (first < n_types && table[first * TYPE + 4])
        first++;
    for (size_t i = 0; i <= tzif->n; i++) {
        size_t type = i > 0 ? types[i - 1] : first < n_types ? first : 0;
        if (type >= n_types)
            return false;
        tzif->offsets[i] = (int32_t)(uint32_t)big_endian(table + type * TYPE, 4);
        if (tzif->offsets[i] < -API_TZ_MAX_OFFSET || tzif->offsets[i] > API_TZ_MAX_OFFSET)
            return false;
    }
    for (size_t i = 0; i < tzif->n; i++) {
        uint64_t time = big_endian(block->data + i * block->time_size, block->time_size);
        tzif->times[i] = block->time_size == 4 ? (int32_t)(uint32_t)time : (int64_t)time;
        if (i > 0 && tzif->times[i] <= tzif->times[i - 1])
            return false;
    }
    return true;
}

bool api_tzif_read(struct api_tzif *tzif, const unsigned char *bytes, size_t size)
{
    struct block block;
    const unsigned char *end = bytes + size;
    *tzif = (struct api_tzif){.rule_text = ""};
    if (!read_block(bytes, size, 4, &block))
        return false;
    bool has_footer = bytes[4] >= '2';
    const unsigned char *next = block.data + block.size;
    if (has_footer && !read_block(next, (size_t)(end - next), 8, &block))
        return false;
    next = block.data + block.size;
    tzif->n = block.counts[TIMES];
    tzif->times = calloc(tzif->n * (sizeof *tzif->times + sizeof *tzif->offsets) +
                             sizeof *tzif->offsets + (size_t)(end - next) + 1,
                         1);
    if (!tzif->times)
        return false;
    tzif->offsets = (int32_t *)(tzif->times + tzif->n);
    char *text = (char *)(tzif->offsets + tzif->n + 1);
    tzif->rule_text = text;
    if (read_tables(tzif, &block) &&
        (!has_footer || read_footer(tzif, next, (size_t)(end - next), text)))
        return true;
    free(tzif->times);
    return false;
}

struct api_tz_span api_tzif_span(const struct api_tzif *tzif, int64_t second)
{
    struct api_tz_span span = {INT64_MIN, INT64_MAX, 0};
    size_t first = 0, end = tzif->n;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (tzif->times[middle] <= second)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == tzif->n && tzif->rule.is_set)
        span = rule_span(&tzif->rule, second);
    else if (tzif->offsets)
        span.offset = tzif->offsets[first];
    if (first > 0 && tzif->times[first - 1] > span.from)
        span.from = tzif->times[first - 1];
    if (first < tzif->n)
        span.to = tzif->times[first];
    return span;
}
