#include "tests/suites/store/load.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* FIRST: timestamp of post 0; each later one is a second later, which tells the windows of batches
 * apart. */
enum { FIRST = 1600000000 };

static const char *const names[GROUPS] = {"batch", "seconds", "count"};

static int group_of(long post) { return (int)(post % GROUPS); }
static bool has_key(long post) { return post / GROUPS % 2 == 0; }
static long rows_of(long post) { return 1 + post % 4; }

void load_init(struct load *load)
{
    *load = (struct load){.posts = calloc(MAX_POSTS, sizeof(struct post))};
    cr_assert(load->posts);
    for (size_t i = 0; i < POSTERS; i++)
        load->posters[i] = (struct poster){.load = load, .pending = -1};
}

void load_free(struct load *load) { free(load->posts); }

void load_define(const struct server *server)
{
    static const char *const windows[GROUPS] = {"batch", "1s,0s", "50"};
    for (int i = 0; i < GROUPS; i++) {
        char target[100];
        snprintf(target, sizeof target, "/monitors/%s?min_observations=1&window=%s", names[i],
                 windows[i]);
        free(expect_status(server, "PUT", target, "a,b,c\n1,x,0.5\n2,y,1.5\n3,z,\n4,x,7\n", 201));
    }
}

/* ---- Posting */

static void write_request(struct api_buffer *to, long post)
{
    char target[100], fields[60] = "", body[200] = "a,b,c\n";
    size_t used = strlen(body);
    snprintf(target, sizeof target, "/monitors/%s/observations", names[group_of(post)]);
    if (group_of(post) == 0)
        snprintf(target + strlen(target), 40, "?timestamp=%ld", FIRST + post);
    if (has_key(post))
        snprintf(fields, sizeof fields, "Idempotency-Key: %ld\r\n", post);
    for (long row = 0; row < rows_of(post); row++)
        used += (size_t)sprintf(body + used, "%ld,%c,%ld\n", 1 + row, 'x' + (int)(post % 3), row);
    write_post(to, target, fields, body);
}

/* Takes down what the answer says; false if there is none. */
static bool note(struct load *load, long post, const struct response *response)
{
    struct post *noted = &load->posts[post];
    noted->fate = UNKNOWN;
    atomic_fetch_add(&load->lost, response->status == 0 && load->redials);
    if (response->status == 0)
        return false;
    atomic_fetch_add(&load->replayed, response->replayed);
    atomic_fetch_add(&load->refused, response->status != 200);
    if (response->status != 200)
        return false;
    noted->fate = STORED;
    for (const char *p = response->body; (p = strstr(p, "\"window\":{\"id\":")); p++) {
        long window = atol(p + strlen("\"window\":{\"id\":"));
        cr_expect(noted->window == 0 || noted->window == window, "post %ld: %ld, %ld", post,
                  noted->window, window);
        noted->window = window;
    }
    return true;
}

/* Connects again; false if nobody listens any more. */
static bool redial(struct poster *poster)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)poster->load->server->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    close(poster->fd);
    poster->fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(poster->fd, (struct sockaddr *)&address, sizeof address) == 0;
}

static void *post_all(void *argument)
{
    struct poster *poster = argument;
    struct load *load = poster->load;
    struct api_buffer request = {0};
    struct response response = {0};
    bool good = true;
    while (good && !atomic_load(&load->stop) && (!load->redials || redial(poster))) {
        long post = poster->pending >= 0 ? poster->pending : atomic_fetch_add(&load->n, 1);
        cr_assert_lt(post, MAX_POSTS);
        write_request(&request, post);
        converse_on(poster->fd, &request, &response);
        good = note(load, post, &response);
        poster->pending = !good && has_key(post) ? post : -1;
    }
    api_buffer_free(&request);
    api_buffer_free(&response.bytes);
    close(poster->fd);
    return NULL;
}

void load_begin(struct load *load, const struct server *server)
{
    load->server = server;
    atomic_store(&load->stop, false);
    for (size_t i = 0; i < POSTERS; i++)
        load->posters[i].fd = dial(server);
    for (size_t i = 0; i < POSTERS; i++) {
        struct poster *poster = &load->posters[i];
        cr_assert_eq(pthread_create(&poster->thread, NULL, post_all, poster), 0);
    }
}

void load_end(struct load *load)
{
    for (size_t i = 0; i < POSTERS; i++)
        pthread_join(load->posters[i].thread, NULL);
}

