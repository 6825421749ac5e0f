#include "api/text/zone.h"

#include "api/text/nearest.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

struct api_zone {
    struct api_zone *next;
    struct api_tzif tzif;
    bool is_kept; /* known by a rule alone */
    char name[API_ZONE_NAME];
};

/* MAX_NAMES: the tz database has some 600. MAX_FILE: bytes of a file; they have up to 4,000. */
enum { MAX_NAMES = 1024, MAX_FILE = 64 << 10, MAX_PATH = 4096 };
static const int64_t second_us = 1000000;

static const struct api_zone utc = {.tzif = {.rule_text = ""}, .name = "UTC"};
static struct api_zone *zones; /* those that were read */
static size_t n_names;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *api_zone_folder(void)
{
    const char *folder = getenv("TZDIR");
    return folder && *folder ? folder : "/usr/share/zoneinfo";
}

const char *api_zone_name(const struct api_zone *zone) { return zone->name; }
const char *api_zone_rule(const struct api_zone *zone) { return zone->tzif.rule_text; }
bool api_zone_is_kept(const struct api_zone *zone) { return zone->is_kept; }

/* ---- Reading */

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "+-_/";
    size_t size = strlen(text);
    return size > 0 && size < API_ZONE_NAME && !text[strspn(text, letters)] && *text != '/';
}

static bool read_file(struct api_tzif *tzif, const char *name)
{
    char path[MAX_PATH];
    struct stat status;
    int length = snprintf(path, sizeof path, "%s/%s", api_zone_folder(), name);
    int file = length < MAX_PATH ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (file < 0)
        return false;
    bool good = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= MAX_FILE;
    size_t size = good ? (size_t)status.st_size : 0;
    unsigned char *bytes = malloc(size + 1);
    good = good && bytes && read(file, bytes, size) == (ssize_t)size &&
           api_tzif_read(tzif, bytes, size);
    close(file);
    free(bytes);
    return good;
}

/* Reads an offset such as +02:00. */
static bool read_offset(const char *text, struct api_zone *zone)
{
    unsigned hours, minutes;
    char end;
    if (!strchr("+- ", *text) || strlen(text) != 6 || text[3] != ':' ||
        strspn(text + 1, "0123456789") != 2 || strspn(text + 4, "0123456789") != 2 ||
        sscanf(text + 1, "%2u:%2u%c", &hours, &minutes, &end) != 2 || hours > 23 || minutes > 59)
        return false;
    int64_t seconds = 3600 * (int64_t)hours + 60 * (int64_t)minutes;
    zone->tzif.rule =
        (struct api_tz_rule){.is_set = true, .offsets = {*text == '-' ? -seconds : seconds}};
    zone->tzif.rule_text = "";
    snprintf(zone->name, sizeof zone->name, "%c%s", *text == '-' ? '-' : '+', text + 1);
    return true;
}

/* Reads a zone, by its file or else by a rule that is kept, if one is given; under the lock. */
static bool read_zone(struct api_zone *zone, const char *text, const char *rule)
{
    if (read_offset(text, zone))
        return true;
    if (!is_name(text) || n_names == MAX_NAMES)
        return false;
    zone->is_kept = !read_file(&zone->tzif, text);
    if (zone->is_kept) {
        if (!rule || !api_tz_rule_read(rule, &zone->tzif.rule))
            return false;
        zone->tzif.rule_text = strdup(rule);
        if (!zone->tzif.rule_text)
            return false;
    }
    memcpy(zone->name, text, strlen(text) + 1);
    n_names++;
    return true;
}

/* Reads a zone and keeps it; NULL if there is none, or no memory. */
static struct api_zone *add(const char *text, const char *rule)
{
    struct api_zone *zone = calloc(1, sizeof *zone);
    if (zone && read_zone(zone, text, rule)) {
        zone->next = zones;
        return zones = zone;
    }
    free(zone);
    return NULL;
}

