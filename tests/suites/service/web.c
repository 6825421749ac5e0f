/* Files of the pages: types, conditions, codings, policy. */
#include "api/web/web.h"
#include "api/request/response.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static struct api_service service;

/* A build by PAGE=no has no files. */
static void skip_without_pages(void)
{
    if (!api_file_find("dashboard/index.html"))
        cr_skip("this build has no pages");
}

static const char codings[] = "br, gzip";

/* Asks for a path; `known` is If-None-Match. Each may be NULL. */
static struct answer get(const char *path, const char *accept, const char *coding,
                         const char *known)
{
    struct question question = {.method = "GET",
                                .path = path,
                                .accept = accept,
                                .accept_encoding = coding,
                                .others = {{known ? "If-None-Match" : NULL, known}}};
    if (!service.max_body)
        service = service_of(1000);
    return ask_question(&question, &service, "", 0);
}

Test(web, files_have_a_type_a_tag_and_a_policy, .init = skip_without_pages)
{
    static const struct {
        const char *path, *type;
    } cases[] = {{"/dashboard/", "text/html; charset=utf-8"},
                 {"/dashboard/start.js", "text/javascript; charset=utf-8"},
                 {"/dashboard/style.css", "text/css; charset=utf-8"},
                 {"/dashboard/icon.svg", "image/svg+xml"},
                 {"/dashboard/licenses", "text/plain; charset=utf-8"},
                 {"/docs", "text/html; charset=utf-8"},
                 {"/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer = get(cases[i].path, NULL, codings, NULL);
        cr_expect_eq(answer.status, 200, "%s", cases[i].path);
        cr_expect_str_eq(answer.response.content_type, cases[i].type);
        cr_expect_str_eq(header_of_answer(&answer, "Content-Encoding"), "gzip");
        cr_expect_str_eq(header_of_answer(&answer, "Vary"), "Accept-Encoding");
        cr_expect_str_eq(header_of_answer(&answer, "X-Content-Type-Options"), "nosniff");
        cr_expect_str_eq(answer.response.cache_control, "no-cache");
        const char *policy = header_of_answer(&answer, "Content-Security-Policy");
        cr_expect(strstr(policy, "frame-ancestors 'none'") &&
                      strstr(policy, "script-src 'self';") && strstr(policy, "style-src 'self';") &&
                      !strstr(policy, "unsafe"),
                  "%s", policy);
        answer_free(&answer);
    }
}

Test(web, a_client_that_has_a_file_is_told_so, .init = skip_without_pages)
{
    struct answer first = get("/dashboard/start.js", NULL, codings, NULL);
    char etag[40], listed[200];
    snprintf(etag, sizeof etag, "%s", header_of_answer(&first, "ETag"));
    snprintf(listed, sizeof listed, "\"other\", %s", etag);
    answer_free(&first);
    cr_assert_eq(strncmp(etag, "W/\"", 3), 0);
    const struct {
        const char *known;
        int status;
    } cases[] = {{etag, 304}, {listed, 304}, {"*", 304}, {etag + 2, 304}, {"\"other\"", 200}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer = get("/dashboard/start.js", NULL, codings, cases[i].known);
        cr_expect_eq(answer.status, cases[i].status, "%s", cases[i].known);
        cr_expect_str_eq(header_of_answer(&answer, "ETag"), etag);
        cr_expect_eq(api_response_size(&answer.response) == 0, cases[i].status == 304);
        answer_free(&answer);
    }
}

/* Inflates all files, and compares with what a client without gzip gets. */
Test(web, clients_without_gzip_get_the_same_bytes, .init = skip_without_pages)
{
    static const char *const paths[] = {"/dashboard/", "/dashboard/uplot.js",
                                        "/docs/swagger-ui-bundle.js"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct answer coded = get(paths[i], NULL, codings, NULL),
                      plain = get(paths[i], NULL, NULL, NULL);
        size_t size = plain.response.body.size;
        unsigned char *inflated = malloc(size + 1);
        z_stream stream = {.next_in = (unsigned char *)(uintptr_t)coded.response.file,
                           .avail_in = (unsigned)coded.response.file_size,
                           .next_out = inflated,
                           .avail_out = (unsigned)size + 1};
        cr_assert_eq(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
        cr_expect_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
        cr_expect_eq(stream.total_out, size);
        cr_expect_eq(memcmp(inflated, plain.response.body.data, size), 0, "%s", paths[i]);
        cr_expect_str_eq(header_of_answer(&plain, "Content-Encoding"), "");
        inflateEnd(&stream);
        free(inflated);
        answer_free(&coded);
        answer_free(&plain);
    }
}

Test(web, the_root_is_a_page_for_those_who_like_html_better, .init = skip_without_pages)
{
    static const struct {
        const char *accept, *type, *vary;
    } cases[] = {
        {NULL, "text/plain; charset=utf-8", "Accept"},
        {"*/*", "text/plain; charset=utf-8", "Accept"},
        {"text/plain, text/html;q=0.5", "text/plain; charset=utf-8", "Accept"},
        {"text/html", "text/html; charset=utf-8", "Accept, Accept-Encoding"},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
         "text/html; charset=utf-8", "Accept, Accept-Encoding"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer = get("/", cases[i].accept, codings, NULL);
        cr_expect_eq(answer.status, 200);
        cr_expect_str_eq(answer.response.content_type, cases[i].type, "%s", cases[i].accept);
        cr_expect_str_eq(header_of_answer(&answer, "Vary"), cases[i].vary);
        answer_free(&answer);
    }
}

Test(web, other_forms_of_an_address_lead_to_the_page)
{
    static const struct {
        const char *path, *query, *location;
    } cases[] = {{"/dashboard", NULL, "dashboard/"},
                 {"/dashboard", "state=critical", "dashboard/?state=critical"},
                 {"/docs/", NULL, "../docs"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct question question = {
            .method = "GET", .path = cases[i].path, .query = cases[i].query};
        struct api_service any = service_of(1000);
        struct answer answer = ask_question(&question, &any, "", 0);
        cr_expect_eq(answer.status, 308);
        cr_expect_str_eq(header_of_answer(&answer, "Location"), cases[i].location);
        answer_free(&answer);
    }
}

Test(web, there_are_no_other_files)
{
    static const char *const paths[] = {
        "/dashboard/nothing.js", "/dashboard/index.html.gz",
        "/docs/start.js",        "/dashboard/..%2Fdocs%2Findex.html",
        "/dashboard/index.html", "/docs/index.html",
        "/dashboard/a/b"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct answer answer = get(paths[i], NULL, codings, NULL);
        cr_expect_eq(answer.status, 404, "%s", paths[i]);
        answer_free(&answer);
    }
}

/* ---- Paths that do not exist */

#define BROWSER "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

/* Resolves a relative link at a path, as browsers do. */
static void resolve_link(const char *path, const char *link, char *to, size_t size)
{
    snprintf(to, size, "%.*s", (int)(strrchr(path, '/') - path + 1), path);
    for (; strncmp(link, "../", 3) == 0; link += 3) {
        to[strlen(to) - 1] = '\0';
        cr_assert(strrchr(to, '/'), "%s is above the root", path);
        strrchr(to, '/')[1] = '\0';
    }
    link += strncmp(link, "./", 2) == 0 ? 2 : 0;
    if (*link == '/')
        *to = '\0';
    strncat(to, link, size - strlen(to) - 1);
}

/* Expects that all links of a page lead to something; gives how many there are. */
static size_t expect_links(const char *path, const char *page)
{
    static const char *const attributes[] = {"href=\"", "src=\""};
    size_t n = 0;
    for (size_t i = 0; i < COUNT(attributes); i++)
        for (const char *p = page; (p = strstr(p, attributes[i])); n++) {
            char link[300], to[400];
            p += strlen(attributes[i]);
            snprintf(link, sizeof link, "%.*s", (int)strcspn(p, "\""), p);
            if (*link == '#')
                continue;
            resolve_link(path, link, to, sizeof to);
            to[strcspn(to, "?")] = '\0'; /* the query is for the page's script */
            struct answer answer = get(to, BROWSER, codings, NULL);
            cr_expect_eq(answer.status, 200, "%s at %s is %s: %d", link, path, to, answer.status);
            answer_free(&answer);
        }
    return n;
}

Test(web, browsers_get_a_page_at_paths_that_do_not_exist, .init = skip_without_pages)
{
    static const char *const paths[] = {
        "/nothing",    "/dashbord/",      "/a/b/c/d/e",           "/dashboard/x",
        "/docs/x.js",  "/monitors/g/m/x", "/v3/models",           "/a%2Fb/c",
        "/v2/nothing", "/groups/g/h/",    "/dashboard/index.html"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct answer answer = get(paths[i], BROWSER, NULL, NULL);
        char *page = body_of(&answer);
        cr_expect_eq(answer.status, 404, "%s: %d", paths[i], answer.status);
        cr_expect_str_eq(answer.response.content_type, "text/html; charset=utf-8");
        cr_expect_str_eq(answer.response.code, "not_found");
        cr_expect_null(answer.response.cache_control);
        cr_expect_str_eq(header_of_answer(&answer, "Vary"), "Accept");
        const char *policy = header_of_answer(&answer, "Content-Security-Policy");
        cr_expect(strstr(policy, "style-src 'self';") && !strstr(policy, "unsafe"), "%s", policy);
        cr_expect(strstr(page, "There is nothing at this address") && !strchr(page, '{'), "%s",
                  page);
        cr_expect_eq(expect_links(paths[i], page), 13);
        free(page);
        answer_free(&answer);
    }
}

Test(web, programs_get_a_problem_at_paths_that_do_not_exist)
{
    static const char *const accepts[] = {NULL, "*/*", "application/json", "text/html;q=0.5, */*",
                                          "application/problem+json"};
    for (size_t i = 0; i < COUNT(accepts); i++) {
        struct answer answer = get("/a/b", accepts[i], NULL, NULL);
        cr_expect_eq(answer.status, 404);
        cr_expect_str_eq(answer.response.content_type, "application/problem+json");
        cr_expect_str_eq(text_at(answer.json, "code"), "not_found");
        answer_free(&answer);
    }
    struct question post = {.method = "POST", .path = "/a/b", .accept = BROWSER};
    struct answer answer = ask_question(&post, &service, "", 0);
    cr_expect_str_eq(answer.response.content_type, "application/problem+json");
    answer_free(&answer);
    answer = get("/livez/x", BROWSER, NULL, NULL);
    cr_expect_eq(answer.status, 404);
    answer_free(&answer);
}

/* Errors below other paths keep their form: monitors are no pages. */
Test(web, problems_of_paths_that_exist_are_json)
{
    struct answer answer = get("/monitors/g/m", BROWSER, NULL, NULL);
    cr_expect_neq(answer.status, 200);
    cr_expect_str_eq(answer.response.content_type, "application/problem+json");
    answer_free(&answer);
}

/* A link is relative whatever the path, so that it is right behind a prefix; a path that nobody types has one from the
 * root. */
Test(web, a_path_that_is_very_deep_gets_a_small_page, .init = skip_without_pages)
{
    char path[2000];
    for (size_t i = 0; i < sizeof path; i++)
        path[i] = i % 2 ? 'x' : '/';
    path[sizeof path - 1] = '\0';
    struct answer answer = get(path, BROWSER, NULL, NULL);
    char *page = body_of(&answer);
    cr_expect_eq(answer.status, 404);
    cr_expect(strstr(page, "href=\"/dashboard/\"") && strlen(page) < 3000);
    free(page);
    answer_free(&answer);
}

/* A server with tokens shows it, as it shows its other pages. */
Test(web, browsers_need_no_token_for_that_page, .init = skip_without_pages)
{
    static const char text[] = "reader read 0123456789abcdef";
    struct api_parse_error mistake;
    struct api_service guarded = service_of(1000);
    guarded.tokens = api_tokens_new();
    cr_assert(guarded.tokens && api_tokens_read(guarded.tokens, text, strlen(text), &mistake));
    const struct {
        const char *path, *accept;
        int status;
    } cases[] = {{"/nothing", BROWSER, 404},
                 {"/nothing", "*/*", 401},
                 {"/monitors", BROWSER, 401},
                 {"/monitors/g/m/x", BROWSER, 404}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct question question = {
            .method = "GET", .path = cases[i].path, .accept = cases[i].accept};
        struct answer answer = ask_question(&question, &guarded, "", 0);
        cr_expect_eq(answer.status, cases[i].status, "%s: %d", cases[i].path, answer.status);
        answer_free(&answer);
    }
    api_tokens_free(guarded.tokens);
}
