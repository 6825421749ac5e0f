/* api_paged: a GET of rows of the store, a page of them; begins the state of each. */
#pragma once

#include "api/monitors/http/pagination.h"
#include "api/monitors/state/transaction.h"

struct api_paged {
    struct api_store_job job;
    struct api_exchange *x;
    struct api_pagination page;
    bool more; /* rows follow this page */
};

/* Reads the query and `check`s it, unless that is NULL, and has the store's thread `read`; then goes on after
 * that. `size` is that of the state, `known` the names of other parameters, NULL at the end. */
bool api_paged_prepare(struct api_exchange *x, size_t size, const char *const *known,
                       bool (*check)(struct api_paged *paged),
                       bool (*read)(struct api_store_job *job, struct api_monitors *monitors));

/* Frees the state, what it adds apart. */
void api_paged_end(struct api_exchange *x);
