#include "server/config/options.h"

#include "api/json/fields.h"
#include "api/regions/object.h"
#include "api/request/access.h"
#include "api/store/location.h"
#include "api/store/store.h"
#include "api/text/hosts.h"
#include "api/text/nearest.h"
#include "api/text/url.h"
#include "server/net/client_address.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const formats[] = {"text", "json", NULL};
/* Words of switches, off and on by turns. */
static const char *const switches[] = {"off", "on", "0", "1", "false", "true", "no", "yes", NULL};
static const char *const exposed[] = {"monitors", "groups", NULL};
static const char *const fallbacks[] = {"none", "memory", NULL};
static const char *const levels[] = {"error", "warning", "info", "debug", NULL};
static const char valid[] = "a valid value";

/* Reads a switch, in any case; a flag has no text. */
static bool read_switch(const struct api_value *value, union api_field_value *to,
                        struct kl_problem *problem)
{
    size_t i = 0;
    (void)problem;
    while (value->text && switches[i] && strcasecmp(value->text, switches[i]) != 0)
        i++;
    to->boolean = !value->text || i % 2;
    return switches[i];
}

/* Reads "500ms", "2s" or "1m" as seconds, up to a day. */
static bool read_duration(const struct api_value *value, union api_field_value *to,
                          struct kl_problem *problem)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}};
    size_t digits = strspn(value->text, "0123456789");
    (void)problem;
    to->number = 0;
    for (size_t i = 0; digits > 0 && i < sizeof units / sizeof *units; i++)
        if (strcmp(value->text + digits, units[i].name) == 0)
            to->number = strtod(value->text, NULL) * units[i].seconds;
    return to->number > 0 && to->number <= 86400;
}

/* Defines readers of texts that are kept. */
#define READ_TEXT(kind, is_valid)                                                                  \
    static bool read_##kind(const struct api_value *value, union api_field_value *to,              \
                            struct kl_problem *problem)                                            \
    {                                                                                              \
        (void)problem;                                                                             \
        to->text = value->text;                                                                    \
        return is_valid;                                                                           \
    }
READ_TEXT(text, true)
READ_TEXT(file, to->text[0] && strcmp(to->text, "-") != 0)
READ_TEXT(hosts, api_hosts_valid(to->text))
READ_TEXT(origin, api_origin_is_valid(to->text))
READ_TEXT(store, api_store_is_location(to->text))
READ_TEXT(prefix, api_object_prefix_is_valid(to->text))
READ_TEXT(url, !api_url_reason(to->text))
READ_TEXT(proxies, srv_proxies_are_valid(to->text))

/* MAX_BYTES: the largest number below 2^62: a product with 4 does not overflow. */
#define MAX_BYTES (0x1p62 - 512)
#define FIELD(name) API_FIELD(struct srv_options, name)
#define TEXT(reader, initial) .read = (reader), .fallback = (initial), .expected = valid
#define FILE_NAME .read = read_file, .expected = "the name of a file"
#define WORDS(list, initial) .words = (list), .fallback = (initial), .expected = valid
#define SWITCH(initial)                                                                            \
    .read = read_switch, .words = switches, .fallback = (initial),                                 \
    .expected = "one of 1 true yes on, or 0 false no off"
#define FLAG .read = read_switch
#define WHOLE(initial, from, to)                                                                   \
    .kind = API_WHOLE, .fallback = (initial), .min = (from), .max = (to)
#define BYTES(initial, from)                                                                       \
    .kind = API_BYTES, .fallback = (initial), .min = (from), .max = MAX_BYTES, .expected = valid
#define HELP(metavariable_, help_) .metavariable = (metavariable_), .help = (help_)
/* --name, and KLDIV_NAME in the environment. Flags without a metavariable take no value, but where they have words they
 * may have one in the environment. --listen may be given several times, and with commas between. */
