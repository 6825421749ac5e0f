#include "server/reload.h"

#include "api/text/clock.h"
#include "server/connection/tls.h"
#include "server/listen/service_manager.h"
#include "server/notify/notify.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"
#include "server/watch_files.h"

#include <time.h>

static bool read_tokens(const struct srv_options *options, struct api_tokens *tokens,
                        struct srv_file_error *error)
{
    static const char option[] = "--auth-token-file";
    const char *path = options->auth_token_file;
    struct srv_text text;
    struct api_parse_error parse_error;
    if (!srv_text_read(&text, option, path, error))
        return false;
    bool good = api_tokens_read(tokens, text.data, text.size, &parse_error);
    srv_text_free(&text);
    return good ||
           (parse_error.line ? srv_file_fail(error, option, "%s, line %zu: %s", path,
                                             parse_error.line, parse_error.what)
                             : srv_file_fail(error, option, "%s: %s", path, parse_error.what));
}

/* Tells that a file could not be read again. */
static void tell(const struct srv_file_error *error)
{
    srv_log(SRV_LOG_WARNING,
            "a file is at fault, and its previous contents stay in use option=%s error=%s",
            error->option, error->text);
    srv_metrics_reload(false);
}

static void log_tokens(const struct srv_options *options, struct api_tokens *tokens)
{
    size_t n = api_tokens_count(tokens);
    srv_log(SRV_LOG_INFO, n == 1 ? "read %zu token file=%s" : "read %zu tokens file=%s", n,
            options->auth_token_file);
    if (api_tokens_weak(tokens) > 0)
        srv_log(SRV_LOG_WARNING,
                "%zu of the tokens are shorter than 16 characters and can be guessed",
                api_tokens_weak(tokens));
}

static void log_certificate(const struct srv_options *options)
{
    char text[40];
    struct tm tm;
    time_t until = srv_tls_until();
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&until, &tm));
    srv_log(until < time(NULL) ? SRV_LOG_WARNING : SRV_LOG_INFO,
            "read the certificate file=%s valid_until=%s", options->tls_cert, text);
}

bool srv_files_read(const struct srv_options *options, struct api_tokens *tokens, FILE *errors)
{
    struct srv_file_error error;
    if (!options->tls_cert != !options->tls_key) {
        fprintf(errors, "kldivd: --tls-cert, --tls-key: one is given without the other\n");
        return false;
    }
    if (options->auth_token_file && !tokens) {
        fprintf(errors, "kldivd: --auth-token-file: there is no memory for tokens\n");
        return false;
    }
    if ((tokens && !read_tokens(options, tokens, &error)) ||
        (options->tls_cert && !srv_tls_set(options->tls_cert, options->tls_key, &error))) {
        fprintf(errors, "kldivd: %s: %s\n", error.option, error.text);
        return false;
    }
    return true;
}

void srv_files_log(const struct srv_options *options, struct api_tokens *tokens)
{
    if (tokens)
        log_tokens(options, tokens);
    if (options->tls_cert)
        log_certificate(options);
}

/* Reads tokens, certificate and key again. */
static void read_again(const struct srv_options *options, struct api_tokens *tokens)
{
    struct srv_file_error error;
    srv_metrics_reload(srv_log_reopen());
    if (!tokens && !options->tls_cert && !options->notify && !srv_log_file())
        srv_log(SRV_LOG_INFO, "SIGHUP: there is no file to read again");
    if (tokens && read_tokens(options, tokens, &error))
        log_tokens(options, tokens);
    else if (tokens)
        tell(&error);
    if (options->tls_cert && srv_tls_set(options->tls_cert, options->tls_key, &error))
        log_certificate(options);
    else if (options->tls_cert)
        tell(&error);
    if (!srv_notify_reload(options, &error))
        tell(&error);
}

void srv_files_watch(const struct srv_options *options)
{
    const char *files[SRV_MAX_WATCHED] = {options->auth_token_file, options->tls_cert,
                                          options->tls_key};
    enum { OWN = 3 };
    srv_watch_files(files,
                    OWN + srv_notify_list_files(options, files + OWN, SRV_MAX_WATCHED - OWN));
}

void srv_reload(const struct srv_options *options, struct api_tokens *tokens)
{
    srv_manager_tell("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(api_seconds() * 1e6));
    read_again(options, tokens);
    srv_files_watch(options);
    srv_manager_tell("READY=1");
}
