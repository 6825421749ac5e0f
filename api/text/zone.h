/* Time zones: UTC, offsets such as +02:00, and names of the tz database, which are read from the TZif files of this machine.
 * Each is read once, never changes, and is kept for the life of the process, so that any thread may use it. */
#pragma once

#include "api/text/tzif.h"

struct api_zone;

/* Folder of the files: TZDIR, or /usr/share/zoneinfo. */
const char *api_zone_folder(void);

/* The zone that a text names; a blank stands for a + that a query has decoded. NULL for what is none. A name consists of
 * letters, digits, +, -, _ and /, so that no file outside of the folder is read. At most 1,024 names are kept. */
const struct api_zone *api_zone_find(const char *text);

/* Has a name be known by a rule, as of api_zone_rule, if there is no file of it. */
void api_zone_keep(const char *name, const char *rule);

/* The zone as a text that api_zone_find takes. The rule by which its clocks change from now on: that of the file, "" if
 * there is none, as in UTC. True if it is known by a rule alone. */
const char *api_zone_name(const struct api_zone *zone);
const char *api_zone_rule(const struct api_zone *zone);
bool api_zone_is_kept(const struct api_zone *zone);

/* Known name that a text may stand for: the same in another case, or without what is before the last slash, or else the
 * nearest. "" if there is none. */
enum { API_ZONE_NAME = 64 };
void api_zone_nearest(const char *text, char nearest[API_ZONE_NAME]);

/* Times in microseconds since 1970. `hint` remembers the last span of a series of times, zeroed at first; or is NULL. */
int64_t api_zone_to_local(const struct api_zone *zone, int64_t time, struct api_tz_span *hint);

/* The first time that is `local` in a zone. One that is skipped where clocks go forward counts as if they had not: an hour
 * later, by the clocks; *skipped_at, unless that is NULL, then becomes the time at which they went forward, else INT64_MAX. */
int64_t api_zone_to_utc(const struct api_zone *zone, int64_t local, struct api_tz_span *hint,
                        int64_t *skipped_at);
