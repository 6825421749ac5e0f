/* Reads lines of the log. */
#pragma once

#include <jansson.h>

/* Reads a line of the text log, up to its end, as strictly as may be: a time, a level, words, then key=value, where a
 * value has visible ASCII without ", = and \, or is a JSON string of visible ASCII and blanks. Gives an object of its
 * fields with time, level and message; NULL if the line is anything else, or has a field twice. */
json_t *log_line_read(const char *line);
