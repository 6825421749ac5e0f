/* Bins and weights of monitors: made of values, given, refused. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Made of values */

/* A reference of values, and what it becomes. */
static const struct {
    const char *body, *bins, *reference;
} made[] = {
    /* labels of few numbers, and of texts: by frequency, ties by bytes */
    {"{\"values\":[3,1,1,2.5,-0.0,0,0]}, \"binning\":{\"method\":\"labels\"}",
     "{\"labels\":[\"0\",\"1\",\"2.5\",\"3\"]}",
     "{\"counts\":[3,2,1,1],\"missing\":0,\"other\":0}"},
    {"{\"values\":[10,10,10,9,-1,-0.0]}, \"binning\":{\"method\":\"labels\"}",
     "{\"labels\":[\"-1\",\"0\",\"9\",\"10\"]}",
     "{\"counts\":[1,1,1,3],\"missing\":0,\"other\":0}"},
    {"{\"values\":[\"10\",\"10\",\"9\"]}", "{\"labels\":[\"9\",\"10\"]}",
     "{\"counts\":[1,2],\"missing\":0,\"other\":0}"},
    {"{\"values\":[\"True\",\"TRUE\",true,\"false\"]}", "{\"labels\":[\"true\",\"false\"]}",
     "{\"counts\":[3,1],\"missing\":0,\"other\":0}"},
    /* by auto: labels of few whole numbers, and no more bins than a tenth of the values */
    {"{\"values\":[0,0,0,0]}", "{\"labels\":[\"0\"]}",
     "{\"counts\":[4],\"missing\":0,\"other\":0}"},
    {"{\"values\":[7,3,7]}", "{\"labels\":[\"3\",\"7\"]}",
     "{\"counts\":[1,2],\"missing\":0,\"other\":0}"},
    {"{\"values\":[0.5,0.5,1]}", "{\"edges\":[0.5,0.5000000000000001,1]}",
     "{\"counts\":[2,1],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[1,2,3,4,5]}", "{\"edges\":[1,3,5]}",
     "{\"counts\":[2,3],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[1.0,1,1e0,true]}", "{\"labels\":[\"1\",\"true\"]}",
     "{\"counts\":[3,1],\"missing\":0,\"other\":0}"},
    {"{\"values\":[true,false,true,null]}", "{\"labels\":[\"true\",\"false\"]}",
     "{\"counts\":[2,1],\"missing\":1,\"other\":0}"},
    {"{\"values\":[\"b\",\"a\",\"\\u00e9\",\"B\",null,\"NaN\",\"\"]}",
     "{\"labels\":[\"B\",\"a\",\"b\",\"\xc3\xa9\"]}",
     "{\"counts\":[1,1,1,1],\"missing\":3,\"other\":0}"},
    {"{\"values\":[\"1.0\",1,\"1\",true,\"true\"]}", "{\"labels\":[\"1\",\"true\",\"1.0\"]}",
     "{\"counts\":[2,2,1],\"missing\":0,\"other\":0}"},
    {"{\"values\":[\"None\",\"null\",\"NA\",\"nan\",\"none\"]}", "{\"labels\":[\"none\"]}",
     "{\"counts\":[1],\"missing\":4,\"other\":0}"},
    {"{\"values\":[0.1,1e300,1e21,123456789012345680000]}, \"binning\":{\"method\":\"labels\"}",
     "{\"labels\":[\"0.1\",\"1.2345678901234568e20\",\"1e21\",\"1e300\"]}",
     "{\"counts\":[1,1,1,1],\"missing\":0,\"other\":0}"},
    /* numbers by quantiles and by width, with infinities outside */
    {"{\"values\":[1,2,3,4,5]}, \"binning\":{\"method\":\"quantile\",\"bins\":2}",
     "{\"edges\":[1,3,5]}", "{\"counts\":[2,3],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[1,2,3,4,1e999,-1e999,null]}, \"binning\":{\"method\":\"quantile\",\"bins\":3}",
     "{\"edges\":[1,2,3,4]}", "{\"counts\":[1,1,2],\"missing\":1,\"overflow\":1,\"underflow\":1}"},
    /* a value that is most of them has a bin of its own, and the others are cut by themselves, by tens at most */
    {"{\"values\":[0,0,0,0,0,0,0,0,0,0,0,0,1,2,3,4]}, "
     "\"binning\":{\"method\":\"quantile\",\"bins\":4}",
     "{\"edges\":[0,4.940656458412465e-324,4]}",
     "{\"counts\":[12,4],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,"
     "1,2,"
     "3,4,1,2,3,4,1,2,6,7,8,9,6,7,8,9,9,9]}, \"binning\":{\"method\":\"quantile\",\"bins\":3}",
     "{\"edges\":[1,5,5.000000000000001,9]}",
     "{\"counts\":[10,40,10],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[0,10,4]}, \"binning\":{\"method\":\"width\",\"bins\":4}",
     "{\"edges\":[0,2.5,5,7.5,10]}",
     "{\"counts\":[1,1,0,1],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[7,7,7]}, \"binning\":{\"method\":\"width\"}",
     "{\"edges\":[7,7.000000000000001]}",
     "{\"counts\":[3],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[-0.0]}, \"binning\":{\"method\":\"width\"}",
     "{\"edges\":[0,4.940656458412465e-324]}",
     "{\"counts\":[1],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[0,0,0,0,8]}, \"binning\":{\"method\":\"quantile\",\"bins\":2}",
     "{\"edges\":[0,4.940656458412465e-324,8]}",
     "{\"counts\":[4,1],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[3,4]}, \"binning\":{\"method\":\"labels\"}", "{\"labels\":[\"3\",\"4\"]}",
     "{\"counts\":[1,1],\"missing\":0,\"other\":0}"},
    {"{\"values\":[\"x\",\"x\"]}, \"binning\":{\"method\":\"width\"}", "{\"labels\":[\"x\"]}",
     "{\"counts\":[2],\"missing\":0,\"other\":0}"},
    {"{\"values\":[true,true,false]}, \"binning\":{\"method\":\"width\",\"bins\":2}",
     "{\"edges\":[0,0.5,1]}", "{\"counts\":[1,2],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[1e999,5]}, \"binning\":{\"method\":\"labels\"}",
     "{\"labels\":[\"5\",\"Infinity\"]}", "{\"counts\":[1,1],\"missing\":0,\"other\":0}"},
    /* strings that stand for numbers that JSON lacks */
    {"{\"values\":[1,2,3,4,\"Infinity\",\"-Infinity\",\"NaN\",\"Inf\",\"-Inf\"]}, "
     "\"binning\":{\"method\":\"width\",\"bins\":3}",
     "{\"edges\":[1,2,3,4]}", "{\"counts\":[1,1,2],\"missing\":1,\"overflow\":2,\"underflow\":2}"},
    {"{\"values\":[7,\"Inf\",\"Infinity\",\"NaN\"]}, \"binning\":{\"method\":\"labels\"}",
     "{\"labels\":[\"7\",\"Infinity\"]}", "{\"counts\":[1,2],\"missing\":1,\"other\":0}"},
    {"{\"values\":[7,\"x\",\"Inf\",1e999,\"Infinity\",\"NaN\"]}",
     "{\"labels\":[\"Infinity\",\"7\",\"Inf\",\"x\"]}",
     "{\"counts\":[2,1,1,1],\"missing\":1,\"other\":0}"},
    {"{\"values\":[0,1,\"Infinity\",\"-Inf\"]}, \"bins\":{\"edges\":[0,1]}", "{\"edges\":[0,1]}",
     "{\"counts\":[2],\"missing\":0,\"overflow\":1,\"underflow\":1}"},
    {"{\"values\":[\"Inf\",\"-Inf\",\"NaN\",1]}, \"bins\":{\"labels\":[\"Infinity\",\"NaN\"]}",
     "{\"labels\":[\"Infinity\",\"NaN\"]}", "{\"counts\":[1,1],\"missing\":0,\"other\":2}"},
    /* bins that are given, with values */
    {"{\"values\":[-1,0,0.5,1,2,3,null,-1e999]}, \"bins\":{\"edges\":[0,1,2]}",
     "{\"edges\":[0,1,2]}", "{\"counts\":[2,2],\"missing\":1,\"overflow\":1,\"underflow\":2}"},
    {"{\"values\":[1,\"1.0\",true,\"NaN\",null,\"z\"]}, \"bins\":{\"labels\":[\"1\",\"NaN\"]}",
     "{\"labels\":[\"1\",\"NaN\"]}", "{\"counts\":[2,1],\"missing\":1,\"other\":2}"},
    {"{\"values\":[1,2.5,true,false,\"1e21\"]}, \"bins\":{\"labels\":[1.0,25e-1,true,1e21]}",
     "{\"labels\":[\"1\",\"2.5\",\"true\",\"1e21\"]}",
     "{\"counts\":[1,1,1,1],\"missing\":0,\"other\":1}"},
    /* outer edges may be infinite */
    {"{\"values\":[-1e999,-5,0,1,1e999,null]}, "
     "\"bins\":{\"edges\":[\"-Infinity\",0,1,\"Infinity\"]}",
     "{\"edges\":[\"-Infinity\",0,1,\"Infinity\"]}",
     "{\"counts\":[2,1,2],\"missing\":1,\"overflow\":0,\"underflow\":0}"},
    {"{\"counts\":[1,2]}, \"bins\":{\"edges\":[0,0.5,\"+Inf\"]}",
     "{\"edges\":[0,0.5,\"Infinity\"]}",
     "{\"counts\":[1,2],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
    {"{\"values\":[\"\",null]}, \"bins\":{\"labels\":[\"\"]}", "{\"labels\":[\"\"]}",
     "{\"counts\":[1],\"missing\":1,\"other\":0}"},
};

/* Appends the items of a list ten times, so that each label is seen often enough for a bin of its own. */
static void append_tenfold(struct api_buffer *to, const char *items, size_t size, char between)
{
    for (int i = 0; i < 10; i++) {
        api_append(to, &between, i > 0);
        api_append(to, items, size);
    }
}

/* Appends a reference with its values ten times if labels are to be made of them. */
static bool append_reference(struct api_buffer *to, const char *body, const char *bins)
{
    const char *first = strchr(body, '[') + 1, *end = strchr(first, ']');
    bool tenfold = strncmp(bins, "{\"labels\"", 9) == 0 && !strstr(body, "\"bins\":{");
    if (!tenfold) {
        api_append_text(to, body);
        return false;
    }
    api_append(to, body, (size_t)(first - body));
    append_tenfold(to, first, (size_t)(end - first), ',');
    api_append_text(to, end);
    return true;
}

/* Expects counts, or ten times as many. */
static void expect_reference(const json_t *json, const char *path, const char *reference,
                             bool tenfold)
{
    struct api_buffer expected = {0};
    for (const char *p = reference; *p; p++) {
        bool is_end = *p >= '1' && *p <= '9' && (p[1] < '0' || p[1] > '9');
        api_append(&expected, p, 1);
        api_append(&expected, "0", tenfold && is_end);
    }
    api_append(&expected, "", 1);
    expect_counts_at(json, path, expected.data);
    api_buffer_free(&expected);
}

Test(monitors_bins, values_make_bins_and_counts)
{
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(made); i++) {
        struct api_buffer body = {0};
        api_append_text(&body, "{\"reference\":");
        bool tenfold = append_reference(&body, made[i].body, made[i].bins);
        api_append(&body, "}", 2);
        struct answer answer = monitors_ask(&service, "PUT /monitors/g/m", body.data);
        cr_expect_leq(answer.status, 201, "%s: %s", body.data, text_of(answer.json, "detail"));
        char *got = json_dumps(at(answer.json, "bins"), JSON_COMPACT | JSON_REAL_PRECISION(16));
        cr_expect_str_eq(got ? got : "", made[i].bins, "%s: %s", body.data, got);
        free(got);
        expect_reference(answer.json, "reference", made[i].reference, tenfold);
        answer_free(&answer);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

/* ---- CSV */

Test(monitors_bins, columns_of_csv_are_numbers_if_half_of_their_fields_are)
{
    static const struct {
        const char *fields, *bins, *reference;
    } cases[] = {
        /* texts among the whole numbers of labels are labels */
        {"1 1.0 x 2", "{\"labels\":[\"1\",\"2\",\"x\"]}",
         "{\"counts\":[2,1,1],\"missing\":0,\"other\":0}"},
        {"1 x", "{\"labels\":[\"1\",\"x\"]}", "{\"counts\":[1,1],\"missing\":0,\"other\":0}"},
        {"1.5 x", "{\"edges\":[1.5,1.5]}",
         "{\"counts\":[1],\"missing\":1,\"overflow\":0,\"underflow\":0}"},
        {"1 x y", "{\"labels\":[\"1\",\"x\",\"y\"]}",
         "{\"counts\":[1,1,1],\"missing\":0,\"other\":0}"},
        {"1.0 1 x y NA", "{\"labels\":[\"1\",\"x\",\"y\"]}",
         "{\"counts\":[2,1,1],\"missing\":1,\"other\":0}"},
        /* a whole number that begins with 0 makes texts of all */
        {"00501 1 10001", "{\"labels\":[\"1\",\"00501\",\"10001\"]}",
         "{\"counts\":[1,1,1],\"missing\":0,\"other\":0}"},
        {"0 0.5 00", "{\"labels\":[\"0\",\"00\",\"0.5\"]}",
         "{\"counts\":[1,1,1],\"missing\":0,\"other\":0}"},
        {"0 0.5 -0.25", "{\"edges\":[-0.25,0,0.5]}",
         "{\"counts\":[1,2],\"missing\":0,\"overflow\":0,\"underflow\":0}"},
        {"1.0 x y", "{\"labels\":[\"1.0\",\"x\",\"y\"]}",
         "{\"counts\":[1,1,1],\"missing\":0,\"other\":0}"},
        {"true false true", "{\"labels\":[\"true\",\"false\"]}",
         "{\"counts\":[2,1],\"missing\":0,\"other\":0}"},
        {"NaN NA None null 5", "{\"labels\":[\"5\"]}",
         "{\"counts\":[1],\"missing\":4,\"other\":0}"},
        {"inf -Infinity 1", "{\"edges\":[1,1.0]}",
         "{\"counts\":[1],\"missing\":0,\"overflow\":1,\"underflow\":1}"},
        {"True FALSE true NA", "{\"labels\":[\"true\",\"false\"]}",
         "{\"counts\":[2,1],\"missing\":1,\"other\":0}"},
        {"True no true", "{\"labels\":[\"True\",\"no\",\"true\"]}",
         "{\"counts\":[1,1,1],\"missing\":0,\"other\":0}"},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer body = {0};
        bool tenfold = strncmp(cases[i].bins, "{\"labels\"", 9) == 0;
        api_append_text(&body, "a ");
        if (tenfold)
            append_tenfold(&body, cases[i].fields, strlen(cases[i].fields), ' ');
        else
            api_append_text(&body, cases[i].fields);
        api_append(&body, "", 1);
        for (char *p = body.data; *p; p++)
            *p = *p == ' ' ? '\n' : *p;
        json_t *json = monitors_get(&service, "PUT /monitors/g", body.data, i ? 200 : 201);
        expect_at(json, "monitors.0.bins", cases[i].bins);
        expect_reference(json, "monitors.0.reference", cases[i].reference, tenfold);
        json_decref(json);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

Test(monitors_bins, tables_tell_what_they_leave_out)
{
    struct api_service service = monitors_new(10);
    json_t *json = monitors_get(&service, "PUT /monitors/g",
                                ",a,b,c\n0,1.5,,x\n1,two,NA,y\n2,3,\"\",y\n", 201);
    expect_at(json, "monitors.0.name", "\"a\"");
    expect_counts_at(json, "monitors.0.reference",
                     "{\"counts\":[1,1],\"missing\":1,\"overflow\":0,\"underflow\":0}");
    expect_at(json, "monitors.1.name", "\"c\"");
    expect_at(json, "warnings.0.code", "\"column_unnamed\"");
    expect_at(json, "warnings.1.code", "\"values_unreadable\"");
    expect_at(json, "warnings.1.column", "\"a\"");
    expect_at(json, "warnings.1.count", "1");
    expect_at(json, "warnings.1.line", "3");
    expect_at(json, "warnings.2.code", "\"column_empty\"");
    expect_at(json, "warnings.2.column", "\"b\"");
    expect_at(json, "warnings.3.code", "\"labels_chosen\"");
    cr_expect_eq(json_array_size(at(json, "warnings")), 4);
    json_decref(json);
    monitors_refused(&service, "PUT /monitors/h", ",b\n0,\n", "reference_empty");
    monitors_refused(&service, "PUT /monitors/h", "a,b\n", "reference_empty");
    monitors_refused(&service, "PUT /monitors/h?bins=0", "a\n1\n", "option_invalid #/binning/bins");
    cr_expect_eq(monitors_count(&service), 2);
    monitors_end(&service);
}

/* ---- Limits */

/* Makes {"bins": {MEMBER: [...]}, ...} of n items. */
static void write_many(struct api_buffer *to, bool labelled, size_t n)
{
    api_append_text(to, labelled ? "{\"bins\":{\"labels\":[" : "{\"bins\":{\"edges\":[");
    for (size_t i = 0; i < n; i++)
        api_append_format(to, labelled ? "%s\"%zu\"" : "%s%zu", i ? "," : "", i);
    api_append(to, "]},\"compare\":\"previous:1\"}", 27);
}

Test(monitors_bins, a_thousand_is_the_limit)
{
    struct api_service service = monitors_new(10);
    for (int labelled = 0; labelled <= 1; labelled++)
        for (size_t n = 999; n <= 1002; n++) {
            struct api_buffer body = {0};
            write_many(&body, labelled, n);
            struct answer answer = monitors_ask(&service, "PUT /monitors/g/m", body.data);
            cr_expect_eq(answer.status >= 400, n > 1001u - (unsigned)labelled, "%zu: %d", n,
                         answer.status);
            answer_free(&answer);
            api_buffer_free(&body);
        }
    monitors_end(&service);
}

/* Labels that are each seen ten times have a bin each, the most frequent first, unless there are more than a thousand: then
 * one half of the rows chooses those that it has five times, and the other is counted. */
Test(monitors_bins, labels_that_are_seen_often_have_a_bin_each)
{
    struct api_service service = monitors_new(10);
    for (size_t n = 1000; n <= 1001; n++) {
        struct api_buffer body = {0};
        api_append_text(&body, "a");
        for (size_t round = 0; round < 12; round++)
            for (size_t i = 0; i < n; i++)
                if (i % 3 + 10 > round)
                    api_append_format(&body, "\nv%04zu", i);
        api_append(&body, "", 1);
        json_t *json =
            monitors_get(&service, "PUT /monitors/g/a", body.data, n == 1000 ? 201 : 200);
        double labels = (double)json_array_size(at(json, "bins.labels"));
        double counted = number_at(json, "reference.other"), rows = 11 * (double)n - 1;
        for (size_t i = 0; i < (size_t)labels; i++)
            counted += json_number_value(json_array_get(at(json, "reference.counts"), i));
        if (n == 1000) {
            cr_expect_eq(labels, 1000);
            expect_at(json, "bins.labels.0", "\"v0002\"");
            expect_at(json, "bins.labels.333", "\"v0001\"");
            expect_at(json, "bins.labels.999", "\"v0999\"");
            cr_expect_null(at(json, "warnings"));
            cr_expect_eq(counted, rows);
        } else {
            expect_at(json, "warnings.0.code", "\"labels_chosen\"");
            expect_at(json, "warnings.1.code", "\"labels_cut\"");
            cr_expect_eq(number_at(json, "warnings.0.count"), labels);
            cr_expect_eq(number_at(json, "warnings.1.count"), 1001 - labels);
            cr_expect_lt(fabs(counted - rows / 2), 4 * sqrt(rows / 4));
            cr_expect_gt(labels, 500);
            cr_expect_eq(counted + number_at(json, "reference.choosing"), rows);
        }
        json_decref(json);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

/* A malformed body has taken memory before it is refused. */
Test(monitors_bins, malformed_bodies_give_their_memory_back)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    write_many(&body, false, 1000);
    body.data[strlen(body.data) - 1] = ' ';
    monitors_refused(&service, "PUT /monitors/g/m", body.data, "json_malformed");
    monitors_refused(&service, "PUT /monitors/g", body.data, "json_malformed");
    cr_expect_eq(bytes_held(), 0);
    api_buffer_free(&body);
    monitors_end(&service);
}

/* ---- Refused */

#define EDGES "{\"bins\":{\"edges\":[0,1,2]},\"reference\":"
#define LABELS "{\"bins\":{\"labels\":[\"a\",\"b\"]},\"reference\":"

static const struct {
    const char *body, *problem;
} wrong[] = {
    {"{}", "bins_missing #/bins"},
    {"{\"bins\":null}", "bins_missing #/bins"},
    {"{\"bins\":[0,1],\"compare\":\"previous:1\"}", "bins_invalid #/bins"},
    {"{\"bins\":{}}", "bins_invalid #/bins"},
    {"{\"bins\":{\"edges\":[0,1],\"labels\":[\"a\"]}}", "bins_invalid #/bins"},
    {"{\"bins\":{\"edge\":[0,1]}}", "bins_invalid #/bins"},
    {"{\"bins\":{\"edges\":5}}", "bins_invalid #/bins/edges"},
    {"{\"bins\":{\"edges\":[0]}}", "bins_invalid #/bins/edges"},
    {"{\"bins\":{\"edges\":[0,0]}}", "bins_invalid #/bins/edges/1 ~ascend"},
    {"{\"bins\":{\"edges\":[-0.0,0]}}", "bins_invalid #/bins/edges/1 ~ascend"},
    {"{\"bins\":{\"edges\":[0,1,null]}}", "bins_invalid #/bins/edges/2 ~numbers"},
    {"{\"bins\":{\"edges\":[\"a\",1]}}", "bins_invalid #/bins/edges/0 ~numbers"},
    {"{\"bins\":{\"edges\":[0,1e999]}}", "number_too_large"},
    {"{\"bins\":{\"edges\":[0,\"0.5\",1]}}", "bins_invalid #/bins/edges/1 ~numbers"},
    {"{\"bins\":{\"edges\":[\"Infinity\",1]}}", "bins_invalid #/bins/edges/0 ~-Infinity"},
    {"{\"bins\":{\"edges\":[0,\"Infinity\",1]}}", "bins_invalid #/bins/edges/1 ~numbers"},
    {"{\"bins\":{\"edges\":[0,\"-Infinity\"]}}", "bins_invalid #/bins/edges/1 ~numbers"},
    {"{\"bins\":{\"edges\":[\"-Infinity\",\"-Infinity\"]}}", "bins_invalid #/bins/edges/1"},
    {"{\"bins\":{\"edges\":[0,\"NaN\"]}}", "bins_invalid #/bins/edges/1 ~numbers"},
    {"{\"bins\":{\"labels\":[]}}", "bins_invalid #/bins/labels"},
    {"{\"bins\":{\"labels\":[\"a\",null]}}", "bins_invalid #/bins/labels/1 ~strings"},
    {"{\"bins\":{\"labels\":[[\"a\"],\"a\"]}}", "bins_invalid #/bins/labels/0 ~strings"},
    {"{\"bins\":{\"labels\":[\"1\",1.0]}}", "bins_invalid #/bins/labels/1 ~distinct"},
    {"{\"bins\":{\"labels\":[true,\"true\"]}}", "bins_invalid #/bins/labels/1 ~distinct"},
    {"{\"bins\":{\"labels\":[\"a\",\"b\",\"a\"]}}", "bins_invalid #/bins/labels/2 ~distinct"},
    {"{\"bins\":{\"edges\":[0,1]}}", "reference_missing #/reference"},
    {EDGES "null}", "reference_missing #/reference"},
    {EDGES "5}", "counts_invalid #/reference"},
    {EDGES "{}}", "counts_invalid #/reference"},
    {EDGES "{\"counts\":[1,2],\"probabilities\":[0.5,0.5]}}", "counts_invalid #/reference"},
    {EDGES "{\"counts\":[0,0]}}", "reference_empty #/reference"},
    {EDGES "{\"counts\":null}}", "counts_invalid #/reference/counts"},
    {EDGES "{\"counts\":[1]}}", "counts_invalid #/reference/counts ~2 numbers"},
    {EDGES "{\"counts\":[1,2,3]}}", "counts_invalid #/reference/counts"},
    {EDGES "{\"counts\":[1,-1]}}", "counts_invalid #/reference/counts/1"},
    {EDGES "{\"counts\":[1,1.5]}}", "counts_invalid #/reference/counts/1 ~whole"},
    {EDGES "{\"counts\":[1,null]}}", "counts_invalid #/reference/counts/1"},
    {EDGES "{\"counts\":[1,9007199254740994]}}", "counts_invalid #/reference/counts/1"},
    {EDGES "{\"counts\":[9007199254740991,2]}}",
     "counts_invalid #/reference/counts ~sum to at most"},
    {EDGES "{\"counts\":[1,2],\"n\":4}}", "counts_invalid #/reference/n ~sum"},
    {EDGES "{\"counts\":[1,2],\"n\":\"3\"}}", "counts_invalid #/reference/n"},
    {EDGES "{\"counts\":[1,2],\"other\":1}}", "counts_invalid #/reference/other ~labels"},
    {EDGES "{\"counts\":[1,2],\"missing\":-1}}", "counts_invalid #/reference/missing"},
    {EDGES "{\"counts\":[1,2],\"underflow\":\"1\"}}", "counts_invalid #/reference/underflow"},
    {LABELS "{\"counts\":[1,2],\"overflow\":1}}", "counts_invalid #/reference/overflow ~edges"},
    {EDGES "{\"probabilities\":[0.5,0.4]}}", "counts_invalid #/reference/probabilities ~sum"},
    {EDGES "{\"probabilities\":[0.5,0.5],\"missing\":0.1}}",
     "counts_invalid #/reference/probabilities"},
    {EDGES "{\"probabilities\":[1.1,-0.1]}}", "counts_invalid #/reference/probabilities/0"},
    {EDGES "{\"probabilities\":[0.5,0.5],\"n\":0}}", "counts_invalid #/reference/n"},
    {EDGES "{\"probabilities\":[0.5,0.5],\"n\":\"9\"}}", "counts_invalid #/reference/n"},
    {EDGES "{\"probabilities\":[0.5,0.5],\"n\":1e16}}", "counts_invalid #/reference/n"},
    {EDGES "{\"count\":[1,2]}}", "option_unknown #/reference/count ~'counts'"},
    {EDGES "{\"zzzz\":[1,2]}}", "counts_invalid #/reference/zzzz"},
    {EDGES "{\"values\":[1,\"x\"]}}", "value_not_number #/reference/values/1"},
    {"{\"reference\":{\"values\":[]}}", "reference_empty #/reference"},
    {"{\"reference\":{\"values\":[null,1e999]}}", "reference_empty #/reference"},
    {"{\"reference\":{\"values\":[\"NaN\",\"Infinity\"]}}", "reference_empty #/reference"},
    {"{\"reference\":{\"values\":[1],\"counts\":[1]}}", "counts_invalid #/reference/counts"},
    {"{\"reference\":{\"counts\":[1]}}", "bins_missing #/bins"},
};

Test(monitors_bins, wrong_ones_are_told_with_their_places)
{
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(wrong); i++)
        monitors_refused(&service, "PUT /monitors/g/m", wrong[i].body, wrong[i].problem);
    cr_expect_eq(monitors_count(&service), 0);
    monitors_end(&service);
}

/* ---- Weights */

/* Weights of observations, as the counts that they become; a monitor of EDGES. */
Test(monitors_bins, observations_are_values_counts_or_probabilities)
{
    static const struct {
        const char *body, *counts; /* or a problem */
    } cases[] = {
        {"{\"counts\":[1,2]}", "0 1 2 0 0"},
        {"{\"counts\":[1,2],\"n\":3,\"underflow\":4,\"overflow\":5,\"missing\":6}", NULL},
        {"{\"counts\":[1,2],\"n\":18,\"underflow\":4,\"overflow\":5,\"missing\":6}", "4 1 2 5 6"},
        {"{\"counts\":[0,9007199254740992]}", "0 0 9007199254740992 0 0"},
        {"{\"probabilities\":[0.25,0.75],\"n\":8}", "0 2 6 0 0"},
        {"{\"probabilities\":[0.25,0.25],\"missing\":[0.5],\"n\":[8],\"timestamp\":[1000000000]}",
         "0 2 2 0 4"},
        {"{\"probabilities\":[0.333333333,0.666666666],\"n\":3}", "0 1 2 0 0"},
        {"{\"probabilities\":[0,0],\"missing\":1,\"n\":7}", "0 0 0 0 7"},
        {"{\"probabilities\":[0.5,0.5]}", NULL},
        {"{\"probabilities\":[0.5,0.5],\"n\":3}", NULL},
        {"{\"counts\":[0,0]}", NULL},
        {"{\"values\":[0,1,2,3,-1,null,\"NaN\"]}", "1 1 2 1 2"},
        {"{\"values\":[\"Infinity\",\"-Infinity\",\"Inf\",\"-Inf\",\"NaN\",1]}", "2 0 1 2 1"},
        {"{\"values\":[1,\"infinity\"]}", NULL},
        {"{\"values\":[1,\"+Infinity\"]}", NULL},
    };
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m", EDGES "{\"counts\":[1,2]}}", 201);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char got[200] = "";
        struct answer answer = monitors_ask(&service, "POST /monitors/g/m/evaluate", cases[i].body);
        cr_expect_eq(answer.status, cases[i].counts ? 200 : 422, "%s: %d", cases[i].body,
                     answer.status);
        double n = number_at(answer.json, "n");
        for (size_t j = 0; cases[i].counts && j < 5; j++) {
            const json_t *bin = json_array_get(at(answer.json, "bins"), j);
            size_t used = strlen(got);
            snprintf(got + used, sizeof got - used, "%s%.17g", j ? " " : "",
                     round(number_at(bin, "current") * n));
        }
        cr_expect(!cases[i].counts || strcmp(got, cases[i].counts) == 0, "%s: %s", cases[i].body,
                  got);
        answer_free(&answer);
    }
    monitors_end(&service);
}
