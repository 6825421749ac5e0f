#include "server/config/options.h"

#include "api/notify/receivers.h"
#include "api/regions/object.h"
#include "api/request/access.h"
#include "api/store/location.h"
#include "api/store/store.h"
#include "api/text/hosts.h"
#include "api/text/nearest.h"
#include "server/net/client_address.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* kind: from NUMBER on the field is a size_t, before LIST a text. A SWITCH takes no value, but where it has
 * words it may have one in the environment. The LIST, --listen, may be given several times, and with commas
 * between. */
enum kind {
    TEXT,
    HOSTS,
    ORIGIN,
    STORE,
    PREFIX,
    URL,
    PROXIES,
    LIST,
    SWITCH,
    NUMBER,
    BYTES,
    MODE,
    WORD
};

static const char *const formats[] = {"text", "json", NULL};
/* Words of switches, off and on by turns. */
static const char *const switches[] = {"off", "on", "0", "1", "false", "true", "no", "yes", NULL};
static const char *const exposed[] = {"monitors", "groups", NULL};
static const char *const fallbacks[] = {"none", "memory", NULL};
static const char *const levels[] = {"error", "warning", "info", "debug", NULL};

static const struct row {
    const char *name; /* --name, KLDIV_NAME */
    const char *metavariable;
    enum kind kind;
    size_t offset;
    const char *fallback; /* default as text; NULL leaves the field zero */
    size_t min, max;      /* for NUMBER, BYTES and MODE */
    const char *const *words;
    const char *help;
} rows[] = {
#define FIELD(name) offsetof(struct srv_options, name)
    {"listen", "ADDRESS", LIST, FIELD(listen), "127.0.0.1:8080", 0, 0, NULL,
     "address to listen on: HOST:PORT (port 0 selects a free port; [::]:8080 is IPv6 and IPv4), "
     "unix:PATH, or unix:@NAME (abstract); repeat the option, or separate addresses by commas "
     "without blanks"},
    {"listen-mode", "MODE", MODE, FIELD(listen_mode), "660", 0, 0777, NULL,
     "permissions of the sockets at unix:PATH, in octal"},
    {"admin-listen", "ADDRESS", TEXT, FIELD(admin_listen), NULL, 0, 0, NULL,
     "also serve health checks and metrics, and nothing else, at this address"},
    {"port-file", "FILE", TEXT, FIELD(port_file), NULL, 0, 0, NULL,
     "write the port of the first HOST:PORT to this file once listening"},
    {"threads", "N", NUMBER, FIELD(threads), "0", 0, 1024, NULL,
     "threads for computing; 0: one for each CPU this process may use"},
    {"http-threads", "N", NUMBER, FIELD(http_threads), "0", 0, 1024, NULL,
     "threads for connections; 0: one for each CPU this process may use"},
    {"max-body", "BYTES", BYTES, FIELD(max_body), "1G", 1, SIZE_MAX / 4, NULL,
     "largest request body; K, M and G are powers of 1024"},
    {"max-memory", "BYTES", BYTES, FIELD(max_memory), "0", 0, SIZE_MAX / 4, NULL,
     "memory for bodies, tensors and responses of all requests, and for monitors; 0: 85 % of the "
     "cgroup's limit or of RAM (less in small containers), at most 4G"},
    {"max-connections", "N", NUMBER, FIELD(max_connections), "1000", 1, 100000, NULL,
     "open connections; beyond this the slowest is closed for a new one, or the new one is "
     "answered 503"},
    {"timeout", "SECONDS", NUMBER, FIELD(timeout), "75", 1, 86400, NULL,
     "close connections that are idle for this long; a shorter --timeout also lowers the limits "
     "for a header (10), for a body before its minimum rate applies (10), and for a response that "
     "is not read (30)"},
    {"request-timeout", "SECONDS", NUMBER, FIELD(request_timeout), "0", 0, 86400, NULL,
     "end requests that take longer, from their first byte to the end of the response; 0: no "
     "limit"},
    {"drain-delay", "SECONDS", NUMBER, FIELD(drain_delay), "0", 0, 86400, NULL,
     "after SIGTERM, keep accepting for this long while /readyz answers 503"},
    {"drain-timeout", "SECONDS", NUMBER, FIELD(drain_timeout), "30", 0, 86400, NULL,
     "then wait at most this long for requests to finish"},
    {"store", "STORE", STORE, FIELD(store), "memory", 0, 0, NULL,
     "where drift monitors are kept: memory, sqlite:PATH, or postgresql://HOST/DATABASE"},
    {"store-fallback", "WORD", WORD, FIELD(store_fallback), "none", 0, 0, fallbacks,
     "if the store's file does not exist and its folder cannot be written: none exits, memory "
     "keeps monitors in memory"},
    {"max-store", "BYTES", BYTES, FIELD(max_store), "0", 0, SIZE_MAX / 4, NULL,
     "once the store has this many bytes, answer 503 store_full to requests that would make it "
     "grow; 0: no limit"},
    {"max-monitors", "N", NUMBER, FIELD(max_monitors), "10000", 1, 1000000, NULL,
     "maximum number of drift monitors"},
    {"monitor-metrics", "WORD", WORD, FIELD(monitor_metrics), "monitors", 0, 0, exposed,
     "series in /metrics: monitors, some 17 for each, or groups, 4 for each: how many of its "
     "monitors "
     "are in each state"},
    {"ready-needs-store", NULL, SWITCH, FIELD(ready_needs_store), NULL, 0, 0, switches,
     "answer 503 at /readyz while the store cannot be written"},
    {"notify", "FILE", TEXT, FIELD(notify), NULL, 0, 0, NULL,
     "tell the receivers in this file, a JSON array, of changes of monitors' states; SIGHUP reads "
     "it again"},
    {"public-url", "URL", URL, FIELD(public_url), NULL, 0, 0, NULL,
     "where people reach this server, for links in notifications"},
    {"shared-memory", "PREFIX", PREFIX, FIELD(shared_memory), NULL, 0, 0, NULL,
     "let clients register shared memory objects (shm_open) whose names start with PREFIX; PREFIX "
     "may contain a slash only at its start; / allows every object"},
    {"cors-origin", "ORIGIN", ORIGIN, FIELD(cors_origin), NULL, 0, 0, NULL,
     "let pages of this origin, scheme://host[:port] as browsers send it, read responses; * is "
     "any"},
    {"allowed-hosts", "LIST", HOSTS, FIELD(allowed_hosts), NULL, 0, 0, NULL,
     "host names that requests may use: NAME, *.DOMAIN or ADDRESS, with or without :PORT, "
     "separated by commas; requests with other names are answered 421"},
    {"trusted-proxies", "LIST", PROXIES, FIELD(trusted_proxies), NULL, 0, 0, NULL,
     "proxies whose X-Forwarded-For names the client, for the log: addresses, networks such as "
     "10.0.0.0/8, and unix for clients of unix sockets, separated by commas; at most 64"},
    {"auth-token-file", "FILE", TEXT, FIELD(auth_token_file), NULL, 0, 0, NULL,
     "require a bearer token from this file, except for health checks and the files of the pages; "
     "a line is TOKEN, NAME TOKEN, NAME SCOPES TOKEN, or one of the last two with groups=PATTERNS "
     "before "
     "TOKEN; SIGHUP reads it again"},
    {"tls-cert", "FILE", TEXT, FIELD(tls_cert), NULL, 0, 0, NULL,
     "serve only HTTPS, with this certificate chain in PEM; SIGHUP reads it again"},
    {"tls-key", "FILE", TEXT, FIELD(tls_key), NULL, 0, 0, NULL,
     "private key of the certificate, in PEM; SIGHUP reads it again"},
    {"log-format", "FORMAT", WORD, FIELD(log_format), "text", 0, 0, formats, "text or json"},
    {"log-level", "LEVEL", WORD, FIELD(log_level), "info", 0, 0, levels,
     "error, warning, info or debug; requests are logged at info"},
    {"simd", "SET", TEXT, FIELD(simd), "auto", 0, 0, NULL,
     "instruction set: auto, avx512, avx2, neon or generic"},
    {"drop-privileges", "SWITCH", WORD, FIELD(drop_privileges), "on", 0, 0, switches,
     "on or off: once listening, give up all capabilities, and gain none by running programs"},
    {"seccomp", "SWITCH", WORD, FIELD(seccomp), "on", 0, 0, switches,
     "on or off: once listening, refuse system calls that serving does not need"},
    {"landlock", "SWITCH", WORD, FIELD(landlock), "on", 0, 0, switches,
     "on or off: once listening, refuse files and connections that serving does not need"},
    {"migrate", NULL, SWITCH, FIELD(migrate), NULL, 0, 0, NULL,
     "bring the schema of --store up to date, print what that changed, and exit 0, or 1 if it "
     "failed "
     "and changed nothing; serve nothing"},
    {"healthcheck", NULL, SWITCH, FIELD(healthcheck), NULL, 0, 0, NULL,
     "request /readyz at --admin-listen or the first --listen, as given here or to process 1; exit "
     "0 if it is ready, else 1"},
    {"version", NULL, SWITCH, FIELD(version), NULL, 0, 0, NULL, "print the version and exit"},
    {"help", NULL, SWITCH, FIELD(help), NULL, 0, 0, NULL, "print this and exit"},
#undef FIELD
};
#define N_ROWS (sizeof rows / sizeof *rows)