static const struct api_field rows[] = {
    {"listen", FIELD(listen), .fallback = "127.0.0.1:8080",
     HELP("ADDRESS", "address to listen on: HOST:PORT (port 0 selects a free port; [::]:8080 is "
                     "IPv6 and IPv4), unix:PATH, or unix:@NAME (abstract); repeat the option, or "
                     "separate addresses by commas without blanks")},
    {"listen-mode", FIELD(listen_mode), .kind = API_OCTAL, .fallback = "660", .max = 0777,
     .expected = valid, HELP("MODE", "permissions of the sockets at unix:PATH, in octal")},
    {"admin-listen", FIELD(admin_listen), TEXT(read_text, NULL),
     HELP("ADDRESS", "also serve health checks and metrics, and nothing else, at this address")},
    {"port-file", FIELD(port_file), FILE_NAME,
     HELP("FILE", "write the port of the first HOST:PORT to this file once listening")},
    {"threads", FIELD(threads), WHOLE("0", 0, 1024),
     HELP("N", "threads for computing; 0: one for each CPU this process may use")},
    {"http-threads", FIELD(http_threads), WHOLE("0", 0, 1024),
     HELP("N", "threads for connections; 0: one for each CPU this process may use")},
    {"max-body", FIELD(max_body), BYTES("1G", 1),
     HELP("BYTES", "largest request body; K, M and G are powers of 1024")},
    {"max-memory", FIELD(max_memory), BYTES("0", 0),
     HELP("BYTES", "memory for bodies, tensors and responses of all requests, and for monitors; 0: "
                   "85 % of the cgroup's limit or of RAM (less in small containers), at most 4G")},
    {"max-connections", FIELD(max_connections), WHOLE("1000", 1, 100000),
     HELP("N", "open connections; beyond this the slowest is closed for a new one, or the new one "
               "is answered 503")},
    {"timeout", FIELD(timeout), WHOLE("75", 1, 86400),
     HELP("SECONDS", "close connections that are idle for this long; a shorter --timeout also "
                     "lowers the limits for a header (10), for a body before its minimum rate "
                     "applies (10), and for a response that is not read (30)")},
    {"request-timeout", FIELD(request_timeout), WHOLE("0", 0, 86400),
     HELP("SECONDS", "end requests that take longer, from their first byte to the end of the "
                     "response; 0: no limit")},
    {"drain-delay", FIELD(drain_delay), WHOLE("0", 0, 86400),
     HELP("SECONDS", "after SIGTERM, keep accepting for this long while /readyz answers 503")},
    {"drain-timeout", FIELD(drain_timeout), WHOLE("30", 0, 86400),
     HELP("SECONDS", "then wait at most this long for requests to finish")},
    {"store", FIELD(store), TEXT(read_store, "memory"),
     HELP("STORE",
          "where drift monitors are kept: memory, sqlite:PATH, or postgresql://HOST/DATABASE")},
    {"store-fallback", FIELD(store_fallback), WORDS(fallbacks, "none"),
     HELP("WORD", "if the store's file does not exist and its folder cannot be written: none "
                  "exits, memory keeps monitors in memory")},
    {"max-store", FIELD(max_store), BYTES("0", 0),
     HELP("BYTES", "once the store has this many bytes, answer 503 store_full to requests that "
                   "would make it grow; 0: no limit")},
    {"max-monitors", FIELD(max_monitors), WHOLE("10000", 1, 1000000),
     HELP("N", "maximum number of drift monitors")},
    {"monitor-metrics", FIELD(monitor_metrics), WORDS(exposed, "monitors"),
     HELP("WORD", "series in /metrics: monitors, some 17 for each, or groups, 4 for each: how many "
                  "of its monitors are in each state")},
    {"ready-needs-store", FIELD(ready_needs_store), SWITCH(NULL),
     HELP(NULL, "answer 503 at /readyz while the store cannot be written")},
    {"notify", FIELD(notify), FILE_NAME,
     HELP("FILE", "tell the receivers in this file, a JSON array, of changes of monitors' states; "
                  "it is read again when it changes, and at SIGHUP")},
    {"public-url", FIELD(public_url), TEXT(read_url, NULL),
     HELP("URL", "where people reach this server, for links in notifications")},
    {"shared-memory", FIELD(shared_memory), TEXT(read_prefix, NULL),
     HELP("PREFIX", "let clients register shared memory objects (shm_open) whose names start with "
                    "PREFIX; PREFIX may contain a slash only at its start; / allows every object")},
    {"cors-origin", FIELD(cors_origin), TEXT(read_origin, NULL),
     HELP("ORIGIN", "let pages of this origin, scheme://host[:port] as browsers send it, read "
                    "responses; * is any")},
    {"allowed-hosts", FIELD(allowed_hosts), TEXT(read_hosts, NULL),
     HELP("LIST", "host names that requests may use: NAME, *.DOMAIN or ADDRESS, with or without "
                  ":PORT, separated by commas; requests with other names are answered 421")},
    {"trusted-proxies", FIELD(trusted_proxies), TEXT(read_proxies, NULL),
     HELP("LIST",
          "proxies whose X-Forwarded-For names the client, for the log: addresses, networks such "
          "as 10.0.0.0/8, and unix for clients of unix sockets, separated by commas; at most 64")},
    {"auth-token-file", FIELD(auth_token_file), FILE_NAME,
     HELP("FILE", "require a bearer token from this file, except for health checks and the files "
                  "of the pages; a line is TOKEN, NAME TOKEN, NAME SCOPES TOKEN, or one of the "
                  "last two with groups=PATTERNS before TOKEN; it is read again when it changes, "
                  "and at SIGHUP")},
    {"tls-cert", FIELD(tls_cert), FILE_NAME,
     HELP("FILE", "serve only HTTPS, with this certificate chain in PEM; it is read again when it "
                  "changes, and at SIGHUP")},
    {"tls-key", FIELD(tls_key), FILE_NAME,
     HELP("FILE", "private key of the certificate, in PEM; it is read again when it changes, and "
                  "at SIGHUP")},
    {"log-format", FIELD(log_format), WORDS(formats, "text"), HELP("FORMAT", "text or json")},
    {"log-level", FIELD(log_level), WORDS(levels, "info"),
     HELP("LEVEL", "error, warning, info or debug; requests are logged at info")},
    {"audit-log", FIELD(audit_log), FILE_NAME,
     HELP("FILE", "append the lines of requests that change something, kind=audit, to this file "
                  "instead of the log, or write them to stderr, whatever --log-level is; SIGHUP "
                  "opens the file again; without it they are lines of the log at info")},
    {"log-slow", FIELD(log_slow), TEXT(read_duration, NULL),
     HELP("TIME", "also log each request that takes longer, such as 500ms, 2s or 1m, at warning, "
                  "with where its time went")},
    {"simd", FIELD(simd), TEXT(read_text, "auto"),
     HELP("SET", "instruction set: auto, avx512, avx2, neon or generic")},
    {"drop-privileges", FIELD(drop_privileges), SWITCH("on"),
     HELP(
         "SWITCH",
         "on or off: once listening, give up all capabilities, and gain none by running programs")},
    {"seccomp", FIELD(seccomp), SWITCH("on"),
     HELP("SWITCH", "on or off: once listening, refuse system calls that serving does not need")},
    {"migrate", FIELD(migrate), FLAG,
     HELP(NULL, "bring the schema of --store up to date, print what that changed, and exit 0, or 1 "
                "if it failed and changed nothing; serve nothing")},
    {"backup", FIELD(backup), FILE_NAME,
     HELP(
         "FILE",
         "copy the store of --store, sqlite:PATH, to this file, which must not exist, also "
         "while a server of this version has it open; print its bytes and the seconds, and exit 0, "
         "or 1 if it failed and made no file; serve nothing")},
    {"healthcheck", FIELD(healthcheck), FLAG,
     HELP(NULL, "request /readyz at --admin-listen or the first --listen, as given here or to "
                "process 1; exit 0 if it is ready, else 1")},
    {"version", FIELD(version), FLAG, HELP(NULL, "print the version and exit")},
    {"help", FIELD(help), FLAG, HELP(NULL, "print this and exit")},
    {.name = NULL},
};
#define N_ROWS (sizeof rows / sizeof *rows - 1)

