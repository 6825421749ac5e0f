/* Parameters of lists: how many, from where on, between which times. */
#pragma once

#include "api/request/exchange.h"

#include <jansson.h>

/* api_pagination: `cursor` is borrowed from the parameters; "" for the first page. */
struct api_pagination {
    json_t *parameters;
    size_t limit; /* 100 by default */
    const char *cursor;
    int64_t from, to;
};

/* Reads the query; `known` lists other parameters that are valid, NULL at the end. */
bool api_pagination_read(struct api_pagination *page, const char *query, const char *const *known,
                         struct api_problem *problem);
void api_pagination_free(struct api_pagination *page);

/* A parameter's text, NULL if it is absent or empty. */
const char *api_pagination_text(const struct api_pagination *page, const char *name);

/* 403, if the parameter `group` names one that the request's token is not for. */
bool api_pagination_check_group(const struct api_pagination *page, struct api_exchange *x);

/* Reads a parameter that is a time; leaves *time as it is without it. Fails with timestamp_invalid. */
bool api_pagination_time(const struct api_pagination *page, const char *name, int64_t *time,
                         struct api_problem *problem);

/* Reads exactly `n` whole numbers with underscores between; false if there are others. */
bool api_pagination_numbers(const char *text, int64_t *numbers, size_t n);

/* Reads the cursor, which is `n` numbers; on the first page `numbers` stays as it is. Fails with cursor_invalid. */
bool api_pagination_cursor(const struct api_pagination *page, int64_t *numbers, size_t n,
                           struct api_problem *problem);
bool api_pagination_fail(struct api_problem *problem);
