#include "api/web/web.h"

#include "api/request/access.h"
#include "api/request/coding.h"
#include "api/request/etag.h"
#include "api/request/response.h"
#include "api/request/route.h"
#include "api/text/accept.h"

#include "build/assets/list.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- Files, built in and compressed. `make assets` packs them: those of this folder, and those of npm's
 * packages that package-lock.json names. */

struct api_file {
    const char *path; /* "dashboard/index.html" */
    const unsigned char *gzip, *end;
};

#define EMBED(n, path)                                                                             \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global api_file_" #n ", api_file_" #n "_end\n"                                       \
            "api_file_" #n ": .incbin \"build/assets/" path ".gz\"\n"                              \
            "api_file_" #n "_end: .byte 0\n"                                                       \
            ".popsection\n");                                                                      \
    extern const unsigned char api_file_##n[], api_file_##n##_end[];
ASSETS(EMBED)

#define ROW(n, path) {path, api_file_##n, api_file_##n##_end},
static const struct api_file files[] = {ASSETS(ROW){0}};

const struct api_file *api_file_find(const char *path)
{
    for (const struct api_file *file = files; file->path; file++)
        if (strcmp(file->path, path) == 0)
            return file;
    return NULL;
}

/* Content-Type by the name's extension; text/plain for others. */
static const char *file_type(const struct api_file *file)
{
    static const struct {
        const char *extension, *type;
    } types[] = {{".html", "text/html; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".svg", "image/svg+xml"}};
    const char *extension = strrchr(file->path, '.');
    for (size_t i = 0; extension && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].extension, extension) == 0)
            return types[i].type;
    return "text/plain; charset=utf-8";
}

