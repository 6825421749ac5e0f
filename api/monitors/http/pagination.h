/* Parameters of lists: how many, from where on, between which times. */
#pragma once

#include "api/monitors/rows/transaction.h"
#include "api/request/exchange.h"

#include <jansson.h>

/* api_pagination: `cursor` is borrowed from the parameters; "" for the first page. */
struct api_pagination {
    json_t *parameters;
    size_t limit; /* 100 by default */
    const char *cursor;
    int64_t from, to;
};

/* Reads the query; `known` are the names of the parameters that are valid. Fails with 403, if the parameter `group` names one
 * that the request's token is not for. */
bool api_pagination_read(struct api_exchange *x, struct api_pagination *page,
                         const char *const *known);
void api_pagination_free(struct api_pagination *page);

/* A parameter's text, NULL if it is absent or empty. */
const char *api_pagination_text(const struct api_pagination *page, const char *name);

/* Reads a parameter that is a time; leaves *time as it is without it. Fails with timestamp_invalid. */
bool api_pagination_time(const struct api_pagination *page, const char *name, int64_t *time,
                         struct api_problem *problem);

/* Reads exactly `n` whole numbers with underscores between; false if there are others. */
bool api_pagination_numbers(const char *text, int64_t *numbers, size_t n);

/* Reads the cursor, which is `n` numbers; on the first page `numbers` stays as it is. Fails with cursor_invalid. */
bool api_pagination_cursor(const struct api_pagination *page, int64_t *numbers, size_t n,
                           struct api_problem *problem);
bool api_pagination_fail(struct api_problem *problem);

/* Ends a list with the cursor of the next page, which is `n` numbers; of the last page with none. */
void api_pagination_end(const int64_t *numbers, size_t n, struct api_buffer *out);

/* api_row_page: x->state of a list of rows of the store, which are formatted as they are read. */
struct api_row_page {
    const struct api_exchange *x;
    struct api_pagination page;
    const char *name; /* of the member of the response that is the list */
    bool more;        /* rows follow this page */
    struct api_buffer rows;
    size_t n;
    size_t key;                /* numbers of the key by which rows are in order */
    int64_t after[3], last[3]; /* keys: of the last row of the page before, and of this one */
};

/* Steps of such a list: reads the query, and a cursor of `key` numbers; runs a statement, whose rows go to `row`; writes
 * the object. */
enum api_outcome api_row_page_parse(struct api_exchange *x, const char *name, size_t key,
                                    const char *const *known);
bool api_row_page_run(struct api_exchange *x, struct api_monitors *monitors,
                      enum api_statement statement, const struct api_datum *parameters,
                      api_row_reader *row);
bool api_row_page_write(struct api_exchange *x);
void api_row_page_drop(struct api_exchange *x);
#define API_LISTS_ROWS                                                                             \
    .place = API_STORE_READS, .state = sizeof(struct api_row_page), .write = api_row_page_write,   \
    .drop = api_row_page_drop

/* Begins a row; false if the page is full. */
bool api_row_page_add(struct api_row_page *page);