void load_settle(struct load *load, const struct server *server)
{
    struct api_buffer request = {0};
    struct response response = {0};
    for (size_t i = 0; i < POSTERS; i++) {
        struct poster *poster = &load->posters[i];
        if (poster->pending < 0)
            continue;
        int fd = dial(server);
        write_request(&request, poster->pending);
        converse_on(fd, &request, &response);
        cr_expect(note(load, poster->pending, &response), "%d", response.status);
        poster->pending = -1;
        close(fd);
    }
    api_buffer_free(&request);
    api_buffer_free(&response.bytes);
}

/* ---- Book-keeping */

struct bounds load_bounds(const struct load *load, int group)
{
    struct bounds bounds = {0, 0};
    for (long post = 0; post < load->n; post++) {
        if (group_of(post) != group || load->posts[post].fate == UNSENT)
            continue;
        bounds.max += (double)rows_of(post);
        bounds.min += load->posts[post].fate == STORED ? (double)rows_of(post) : 0;
    }
    return bounds;
}

static double total_of(const char *metrics, const char *group, char column)
{
    char name[100];
    snprintf(name, sizeof name, "\nkldiv_monitor_observations_total{group=\"%s\",monitor=\"%c\"} ",
             group, column);
    const char *line = strstr(metrics, name);
    return line ? atof(line + strlen(name)) : -1;
}

void load_expect(const struct load *load, const struct server *server)
{
    char *metrics = expect_status(server, "GET", "/metrics", NULL, 200);
    for (int group = 0; group < GROUPS; group++) {
        struct bounds bounds = load_bounds(load, group);
        double first = total_of(metrics, names[group], 'a');
        cr_expect(first >= bounds.min && first <= bounds.max, "%s: %g of %g to %g", names[group],
                  first, bounds.min, bounds.max);
        for (int i = 1; i < COLUMNS; i++)
            cr_expect_eq(total_of(metrics, names[group], (char)('a' + i)), first);
    }
    free(metrics);
}

/* Checks the windows of a batch: one for each post that is stored, none twice. */
static void expect_batches(const struct load *load, const struct database *database)
{
    static const char query[] =
        "SELECT start_at / 1000000, w.id, n FROM kldiv_windows w JOIN kldiv_monitors m"
        " ON m.id = w.monitor WHERE group_name = 'batch' AND name = 'b'";
    unsigned char *seen = calloc(MAX_POSTS, 1);
    sqlite3 *sqlite;
    sqlite3_stmt *statement;
    cr_assert_eq(sqlite3_open(database->path, &sqlite), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(sqlite, query, -1, &statement, NULL), SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        long post = (long)sqlite3_column_int64(statement, 0) - FIRST;
        cr_assert(post >= 0 && post < load->n && group_of(post) == 0, "%ld", post);
        const struct post *noted = &load->posts[post];
        cr_expect_eq(seen[post]++, 0, "post %ld is stored twice", post);
        cr_expect_eq(sqlite3_column_int64(statement, 2), rows_of(post));
        cr_expect(noted->window == 0 || noted->window == sqlite3_column_int64(statement, 1));
    }
    sqlite3_finalize(statement);
    sqlite3_close(sqlite);
    for (long post = 0; post < load->n; post += GROUPS)
        cr_expect(load->posts[post].fate != STORED || seen[post], "post %ld is lost", post);
    free(seen);
}

double load_rows(const struct database *database, int group)
{
    char query[200];
    snprintf(query, sizeof query,
             "SELECT max(observations) FROM kldiv_monitors WHERE group_name = '%s'", names[group]);
    return ask_file(database, query);
}

void load_expect_sound(const struct database *database)
{
    /* Each counts what contradicts itself. */
    static const char *const none[] = {
        "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
        "SELECT count(*) FROM kldiv_monitors m WHERE observations <>"
        " (SELECT sum(n) FROM kldiv_windows WHERE monitor = m.id)",
        "SELECT count(*) FROM kldiv_windows WHERE n <> count_of(counts)",
        "SELECT count(*) FROM kldiv_monitors m WHERE last_window <>"
        " (SELECT max(id) FROM kldiv_windows WHERE monitor = m.id)",
        "SELECT count(*) - 3 FROM (SELECT DISTINCT group_name, observations FROM kldiv_monitors)"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        cr_expect_eq(ask_file(database, none[i]), 0, "%s", none[i]);
}

void load_expect_file(const struct load *load, const struct database *database)
{
    load_expect_sound(database);
    for (int group = 0; group < GROUPS; group++) {
        struct bounds bounds = load_bounds(load, group);
        double rows = load_rows(database, group);
        cr_expect(rows >= bounds.min && rows <= bounds.max, "%s: %g of %g to %g", names[group],
                  rows, bounds.min, bounds.max);
    }
    expect_batches(load, database);
}