/* MAX_NAME: bytes of an environment variable's name with its NUL. */
enum { MAX_NAME = 40 };

static bool parse_number(const struct row *row, const char *text, size_t *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, row->kind == MODE ? 8 : 10);
    if (!isdigit((unsigned char)*text) || errno || number > SIZE_MAX)
        return false;
    size_t unit = 1;
    const char *suffix = row->kind == BYTES && *end ? strchr("KMG", *end) : NULL;
    if (suffix) {
        unit = (size_t)1 << 10 * (suffix - "KMG" + 1);
        end++;
    }
    if (*end || __builtin_mul_overflow((size_t)number, unit, value))
        return false;
    return *value >= row->min && *value <= row->max;
}

/* Switches are on or off in any case. */
static bool parse_word(const struct row *row, const char *text, size_t *value)
{
    bool is_switch = row->words == switches;
    size_t i = 0;
    while (row->words[i] && (is_switch ? strcasecmp : strcmp)(text, row->words[i]) != 0)
        i++;
    *value = is_switch ? i % 2 : i;
    return row->words[i];
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
static void refuse_value(const struct row *row, const char *given_as, const char *text,
                         FILE *errors)
{
    char name[1000];
    if (row->kind == STORE) {
        api_store_name(text, name, sizeof name);
        text = name;
    }
    fprintf(errors, "kldivd: %s: '%s'", given_as, text);
    if (row->kind == LIST)
        fprintf(errors,
                ": at most %d addresses are allowed, separated by commas, each of 1 to %d bytes\n",
                SRV_ADDRESSES, SRV_ADDRESS_SIZE - 1);
    else if (row->kind == NUMBER)
        fprintf(errors, " is not a whole number from %zu to %zu (%s)\n", row->min, row->max,
                row->help);
    else if (row->words == switches)
        fprintf(errors, " is not one of 1 true yes on, or 0 false no off (%s)\n", row->help);
    else
        fprintf(errors, " is not a valid value (%s)\n", row->help);
}

/* True if a text may be the value of a row that keeps the text. */
static bool is_valid(const struct row *row, const char *text)
{
    return row->kind == HOSTS     ? api_hosts_valid(text)
           : row->kind == ORIGIN  ? api_origin_is_valid(text)
           : row->kind == STORE   ? api_store_is_location(text)
           : row->kind == PREFIX  ? api_object_prefix_is_valid(text)
           : row->kind == URL     ? api_receiver_url_reason(text) == NULL
           : row->kind == PROXIES ? srv_proxies_are_valid(text)
                                  : true;
}

static bool set(struct srv_options *options, const struct row *row, const char *given_as,
                const char *text, FILE *errors)
{
    void *field = (char *)options + row->offset;
    size_t value = 1;
    bool good;
    if (row->kind == LIST) {
        good = parse_list(text, &options->listen);
    } else if (row->kind == SWITCH) {
        good = !text || parse_word(row, text, &value);
        memcpy(field, &(bool){value != 0}, sizeof(bool));
    } else if (row->kind < NUMBER) {
        good = is_valid(row, text);
        memcpy(field, &text, sizeof text);
    } else {
        good = (row->kind == WORD ? parse_word : parse_number)(row, text, &value);
        memcpy(field, &value, sizeof value);
    }
    options->max_body_given |= row->offset == offsetof(struct srv_options, max_body);
    if (!good)
        refuse_value(row, given_as, text, errors);
    return good;
}

/* Formats the name of the environment variable: KLDIV_MAX_BODY for max-body. */
static void environment_name(const struct row *row, char *to, size_t size)
{
    int n = snprintf(to, size, "KLDIV_%s", row->name);
    for (int i = 0; i < n; i++)
        to[i] = (char)(to[i] == '-' ? '_' : toupper((unsigned char)to[i]));
}

static bool read_environment(struct srv_options *options, FILE *errors)
{
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        char name[MAX_NAME];
        environment_name(row, name, sizeof name);
        const char *text = row->kind == SWITCH && !row->words ? NULL : getenv(name);
        if (!text || !*text)
            continue;
        if (row->kind == LIST)
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

static const struct row *find_flag(const char *flag, size_t length)
{
    for (const struct row *row = rows; row < rows + N_ROWS; row++)
        if (strlen(row->name) == length && memcmp(row->name, flag, length) == 0)
            return row;
    return NULL;
}

/* Reads flags of the forms --flag value and --flag=value. */
static bool read_flags(struct srv_options *options, int argc, char **argv, FILE *errors)
{
    bool listens = false;
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i];
        size_t length = strcspn(flag, "=");
        const struct row *row =
            strncmp(flag, "--", 2) == 0 ? find_flag(flag + 2, length - 2) : NULL;
        if (strcmp(flag, "-h") == 0)
            row = find_flag("help", 4);
        if (!row || (row->kind == SWITCH && flag[length])) {
            fprintf(errors, "kldivd: %s: no such option; --help lists them\n", flag);
            return false;
        }
        const char *text = flag[length] ? flag + length + 1 : NULL;
        if (row->kind != SWITCH && !text) {
            if (i + 1 == argc) {
                fprintf(errors, "kldivd: %s: needs a value (%s)\n", flag, row->help);
                return false;
            }
            text = argv[++i];
        }
        if (row->kind == LIST && !listens)
            options->listen.n = 0; /* without those of the environment */
        listens |= row->kind == LIST;
        if (!set(options, row, argv[i] == text ? flag : argv[i], text, errors))
            return false;
    }
    return true;
}

bool srv_options_read(struct srv_options *options, int argc, char **argv, FILE *errors)
{
    *options = (struct srv_options){0};
    for (const struct row *row = rows; row < rows + N_ROWS; row++)
        if (row->fallback && !set(options, row, row->name, row->fallback, errors))
            return false;
    options->max_body_given = false;
    return read_environment(options, errors) && read_flags(options, argc, argv, errors);
}

void srv_options_help(FILE *out)
{
    fputs("kldivd: the Kullback-Leibler divergence loss over HTTP\n\n"
          "usage: kldivd [--option VALUE | --option=VALUE]...\n\n"
          "Each option is also an environment variable: --max-body is KLDIV_MAX_BODY. "
          "Flags win. Switches\nare 1, true, yes or on, and 0, false, no or off; -h is --help.\n\n",
          out);
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        char flag[60];
        snprintf(flag, sizeof flag, "--%s%s%s", row->name, row->metavariable ? " " : "",
                 row->metavariable ? row->metavariable : "");
        fprintf(out, "  %-24s %s", flag, row->help);
        if (row->fallback)
            fprintf(out, " [%s]", row->fallback);
        fputc('\n', out);
    }
}