/* MAX_NAME: bytes of an option's name, or an environment variable's, with its NUL. */
enum { MAX_NAME = 40 };

static bool is_list(const struct api_field *row)
{
    return row->offset == offsetof(struct srv_options, listen);
}

/* The number that a text is in a row's notation; NaN if it is none. */
static double number_of(const struct api_field *row, const char *text)
{
    static const char units[] = "KMG";
    char *end;
    double number = (double)strtoull(text, &end, row->kind == API_OCTAL ? 8 : 10);
    const char *unit = row->kind == API_BYTES && *end ? strchr(units, *end) : NULL;
    bool good = isdigit((unsigned char)*text) && !end[unit != NULL];
    return good ? ldexp(number, unit ? 10 * (int)(unit - units + 1) : 0) : (double)NAN;
}

/* Appends the values between commas. False if one is empty or too long, or if there are too many. */
static bool parse_list(const char *text, struct srv_list *list)
{
    for (;; text++) {
        size_t size = strcspn(text, ",");
        if (size == 0 || size >= SRV_ADDRESS_SIZE || list->n == SRV_ADDRESSES)
            return false;
        memcpy(list->items[list->n], text, size);
        list->items[list->n++][size] = '\0';
        text += size;
        if (!*text)
            return true;
    }
}

/* Tells of an invalid value, without the password that one of a store may have. */
static void refuse_value(const struct api_field *row, const char *given_as, const char *text,
                         FILE *errors)
{
    char name[1000], range[API_RANGE];
    if (row->read == read_store) {
        api_store_name(text, name, sizeof name);
        text = name;
    }
    fprintf(errors, "kldivd: %s: '%s'", given_as, text);
    if (is_list(row))
        fprintf(errors,
                ": at most %d addresses are allowed, separated by commas, each of 1 to %d bytes\n",
                SRV_ADDRESSES, SRV_ADDRESS_SIZE - 1);
    else
        fprintf(errors, " is not %s (%s)\n",
                row->expected ? row->expected : api_field_range(row, range), row->help);
}

