/* api_page: the parameters of a list, and the page that is written to the response, in the store's thread. */
#pragma once

#include "api/monitors/rows/transaction.h"
#include "api/request/exchange.h"

#include <jansson.h>

/* API_KEY: numbers of a key by which rows are in order, at most. */
enum { API_KEY = 3 };

struct api_page {
    struct api_exchange *x;
    json_t *parameters;
    size_t limit; /* 100 by default */
    int64_t from, to;
    bool is_first;                         /* there is no cursor */
    size_t n;                              /* rows that were added */
    bool more;                             /* rows follow this page */
    size_t key;                            /* numbers of the key */
    int64_t after[API_KEY], last[API_KEY]; /* of the last row of the page before, and of this one */
};

/* Reads the query; `known` are the names of the parameters that are valid. Fails with 403, if the parameter `group` names one
 * that the request's token is not for. api_page_free follows, or api_page_end. */
bool api_page_read(struct api_exchange *x, struct api_page *page, const char *const *known);
void api_page_free(struct api_page *page);

/* Reads the query of a request that takes no parameters. */
bool api_page_read_none(struct api_exchange *x);

/* A parameter's text, NULL if it is absent or empty. */
const char *api_page_text(const struct api_page *page, const char *name);

/* Reads a parameter that is a time; leaves *time as it is without it. Fails with timestamp_invalid. */
bool api_page_time(const struct api_page *page, const char *name, int64_t *time);

/* Reads exactly `n` whole numbers with underscores between; false if there are others. */
bool api_read_numbers(const char *text, int64_t *numbers, size_t n);

/* Reads the cursor, which is `key` numbers; each is INT64_MAX without one; and begins an object whose member `name` is the list.
 * Fails with cursor_invalid. */
bool api_page_begin(struct api_page *page, const char *name, size_t key);
bool api_page_fail(struct api_exchange *x);

/* Begins a row; false if the page is full. The caller sets `last`. */
bool api_page_add(struct api_page *page);

/* Ends the object, if all is good, with the cursor of the next page, if there is one. Returns `good`. */
bool api_page_end(struct api_page *page, bool good);

/* Appends a comma, unless an array begins here. */
void api_append_comma(struct api_buffer *out);
