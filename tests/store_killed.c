/* Servers that end under load, one way or the other: what was acknowledged is stored. */
#include "tests/crowd.h"
#include "tests/store_load.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 30 };
#else
enum { ROUNDS = 100 };
#endif

/* Each round loads a server for up to 0.15 s, and kills it. */
Test(server, loses_nothing_acknowledged_when_it_is_killed)
{
    struct place place = place_new();
    struct load load;
    load_init(&load);
    for (int round = 0; round < ROUNDS; round++) {
        struct server server = store_start(&place, NULL);
        if (round == 0)
            load_define(&server);
        load_expect(&load, &server);
        load_begin(&load, &server);
        wait_ms(10 + round * 37 % 140);
        server_kill(&server, false);
        load_end(&load);
        cr_expect_eq(load.refused, 0);
    }
    struct server server = store_start(&place, NULL);
    load_settle(&load, &server);
    load_expect(&load, &server);
    cr_expect_eq(server_stop(&server, false), 0);
    load_expect_file(&load, &place);
    cr_expect_gt(load.replayed, 0);
    printf("(%d kills, %ld posts, %ld replayed)\n", ROUNDS, load.n, load.replayed);
    load_free(&load);
    place_free(&place);
}
