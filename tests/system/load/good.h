/* Good clients and probes, whose waits are measured. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Waits of a client that repeats its call every 50 ms until it is answered 200. */
enum good_role { PROBE_ADMIN, PROBE_MAIN, SMALL_NEW, SMALL_KEPT, ROWS, GOOD_ROLES };
struct good_result {
    const char *name;
    double bound, limit;                 /* seconds: as promised; of noisy machines */
    bool is_try;                         /* the bounds are those of a single try, with any answer */
    unsigned long calls, tries, refused; /* answered 200; in all; answered 503 */
    unsigned long unanswered, above;     /* above: of the bound */
    int worst;                           /* another status, or 0 */
    double worst_try, worst_wait;        /* seconds: one answer; until 200 */
};

/* Starts threads of each role; false if it cannot. */
bool good_start(int port, int admin_port);

/* Lets all finish their calls, and fills GOOD_ROLES results. */
void good_stop(struct good_result *results);