static const struct api_zone *find(const char *text, const char *rule)
{
    const struct api_zone *zone;
    char name[API_ZONE_NAME];
    if (strcmp(text, utc.name) == 0)
        return &utc;
    if (strlen(text) >= sizeof name)
        return NULL;
    snprintf(name, sizeof name, "%s%s", *text == ' ' ? "+" : "", text + (*text == ' '));
    pthread_mutex_lock(&lock);
    for (zone = zones; zone && strcmp(zone->name, name) != 0;)
        zone = zone->next;
    if (!zone)
        zone = add(text, rule);
    pthread_mutex_unlock(&lock);
    return zone;
}

const struct api_zone *api_zone_find(const char *text) { return find(text, NULL); }

void api_zone_keep(const char *name, const char *rule) { find(name, rule); }

/* ---- Names that are near */

/* True for a name that differs from a text by case, or by what is before the last slash. */
static bool is_same(const char *name, const char *text)
{
    const char *slash = strrchr(name, '/');
    return strcasecmp(name, text) == 0 || (slash && strcasecmp(slash + 1, text) == 0);
}

/* Has the best name be the nearer one to a text. */
static void compare(const char *text, const char *name, char best[API_ZONE_NAME])
{
    const char *const both[] = {name, best};
    size_t n = *best ? 2 : 1;
    if (!is_same(best, text) && (is_same(name, text) || api_nearest(text, both, n) == name))
        snprintf(best, API_ZONE_NAME, "%s", name);
}

/* Looks at the names below a folder; false if it is none. Those of zones begin with a capital. */
static bool look_below(const char *text, const char *below, int depth, char best[API_ZONE_NAME])
{
    enum { MAX_DEPTH = 3 };
    char path[MAX_PATH], name[MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", api_zone_folder(), below);
    DIR *folder = depth < MAX_DEPTH ? opendir(path) : NULL;
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(name, sizeof name, "%s%s%s", below, *below ? "/" : "", entry->d_name);
        if (entry->d_name[0] < 'A' || entry->d_name[0] > 'Z' || !is_name(name))
            continue;
        if (!look_below(text, name, depth + 1, best))
            compare(text, name, best);
    }
    if (folder)
        closedir(folder);
    return folder != NULL;
}

void api_zone_nearest(const char *text, char nearest[API_ZONE_NAME])
{
    *nearest = '\0';
    if (strlen(text) < API_ZONE_NAME)
        look_below(text, "", 0, nearest);
}

/* ---- Times */

/* seconds_of: whole seconds of a time; *us becomes the rest. */
static int64_t seconds_of(int64_t time, int64_t *us)
{
    *us = (time % second_us + second_us) % second_us;
    return (time - *us) / second_us;
}

int64_t api_zone_to_local(const struct api_zone *zone, int64_t time, struct api_tz_span *hint)
{
    struct api_tz_span span;
    int64_t us, second = seconds_of(time, &us);
    if (zone == &utc)
        return time;
    if (hint && second >= hint->from && second < hint->to)
        return time + hint->offset * second_us;
    span = api_tzif_span(&zone->tzif, second);
    if (hint)
        *hint = span;
    return time + span.offset * second_us;
}

int64_t api_zone_to_utc(const struct api_zone *zone, int64_t local, struct api_tz_span *hint,
                        int64_t *skipped_at)
{
    static const int64_t margin = INT64_C(2) * API_TZ_MAX_OFFSET;
    int64_t us, second = seconds_of(local, &us), before, at;
    if (skipped_at)
        *skipped_at = INT64_MAX;
    if (zone == &utc)
        return local;
    if (hint && hint->from < hint->to && second - hint->offset - margin >= hint->from &&
        second - hint->offset + margin < hint->to)
        return local - hint->offset * second_us;
    /* Goes from span to span, from one that ends before all times that may be meant. */
    struct api_tz_span span = api_tzif_span(&zone->tzif, second - margin);
    for (before = span.offset; second - span.offset >= span.to;) {
        before = span.offset;
        span = api_tzif_span(&zone->tzif, span.to);
    }
    at = second - span.offset;
    if (at < span.from) {
        at = second - before;
        if (skipped_at)
            *skipped_at = span.from * second_us;
    } else if (hint) {
        *hint = span;
    }
    return at * second_us + us;
}