static bool set(struct srv_options *options, const struct api_field *row, const char *given_as,
                const char *text, FILE *errors)
{
    union api_field_value value = {{0}};
    bool is_number = row->max > 0;
    const struct api_value given = {is_number ? API_NUMBER : API_STRING, text,
                                    .number = is_number ? number_of(row, text) : 0};
    bool good = is_list(row) ? parse_list(text, &options->listen)
                             : api_field_read(row, &given, &value, NULL);
    if (!good) {
        refuse_value(row, given_as, text, errors);
        return false;
    }
    if (is_number)
        value = (union api_field_value){.size = (size_t)value.number};
    if (!is_list(row))
        api_field_store(row, options, &value, false);
    options->max_body_given |= row->offset == offsetof(struct srv_options, max_body);
    return true;
}

/* Formats the name of the environment variable: KLDIV_MAX_BODY for max-body. */
static void environment_name(const struct api_field *row, char *to, size_t size)
{
    int n = snprintf(to, size, "KLDIV_%s", row->name);
    for (int i = 0; i < n; i++)
        to[i] = (char)(to[i] == '-' ? '_' : toupper((unsigned char)to[i]));
}

static bool read_environment(struct srv_options *options, FILE *errors)
{
    for (const struct api_field *row = rows; row->name; row++) {
        char name[MAX_NAME];
        environment_name(row, name, sizeof name);
        const char *text = !row->metavariable && !row->words ? NULL : getenv(name);
        if (!text || !*text)
            continue;
        if (is_list(row))
            options->listen.n = 0; /* without the default */
        if (!set(options, row, name, text, errors))
            return false;
    }
    return true;
}

/* True for variables that Kubernetes sets: KLDIV_SERVICE_HOST, KLDIV_PORT_80_TCP_ADDR and the
 * like. */
static bool is_of_kubernetes(const char *name)
{
    static const char service[] = "KLDIV_SERVICE_", port[] = "KLDIV_PORT";
    const char *rest = name + sizeof port - 1;
    return strncmp(name, service, sizeof service - 1) == 0 ||
           (strncmp(name, port, sizeof port - 1) == 0 &&
            (*rest == '\0' || (*rest == '_' && isdigit((unsigned char)rest[1]))));
}

void srv_options_unknown(void (*report)(const char *name, const char *nearest))
{
    char texts[N_ROWS][MAX_NAME];
    const char *known[N_ROWS];
    for (size_t i = 0; i < N_ROWS; i++) {
        environment_name(&rows[i], texts[i], sizeof texts[i]);
        known[i] = texts[i];
    }
    for (char **variable = environ; *variable; variable++) {
        char name[MAX_NAME];
        size_t size = strcspn(*variable, "="), i = 0;
        if (strncmp(*variable, "KLDIV_", 6) != 0 || size >= sizeof name)
            continue;
        memcpy(name, *variable, size);
        name[size] = '\0';
        while (i < N_ROWS && strcmp(known[i], name) != 0)
            i++;
        if (i == N_ROWS && !is_of_kubernetes(name))
            report(name, api_nearest(name, known, N_ROWS));
    }
}

