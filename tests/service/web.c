/* Files of the pages: types, conditions, codings, policy. */
#include "api/web/web.h"
#include "api/response.h"
#include "tests/support/monitors.h"

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
