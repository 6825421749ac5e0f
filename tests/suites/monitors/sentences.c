/* Because of what a window drifts, in words: the same in results, in lists, in groups and after a start. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/store.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Expects the sentence of a window in its result, as the last window, in the list and in the group. */
static void expect_sentence(const struct api_service *service, const char *body,
                            const char *expected)
{
    static const char *const places[][2] = {{"GET /monitors/g/m/windows/latest", "sentence"},
                                            {"GET /monitors", "monitors.0.sentence"},
                                            {"GET /groups/g", "drifting.0.sentence"}};
    json_t *answer = monitors_get(service, "POST /monitors/g/m/observations", body, 200);
    cr_expect_str_eq(text_at(answer, "sentence"), expected, "%.100s: %s", body,
                     text_at(answer, "sentence"));
    bool drifts = strcmp(text_at(answer, "state"), "ok") != 0;
    json_decref(answer);
    for (size_t i = 0; i < COUNT(places) - !drifts; i++) {
        answer = monitors_get(service, places[i][0], NULL, 200);
        cr_expect_str_eq(text_at(answer, places[i][1]), expected, "%s: %s", places[i][0],
                         text_at(answer, places[i][1]));
        json_decref(answer);
    }
}

/* sentence: one window, of a monitor of its own. */
struct sentence {
    const char *monitor, *observations, *expected;
};

#define AGES "{\"bins\":{\"edges\":[18,30,45.5,65]},\"reference\":{\"counts\":[400,400,200]}}"
#define VALUES "{\"bins\":{\"edges\":[8,8.000000000000002,9]},\"reference\":{\"counts\":[7,993]}}"
#define LABELS(more)                                                                               \
    "{\"bins\":{\"labels\":[\"DE\",\"FR\"]},\"reference\":{\"counts\":[600,400]}" more "}"

static const struct sentence sentences[] = {
    {AGES, "{\"counts\":[400,400,200]}", ""},
    {AGES, "{\"counts\":[352,352,176],\"missing\":120}", "missing 0 % → 12 %"},
    {AGES, "{\"counts\":[384,384,192],\"overflow\":40}", "values above 65: 0 % → 4 %"},
    {AGES, "{\"counts\":[384,384,192],\"underflow\":40}", "values below 18: 0 % → 4 %"},
    {AGES, "{\"counts\":[100,400,500]}", "[18, 30): 40 % → 10 %; [45.5, 65]: 20 % → 50 %"},
    {AGES, "{\"counts\":[40000,40010,19990]}",
     "[45.5, 65]: 20.000 % → 19.990 %; [30, 45.5): 40.000 % → 40.010 %"},
    {VALUES, "{\"counts\":[110,890]}", "8: 0.7 % → 11 %"},
    {VALUES, "{\"counts\":[1,9999]}", "8: 0.7 % → < 0.1 %"},
    {"{\"bins\":{\"edges\":[4.199998,4.200000000000001]},\"reference\":{\"counts\":[500]}}",
     "{\"counts\":[0],\"overflow\":100}", "values above 4.2: 0 % → 100 %; 4.2: 100 % → 0 %"},
    {"{\"bins\":{\"edges\":[0.30000000000000004,6487.500000000002,26212]},"
     "\"reference\":{\"counts\":[800,200]}}",
     "{\"counts\":[600,400]}", "[6487.5, 26212]: 20 % → 40 %; [0.3, 6487.5): 80 % → 60 %"},
    {LABELS(""), "{\"counts\":[200,800]}", "“DE”: 60 % → 20 %; “FR”: 40 % → 80 %"},
    {LABELS(""), "{\"counts\":[522,348],\"other\":130}", "other labels: 0 % → 13 %"},
    {LABELS(",\"pseudocount\":0"), "{\"counts\":[522,348],\"other\":130}",
     "other labels: 0 % → 13 %"},
    {"{\"bins\":{\"labels\":[\"DE\",\"FR\"]},\"reference\":{\"counts\":[1000,0]}}",
     "{\"counts\":[850,150]}", "“FR”, never seen before, is 15 %"},
};

Test(monitors_sentences, say_which_bins_changed_and_how)
{
    for (size_t i = 0; i < COUNT(sentences); i++) {
        struct api_service service = monitors_new(10);
        monitors_expect(&service, "PUT /monitors/g/m", sentences[i].monitor, 201);
        expect_sentence(&service, sentences[i].observations, sentences[i].expected);
        monitors_end(&service);
    }
}

/* Appends `n` times a text to an array of JSON. */
static void add(char *to, int n, const char *text)
{
    for (int i = 0; i < n; i++) {
        strcat(to, to[strlen(to) - 1] == '[' ? "\"" : ",\"");
        strcat(to, text);
        strcat(to, "\"");
    }
}

