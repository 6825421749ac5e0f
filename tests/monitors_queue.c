/* Requests that wait for the store: how many may, and that each is told once. */
#include "api/monitors/submit.h"
#include "tests/monitors_support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* MOST: requests that may wait. */
enum { MOST = 4000 };

static atomic_size_t resumed;

static void resume(struct api_exchange *x)
{
    (void)x;
    atomic_fetch_add(&resumed, 1);
}

/* Brings a request to where it waits for the store. */
static bool begin(struct api_exchange *x, const struct question *question,
                  const struct api_service *service, char *body)
{
    *x = question_exchange(question, service, strlen(body));
    x->resume = resume;
    cr_assert(api_begin(x));
    x->request.body = body;
    x->request.body_size = strlen(body);
    cr_assert_not(api_handle(x, HUGE_VAL));
    cr_assert(x->work);
    return api_wait(x);
}

static const char *header_of(const struct api_exchange *x, const char *name)
{
    for (size_t i = 0; i < x->reply.n_headers; i++)
        if (strcmp(x->reply.headers[i].name, name) == 0)
            return x->reply.headers[i].value;
    return "";
}

Test(monitors_queue, is_bounded_and_loses_nothing)
{
    static const struct question question = {.path = "/monitors/g/m/observations"};
    static char body[64] = "{\"counts\":[1,2]}";
    struct api_service service = monitors_new(10);
    struct api_exchange *waiting = calloc(MOST, sizeof *waiting), refused;
    cr_assert(waiting);
    monitors_expect(&service, "PUT /monitors/g/m?window=3600s",
                    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5,5]}}", 201);
    api_monitors_stop(service.monitors);
    for (size_t i = 0; i < MOST; i++)
        cr_assert(begin(&waiting[i], &question, &service, body));
    cr_expect_not(begin(&refused, &question, &service, body));
    cr_expect_eq(refused.reply.status, 503);
    cr_expect_str_eq(refused.reply.code, "overloaded");
    cr_expect_str_eq(header_of(&refused, "Retry-After"), "1");
    cr_expect_eq(atomic_load(&resumed), 0);
    api_end(&refused);

    cr_assert(api_monitors_start(service.monitors, NULL));
    for (int i = 0; i < 1000 && atomic_load(&resumed) < MOST; i++)
        usleep(10000);
    cr_assert_eq(atomic_load(&resumed), MOST);
    for (size_t i = 0; i < MOST; i++) {
        cr_assert(api_handle(&waiting[i], HUGE_VAL));
        cr_expect_eq(waiting[i].reply.status, 200);
        api_end(&waiting[i]);
    }
    json_t *current = monitors_get(&service, "GET /monitors/g/m/windows/current", NULL, 200);
    cr_expect_eq(number_at(current, "n"), 3 * MOST);
    json_decref(current);
    free(waiting);
    monitors_end(&service);
}
