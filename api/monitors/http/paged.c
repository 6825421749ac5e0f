#include "api/monitors/http/paged.h"

#include "api/monitors/http/request.h"

#include <stdlib.h>

bool api_paged_prepare(struct api_exchange *x, size_t size, const char *const *known,
                       bool (*check)(struct api_paged *paged),
                       bool (*read)(struct api_store_job *job, struct api_monitors *monitors))
{
    struct api_paged *paged = api_request_state(x, size);
    if (!paged)
        return false;
    if (!paged->x) {
        paged->x = x;
        paged->job = (struct api_store_job){.is_concurrent = true, .read_back = read};
        bool good = api_pagination_read(&paged->page, x->request.query, known, &x->problem) &&
                    (!check || check(paged));
        x->work = good ? &paged->job : NULL;
        return good;
    }
    api_job_finished(x, &paged->job);
    return !x->problem.code;
}

void api_paged_end(struct api_exchange *x)
{
    struct api_paged *paged = x->state;
    api_pagination_free(&paged->page);
    free(paged);
}