static void expect_labels(int known, const char *const *others, const int *counts, size_t n,
                          const char *expected)
{
    struct api_service service = monitors_new(10);
    char *body = calloc(100000, 1);
    strcpy(body, "{\"values\":[");
    add(body, known, "DE");
    for (size_t i = 0; i < n; i++)
        add(body, counts[i], others[i]);
    strcat(body, "]}");
    monitors_expect(&service, "PUT /monitors/g/m?min_observations=1", LABELS(""), 201);
    expect_sentence(&service, body, expected);
    free(body);
    monitors_end(&service);
}

/* Texts that are no labels are told by name, the most frequent of them. */
Test(monitors_sentences, name_labels_that_are_new)
{
    expect_labels(0, (const char *const[]){"NG"}, (int[]){100}, 1,
                  "“NG”, never seen before, is 100 %; “DE”: 60 % → 0 %");
    expect_labels(0, (const char *const[]){"NG", "KE"}, (int[]){130, 70}, 2,
                  "“NG”, never seen before, is 65 % (other new labels 35 %); “DE”: 60 % → 0 %; "
                  "“FR”: 40 % → 0 %");
    expect_labels(0, (const char *const[]){"0123456789012345678901234567890123456789"},
                  (int[]){100}, 1,
                  "“0123456789012345678901234567890123456789”, never seen before, is 100 %; “DE”: "
                  "60 % → 0 %");
    expect_labels(0, (const char *const[]){"012345678901234567890123456789012345678ä"},
                  (int[]){100}, 1,
                  "“012345678901234567890123456789012345678…”, never seen before, is 100 %; “DE”: "
                  "60 % → 0 %");
    expect_labels(0, (const char *const[]){"a\\nb\\u0085c\\\"d"}, (int[]){100}, 1,
                  "“a b c\"d”, never seen before, is 100 %; “DE”: 60 % → 0 %");
}

/* The longest texts fit; so do those of all numbers. */
Test(monitors_sentences, are_bounded)
{
    static const char numbers[] =
        "{\"bins\":{\"edges\":[-1.7976931348623157e308,-1.2345678901234568e-300,"
        "1.2345678901234568e-300,1.7976931348623157e308]},"
        "\"reference\":{\"counts\":[10000,10000,10000]}}";
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m", numbers, 201);
    expect_sentence(&service, "{\"counts\":[9000,10001,11000]}",
                    "[-1.79769e308, -1.23457e-300): 33 % → 30 %; "
                    "[1.23457e-300, 1.79769e308]: 33 % → 37 %");
    monitors_end(&service);
}

/* A divergence that is infinite is explained by the bins that make it so. */
Test(monitors_sentences, of_infinity_name_its_bins)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m",
                    "{\"bins\":{\"labels\":[\"a\",\"b\"]},"
                    "\"reference\":{\"probabilities\":[1,0]}}",
                    201);
    expect_sentence(&service, "{\"counts\":[900,100]}", "“b”, never seen before, is 10 %");
    monitors_end(&service);
}

/* The list tells of the last window: of what is left after a restart, of a window that came late, or was restated. */
Test(monitors_sentences, are_those_of_the_last_window)
{
    struct database database = database_new();
    struct api_service service = monitors_new_at(10, database.location);
    static const struct {
        const char *body, *expected;
    } steps[] = {
        {"{\"counts\":[352,352,176],\"missing\":120,\"timestamp\":7200}", "missing 0 % → 12 %"},
        {"{\"counts\":[384,384,192],\"overflow\":40,\"timestamp\":3600}", "missing 0 % → 12 %"},
        {"{\"counts\":[0,0,0],\"missing\":100,\"timestamp\":7200}", "missing 0 % → 20 %"},
        {"{\"counts\":[400,400,200],\"timestamp\":10800}", ""}};
    monitors_expect(&service, "PUT /monitors/g/m?window=3600s,0s", AGES, 201);
    for (size_t i = 0; i < COUNT(steps); i++) {
        monitors_expect(&service, "POST /monitors/g/m/observations", steps[i].body, 200);
        for (int j = 0; j < 2; j++) {
            json_t *list = monitors_get(&service, "GET /monitors", NULL, 200);
            cr_expect_str_eq(text_at(list, "monitors.0.sentence"), steps[i].expected, "%zu %d: %s",
                             i, j, text_at(list, "monitors.0.sentence"));
            json_decref(list);
            monitors_restart(&service, 10);
        }
    }
    monitors_end(&service);
    database_free(&database);
}

/* A verdict that no window shows alone has the sentence of the sum that decided: in the response, in lists, and when it is
 * read again. */
