/* Servers that end under load, one way or the other: what was acknowledged is stored. */
#include "tests/suites/faults/client.h"
#include "tests/suites/store/load.h"
#include "tests/suites/support/crowd.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 30 };
#else
enum { ROUNDS = 100 };
#endif

/* Each round loads a server for up to 0.15 s, and kills it. */
Test(store_killed, loses_nothing_acknowledged_when_it_is_killed)
{
    struct database database = database_new();
    struct load load;
    load_init(&load);
    for (int round = 0; round < ROUNDS; round++) {
        struct server server = store_start(&database, NULL);
        if (round == 0)
            load_define(&server);
        load_expect(&load, &server);
        load_begin(&load, &server);
        wait_ms(10 + round * 37 % 140);
        server_kill(&server, false);
        load_end(&load);
        cr_expect_eq(load.refused, 0);
    }
    struct server server = store_start(&database, NULL);
    load_settle(&load, &server);
    load_expect(&load, &server);
    cr_expect_eq(server_stop(&server, false), 0);
    load_expect_file(&load, &database);
    cr_expect_gt(load.replayed, 0);
    printf("(%d kills, %ld posts, %ld replayed)\n", ROUNDS, load.n, load.replayed);
    load_free(&load);
    database_free(&database);
}

/* DRAINS: servers that end by SIGTERM. */
enum { DRAINS = 10 };

/* Each round goes on with the same file. */
Test(store_killed, stores_what_it_accepts_while_it_drains)
{
    struct database database = database_new();
    struct load load;
    load_init(&load);
    load.redials = true;
    for (int round = 0; round < DRAINS; round++) {
        struct server server = store_start(&database, NULL);
        if (round == 0)
            load_define(&server);
        load_begin(&load, &server);
        wait_ms(100 + round * 7);
        cr_expect_eq(server_stop(&server, false), 0);
        load_end(&load);
        cr_expect_eq(load.lost, 0, "%ld of %ld are lost", load.lost, load.n);
        cr_expect_eq(load.refused, 0);
        load_expect_file(&load, &database);
    }
    cr_expect_gt(load.n, DRAINS * POSTERS);
    load_free(&load);
    database_free(&database);
}

/* ---- Clients that leave */

/* LEAVING: clients that leave while the store waits for its disk. */
enum { LEAVING = 100 };

/* True once so many requests are in flight, that for the metrics among them, and none waits for a job thread. */
static bool is_in_flight(const struct server *server, double n)
{
    for (double end = now_seconds() + PATIENCE; now_seconds() < end; wait_ms(10))
        if (metric(server, "\nkldiv_http_requests_in_flight ") == n &&
            metric(server, "\nkldiv_jobs_pending ") == 0)
            return true;
    return false;
}

Test(store_killed, clients_that_leave_while_the_store_waits)
{
    static const struct kind slow = {"fdatasync", FAULT_FILE_SYNC, 0};
    static const char body[] = "{\"values\": [1]}";
    struct database database = database_new();
    struct api_buffer request = {0};
    int sockets[LEAVING];
    faults_preload();
    struct server server = store_start(&database, NULL);
    free(expect_status(&server, "PUT", "/monitors/g/m?window=1000000",
                       "{\"reference\": {\"values\": [1, 2, 3]}}", 201));
    api_append_format(&request,
                      "POST /monitors/g/m/observations HTTP/1.1\r\nHost: a\r\n"
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                      strlen(body), body);
    api_append(&request, "", 1);
    for (int round = 0; round < 3; round++) {
        faults_arm(&slow, 0, true);
        dial_many(&server, sockets, LEAVING, request.data);
        cr_expect(is_in_flight(&server, LEAVING + 1));
        wait_ms(1000); /* until those that were read last wait for the store, too */
        close_many(sockets, LEAVING);
        wait_ms(round * 400); /* the server notices, or does not yet */
        cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
        faults_disarm();
        free(expect_status(&server, "POST", "/monitors/g/m/observations", body, 200));
        /* The server has room for 156 connections: the next would be refused beside those of this round. */
        cr_expect(is_in_flight(&server, 1));
    }
    double end = now_seconds() + PATIENCE;
    while (metric(&server, "\nkldiv_memory_reserved_bytes ") !=
               metric(&server, "\nkldiv_memory_retained_bytes ") &&
           now_seconds() < end)
        wait_ms(20); /* until the last answer is let go */
    cr_expect_lt(now_seconds(), end);
    cr_expect_eq(server_stop(&server, false), 0);
    double stored = ask_file(&database, "SELECT sum(count_of(counts)) FROM kldiv_windows");
    cr_expect_eq(stored, 3 * (LEAVING + 1), "%g", stored);
    faults_unload();
    api_buffer_free(&request);
    database_free(&database);
}
