/* Settings of traces and logs, which Triton's clients read and set by the Open Inference Protocol. */
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void check_set(const char *path, const char *body, int status, const char *says)
{
    struct answer answer = ask("POST", path, NULL, NULL, body, strlen(body));
    cr_expect_eq(answer.status, status, "%s %s: %d", path, body, answer.status);
    cr_expect(strstr(text_of(answer.json, "error"), says), "%s", text_of(answer.json, "error"));
    cr_expect_eq(json_object_size(answer.json), status == 200 ? 6 : 1);
    answer_free(&answer);
}

Test(oip_settings, settings_of_traces_and_logs_are_fixed)
{
    static const char *const paths[] = {"/v2/logging", "/v2/trace/setting",
                                        "/v2/models/kl_div/trace/setting"};
    static const struct {
        const char *body;
        int logging, trace;
        const char *says;
    } cases[] = {
        {"", 200, 200, ""},
        {"{}", 200, 200, ""},
        {"\xef\xbb\xbf {}", 200, 200, ""},
        {"{\"log_verbose_level\": 0, \"log_file\":\"\"}", 200, 400, "no setting"},
        {"{\"log_verbose_level\":[\"0\"],\"log_info\":null}", 200, 400, "no setting"},
        {"{\"log_verbose_level\":1}", 400, 400, "setting"},
        {"{\"log_errors\":false}", 400, 400, "setting"},
        {"{\"log_file\":{}}", 400, 400, "setting"},
        {"{\"trace_level\":[\"OFF\"],\"trace_rate\":\"1000\"}", 400, 200, "no setting"},
        {"{\"trace_level\":\"OFF\",\"trace_rate\":1000 ,\"trace_file\":null}", 400, 200, "no"},
        {"{\"trace_level\":[\"TIMESTAMPS\"]}", 400, 400, "setting"},
        {"{\"trace_level\":[\"OFF\",\"TENSORS\"]}", 400, 400, "setting"},
        {"{\"trace_level\":[]}", 400, 400, "setting"},
        {"[]", 400, 400, "object"},
        {"{", 400, 400, "line 1, column 2"},
    };
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct answer now = ask("GET", paths[i], NULL, NULL, NULL, 0);
        cr_assert_eq(now.status, 200);
        char *same = json_dumps(now.json, 0);
        check_set(paths[i], same, 200, "");
        free(same);
        answer_free(&now);
        for (size_t j = 0; j < COUNT(cases); j++) {
            int status = i ? cases[j].trace : cases[j].logging;
            check_set(paths[i], cases[j].body, status, status == 200 ? "" : cases[j].says);
        }
    }
}

Test(oip_settings, logging_tells_of_the_log_level)
{
    static const struct {
        const char *level, *says;
    } cases[] = {{"error", "\"log_info\":false,\"log_warnings\":false"},
                 {"info", "\"log_info\":true,\"log_warnings\":true"},
                 {"debug", "\"log_errors\":true,\"log_verbose_level\":1"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const flags[] = {"--log-level", cases[i].level, NULL};
        struct server server = server_start(flags);
        struct fetched f = fetch(&server, "GET", "/v2/logging", NULL, NULL, 0);
        cr_expect(strstr(f.body.data, cases[i].says), "%s", f.body.data);
        fetched_free(&f);
        server_stop(&server, false);
    }
}