Test(monitors_sentences, are_about_the_sum_that_decided)
{
    static const char expected[] = "with the 1 before: [1, 2]: 50 % → 38 %; [0, 1): 50 % → 63 %";
    static const char *const reads[][2] = {{"GET /monitors/g/m/windows/latest", "sentence"},
                                           {"GET /monitors", "monitors.0.sentence"}};
    struct database database = database_new();
    struct api_service service = monitors_new_at(10, database.location);
    monitors_expect(&service, "PUT /monitors/g/m",
                    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5000,5000]}}", 201);
    expect_sentence(&service, "{\"counts\":[125,75]}", "[1, 2]: 50 % → 38 %; [0, 1): 50 % → 63 %");
    expect_sentence(&service, "{\"counts\":[125,75]}", expected);
    for (size_t i = 0; i < 2 * COUNT(reads); i++) {
        json_t *read = monitors_get(&service, reads[i / 2][0], NULL, 200);
        cr_expect_str_eq(text_at(read, reads[i / 2][1]), expected, "%s", reads[i / 2][0]);
        json_decref(read);
        monitors_restart(&service, 10);
    }
    monitors_end(&service);
    database_free(&database);
}

/* An interval above a value that has a bin of its own begins at the next double. */
Test(monitors_sentences, tell_of_intervals_as_people_write_them)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m",
                    "{\"bins\":{\"edges\":[0,4.940656458412465e-324,800,900]},"
                    "\"reference\":{\"counts\":[920,40,40]}}",
                    201);
    expect_sentence(&service, "{\"counts\":[500,400,100]}", "(0, 800): 4 % → 40 %; 0: 92 % → 50 %");
    monitors_end(&service);
}

/* Appends a text so many times as JSON. */
static void append_texts(struct api_buffer *to, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        api_append_format(to, "%s\"%s\"", to->data[to->size - 1] == '[' ? "" : ",", text);
}

/* A bin that is judged by its ratio: how many times, unless the reference has none of it. */
Test(monitors_sentences, tell_how_many_times_where_there_was_some)
{
    static const struct {
        const char *other;
        int n;
        const char *expected;
    } cases[] = {
        {"fraud", 60, "“fraud”: 0.2 % → 6 %, 30 times"},
        {"fraud", 300, "“fraud”: 0.2 % → 30 %, 150 times"},
        {"XX", 100, "“XX”, never seen before, is 10 %"},
        {"", 100, "missing 0 % → 10 %"},
    };
    struct api_service service = monitors_new(10);
    monitors_expect(
        &service, "PUT /monitors/g/m?ratio=2,4&pool=1",
        "{\"bins\":{\"labels\":[\"good\",\"fraud\"]},\"reference\":{\"counts\":[49900,100]}}", 201);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer body = {0};
        api_append_text(&body, "{\"values\":[");
        append_texts(&body, "good", 1000 - cases[i].n);
        append_texts(&body, cases[i].other, cases[i].n);
        api_append(&body, "]}", 3);
        expect_sentence(&service, body.data, cases[i].expected);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

/* The sentence of several windows names their most frequent new label, if the newest window has the label. */
Test(monitors_sentences, name_the_new_label_of_the_sum)
{
    static const char *const newest[][2] = {
        {"N0", "with the 3 before: other labels: 0 % → 2.3 %"},
        {"N1", "with the 3 before: “N1”, never seen before, is 2.3 %"},
    };
    for (size_t i = 0; i < COUNT(newest); i++) {
        struct api_service service = monitors_new(10);
        monitors_expect(
            &service, "PUT /monitors/g/m?pool=4",
            "{\"bins\":{\"labels\":[\"a\",\"b\"]},\"reference\":{\"counts\":[2500,2500]}}", 201);
        for (int window = 0; window < 4; window++) {
            struct api_buffer body = {0};
            api_append_text(&body, "{\"values\":[");
            append_texts(&body, "a", 100);
            append_texts(&body, "b", 100);
            append_texts(&body, window < 3 ? "N1" : newest[i][0], window < 3 ? 6 : 1);
            api_append(&body, "]}", 3);
            json_t *json =
                monitors_get(&service, "POST /monitors/g/m/observations", body.data, 200);
            if (window == 3)
                cr_expect_eq(strncmp(text_at(json, "sentence"), newest[i][1], strlen(newest[i][1])),
                             0, "%s", text_at(json, "sentence"));
            json_decref(json);
            api_buffer_free(&body);
        }
        monitors_end(&service);
    }
}

/* Sums of probabilities are 1 but for their rounding. */
Test(monitors_sentences, name_the_label_of_exact_probabilities)
{
    struct api_service service = monitors_new(10);
    monitors_expect(
        &service, "PUT /monitors/g/m?pool=1&ratio=2,4",
        "{\"bins\":{\"labels\":[\"L0\",\"L1\",\"L2\"]},\"reference\":{\"probabilities\":"
        "[0.6189146683235919,0.38107123658090586,1.4095095502460808e-05]}}",
        201);
    expect_sentence(&service, "{\"counts\":[44628,41020,8093]}",
                    "“L2”: < 0.1 % → 8.6 %, 6100 times");
    monitors_end(&service);
}
