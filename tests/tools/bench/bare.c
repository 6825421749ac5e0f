/* A bare libmicrohttpd server, the baseline of /kl_div: reads and drops a body, answers with a
 * constant; with any argument, by the header fields that kldivd sends. Prints its port. */
#include <microhttpd.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static char answer[] = "{\"loss\":0.04095267979964768,\"shape\":[],\"dtype\":\"float64\","
                       "\"reduction\":\"batchmean\",\"warnings\":[]}\n";

static bool has_fields;

static void add_fields(struct MHD_Response *response)
{
    static const char *const fields[][2] = {
        {"X-Request-Id", "93a272f5fac47311"},
        {"Cache-Control", "no-store"},
        {"Server-Timing", "read;dur=0.013, decode;dur=0.013, compute;dur=0.004, encode;dur=0.003"},
        {"X-Content-Type-Options", "nosniff"},
        {"Keep-Alive", "timeout=75"}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        MHD_add_response_header(response, fields[i][0], fields[i][1]);
    MHD_set_response_options(response, MHD_RF_SEND_KEEP_ALIVE_HEADER, MHD_RO_END);
}

static enum MHD_Result handle(void *unused, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *body,
                              size_t *size, void **context)
{
    static int seen;
    (void)unused, (void)url, (void)method, (void)version, (void)body;
    if (!*context || *size) {
        *context = &seen;
        *size = 0;
        return MHD_YES;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(sizeof answer - 1, answer, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "application/json");
    if (has_fields)
        add_fields(response);
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

int main(int argc, char **argv)
{
    (void)argv;
    has_fields = argc > 1;
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO, 0, NULL, NULL, handle, NULL,
                         MHD_OPTION_THREAD_POOL_SIZE, 2u, MHD_OPTION_END);
    if (!daemon)
        return 1;
    printf("%d\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    pause();
    return 0;
}