/* Row of a flag, without its dashes and what follows a =. */
static const struct api_field *find_flag(const char *flag)
{
    char name[MAX_NAME];
    if (strcmp(flag, "-h") == 0)
        flag = "--help";
    if (strncmp(flag, "--", 2) != 0)
        return NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(flag + 2, "="), flag + 2);
    return api_field_find(rows, name);
}

/* Reads flags of the forms --flag value and --flag=value. */
static bool read_flags(struct srv_options *options, int argc, char **argv, FILE *errors)
{
    bool listens = false;
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i];
        size_t length = strcspn(flag, "=");
        const struct api_field *row = find_flag(flag);
        if (!row || (!row->metavariable && flag[length])) {
            fprintf(errors, "kldivd: %s: no such option; --help lists them\n", flag);
            return false;
        }
        const char *text = flag[length] ? flag + length + 1 : NULL;
        if (row->metavariable && !text) {
            if (i + 1 == argc) {
                fprintf(errors, "kldivd: %s: needs a value (%s)\n", flag, row->help);
                return false;
            }
            text = argv[++i];
        }
        if (is_list(row) && !listens)
            options->listen.n = 0; /* without those of the environment */
        listens |= is_list(row);
        if (!set(options, row, argv[i] == text ? flag : argv[i], text, errors))
            return false;
    }
    return true;
}

/* MIN_MEMORY: bytes of --max-memory, with which small requests are served. */
enum { MIN_MEMORY = 1 << 20 };

bool srv_options_read(struct srv_options *options, int argc, char **argv, FILE *errors)
{
    *options = (struct srv_options){0};
    for (const struct api_field *row = rows; row->name; row++)
        if (row->fallback && !set(options, row, row->name, row->fallback, errors))
            return false;
    options->max_body_given = false;
    if (!read_environment(options, errors) || !read_flags(options, argc, argv, errors))
        return false;
    if (options->max_memory == 0 || options->max_memory >= MIN_MEMORY)
        return true;
    fprintf(errors, "kldivd: --max-memory: %zu bytes are too few for requests; 1M or more, or 0\n",
            options->max_memory);
    return false;
}

/* Options from `first` on, up to the next heading. */
static const struct heading {
    const char *first, *text;
} headings[] = {{"listen", "Addresses"},     {"threads", "Threads and limits"},
                {"timeout", "Time limits"},  {"store", "Drift monitors"},
                {"shared-memory", "Access"}, {"log-format", "Logs"},
                {"simd", "The process"},     {"migrate", "Commands, which serve nothing"}};

/* Writes words in lines of at most 80 columns. */
static void write_wrapped(const char *text, FILE *out)
{
    enum { COLUMNS = 80, INDENT = 6 };
    size_t column = 0;
    while (*text) {
        size_t size = strcspn(text, " ");
        if (column > 0 && column + 1 + size > COLUMNS) {
            fputc('\n', out);
            column = 0;
        }
        column += (size_t)fprintf(out, "%*s%.*s", column ? 1 : INDENT, "", (int)size, text);
        text += size + (text[size] == ' ');
    }
    fputc('\n', out);
}

void srv_options_help(FILE *out)
{
    const struct heading *heading = headings, *end = headings + sizeof headings / sizeof *headings;
    fputs("kldivd: the Kullback-Leibler divergence loss, and monitors of drift, over HTTP\n\n"
          "usage: kldivd [--option VALUE | --option=VALUE]...\n\n"
          "Each option is also an environment variable: --max-body is KLDIV_MAX_BODY.\n"
          "Flags win. Switches are 1, true, yes or on, and 0, false, no or off; -h is\n"
          "--help. Defaults are in brackets.\n",
          out);
    for (const struct api_field *row = rows; row->name; row++) {
        if (heading < end && strcmp(row->name, heading->first) == 0)
            fprintf(out, "\n%s:\n", heading++->text);
        fprintf(out, "  --%s%s%s", row->name, row->metavariable ? " " : "",
                row->metavariable ? row->metavariable : "");
        if (row->fallback)
            fprintf(out, " [%s]", row->fallback);
        fputc('\n', out);
        write_wrapped(row->help, out);
    }
}