static uint32_t little_endian(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Formats the entity tag of a file, quoted, from its content's CRC-32 and size, which end the gzip
 * format (RFC 1952). It is weak: the coded form and the plain one share it. */
enum { FILE_ETAG = 24 };
static void file_etag(const struct api_file *file, char to[FILE_ETAG])
{
    snprintf(to, FILE_ETAG, "\"%08x-%x\"", little_endian(file->end - 8),
             little_endian(file->end - 4));
}

/* ---- Pages */

/* Content-Security-Policy: scripts, styles, images and calls of this origin, nothing inline. Swagger
 * UI's style sheet holds icons as data. */
#define POLICY(images)                                                                             \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'" images               \
    "; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* page: the file that a path without a file's name stands for. `address` is the path at which its relative links are
 * right. */
struct page {
    const char *endpoint, *address, *file, *redirection, *policy;
};

static const struct page pages[] = {
    {"/", "/", "dashboard/calculator.html", NULL, POLICY("")},
    {"/dashboard", "/dashboard/", "dashboard/index.html", "dashboard/", POLICY("")},
    {"/docs", "/docs", "docs/index.html", "../docs", POLICY(" data:")},
};

static const struct page *page_of(const struct api_exchange *x)
{
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (strcmp(pages[i].endpoint, x->response.endpoint->path) == 0)
            return &pages[i];
    return NULL;
}

static bool is_page(const char *name)
{
    const char *extension = strrchr(name, '.');
    return extension && strcmp(extension, ".html") == 0;
}

/* Finds the file of a request; NULL if there is none. Pages have one address each, for which their
 * relative links are. */
static const struct api_file *file_of(const struct api_exchange *x)
{
    const struct page *page = page_of(x);
    char path[API_CAPTURED + 16];
    if (page)
        return api_file_find(page->file);
    if (is_page(x->captures.value[0]))
        return NULL;
    const char *pattern = x->response.endpoint->path + 1;
    snprintf(path, sizeof path, "%.*s%s", (int)strcspn(pattern, "{"), pattern,
             x->captures.value[0]);
    return api_file_find(path);
}

static bool check_file(struct api_exchange *x)
{
    return file_of(x) ||
           api_fail(&x->problem, "not_found",
                    api_file_find(pages[0].file) ? "there is no such file"
                                                 : "this server was built without pages (PAGE=no)");
}

/* Sends the client to the page's address; relative, so that it is right behind a prefix. */
static bool redirect(struct api_exchange *x, const struct page *page)
{
    struct api_response *response = &x->response;
    const char *query = x->request.query ? x->request.query : "";
    bool fits = strlen(query) < sizeof response->header_text - 32;
    snprintf(response->header_text, sizeof response->header_text, "%s%s%s", page->redirection,
             *query && fits ? "?" : "", fits ? query : "");
    response->status = 308;
    api_response_header(response, "Location", response->header_text);
    return true;
}

/* Appends the plain form of a file, for the few clients that take no gzip. */
static bool inflate(const struct api_file *file, struct api_buffer *out,
                    struct api_problem *problem)
{
    struct api_inflation inflation = {.coding = "gzip",
                                      .bytes = (const char *)file->gzip,
                                      .size = (size_t)(file->end - file->gzip),
                                      .max = SIZE_MAX / 2,
                                      .affordable = SIZE_MAX / 2};
    return api_inflate(&inflation, out, problem);
}

static bool send_file(struct api_exchange *x, const struct api_file *file, const char *vary)
{
    struct api_response *response = &x->response;
    const char *known = api_request_header(&x->request, "If-None-Match");
    const char *coding = api_coding_choose(api_request_header(&x->request, "Accept-Encoding"));
    char etag[FILE_ETAG];
    file_etag(file, etag);
    snprintf(response->header_text, sizeof response->header_text, "W/%s", etag);
    response->cache_control = "no-cache";
    const struct page *page = page_of(x);
    response->policy = page ? page->policy : POLICY("");
    api_response_header(response, "ETag", response->header_text);
    api_response_header(response, "Vary", vary);
    if (known && api_etag_is_listed(known, etag, true)) {
        response->status = 304;
        return true;
    }
    response->content_type = file_type(file);
    if (!coding || strcmp(coding, "gzip") != 0)
        return inflate(file, &response->body, &x->problem);
    api_response_header(response, "Content-Encoding", "gzip");
    response->file = file->gzip;
    response->file_size = (size_t)(file->end - file->gzip);
    return true;
}

static bool write_file(struct api_exchange *x)
{
    const struct page *page = page_of(x);
    if (page && strcmp(x->request.path, page->address) != 0)
        return redirect(x, page);
    return send_file(x, file_of(x), "Accept-Encoding");
}

const struct api_steps api_web = {.check = check_file, .write = write_file};

/* ---- No such path */

static const char not_found[] = "not-found.html";

bool api_web_wants_not_found(const struct api_exchange *x)
{
    const struct api_endpoint *endpoint = x->response.endpoint;
    const char *accept = api_request_header(&x->request, "Accept"), *method = x->request.method;
    return accept && (!endpoint || endpoint->flags & API_PUBLIC) &&
           (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) &&
           api_accept_quality(accept, "text/html") >
               api_accept_quality(accept, "application/json") &&
           api_file_find(not_found);
}

/* Appends the way to the root from a path, relative so that it is right behind a prefix. No path that anyone types is
 * deeper than MAX_DEPTH. */
static void append_root(const char *path, struct api_buffer *out)
{
    enum { MAX_DEPTH = 50 };
    size_t depth = 0;
    for (const char *p = path + (*path == '/'); *p; p++)
        depth += *p == '/';
    if (depth == 0 || depth > MAX_DEPTH)
        api_append_text(out, depth == 0 ? "./" : "/");
    else
        while (depth-- > 0)
            api_append_text(out, "../");
}

bool api_web_not_found(struct api_exchange *x)
{
    static const char mark[] = "{root}";
    struct api_response *response = &x->response;
    struct api_problem ignored = {.code = NULL};
    struct api_buffer page = {.budget = NULL};
    bool good = inflate(api_file_find(not_found), &page, &ignored);
    api_append(&page, "", 1);
    good = good && !page.failed;
    const char *rest = good ? page.data : "";
    for (const char *next; (next = strstr(rest, mark)); rest = next + sizeof mark - 1) {
        api_append(&response->body, rest, (size_t)(next - rest));
        append_root(x->request.path, &response->body);
    }
    api_append_text(&response->body, rest);
    api_buffer_free(&page);
    response->content_type = "text/html; charset=utf-8";
    response->policy = POLICY("");
    api_response_header(response, "Vary", "Accept");
    return good && !response->body.failed;
}

/* ---- The root */

static bool wants_html(const struct api_exchange *x)
{
    const char *accept = api_request_header(&x->request, "Accept");
    return accept && file_of(x) &&
           api_accept_quality(accept, "text/html") > api_accept_quality(accept, "text/plain");
}

static bool check_root(struct api_exchange *x)
{
    return wants_html(x) || (api_require_token(x) && api_require_scope(x));
}

static bool list_endpoints(struct api_exchange *x)
{
    struct api_buffer *out = &x->response.body;
    x->response.content_type = "text/plain; charset=utf-8";
    api_response_header(&x->response, "Vary", "Accept");
    api_append_text(out, "kldiv " KLDIV_VERSION ": the Kullback-Leibler divergence loss, "
                         "KL(target || input)\n\n");
    for (const struct api_endpoint *e = x->service->endpoints; e->path; e++)
        api_append_format(out, "%-6s %-45s %s\n", e->method, e->path, e->summary);
    api_append_text(out, "\nTry it:\n\n"
                         "curl 'http://HOST/kl_div?reduction=batchmean' -d "
                         "'{\"input\": [[-1, -0.5], [-2, -0.2]], "
                         "\"target\": [[0.4, 0.6], [0.1, 0.9]]}'\n");
    return true;
}

static bool write_root(struct api_exchange *x)
{
    return wants_html(x) ? send_file(x, file_of(x), "Accept, Accept-Encoding") : list_endpoints(x);
}

const struct api_steps api_web_root = {.check = check_root, .write = write_root};
