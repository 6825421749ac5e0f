/* Valid and invalid requests, handled in this process. */
#include "api/endpoints.h"
#include "api/loss/codecs.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct bad {
    const char *query, *body;
    int status;
    const char *code, *pointer; /* "" for none */
} bad[] = {
    /* not JSON */
    {NULL, "", 400, "json_malformed", ""},
    {NULL, "{", 400, "json_malformed", ""},
    {NULL, "{\"input\": [1, 2", 400, "json_malformed", ""},
    {NULL, "{\"input\": [1 2], \"target\": [1, 2]}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [1], \"target\": [1],}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [1],, \"target\": [1]}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [1] \"target\": [1]}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [1], \"target\": [1]} x", 400, "json_malformed", ""},
    {NULL, "{\"input\": [01], \"target\": [1]}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [+1], \"target\": [1]}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [1.], \"target\": [1]}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [-], \"target\": [1]}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [nan], \"target\": [1]}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [1], \"target\": [1], \"reduction\": NaN}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [1], \"target\": [1], \"reduction\": 'sum'}", 400, "json_malformed", ""},
    {NULL, "{\"input\": [1], \"input\": [1], \"target\": [1]}", 400, "tensor_repeated", "#/input"},
    {NULL, "{\"compat\": \"math\", \"compat\": \"math\", \"input\": 1, \"target\": 1}", 400,
     "json_malformed", ""},
    {NULL, "{\"input\": [1], \"target\": [1], \"\xff\": 1}", 400, "json_malformed", ""},
    /* options */
    {"reduction=sum&reduction=mean", "{\"input\": 1, \"target\": 1}", 400, "option_conflict",
     "reduction"},
    {"reduction=sum", "{\"input\": 1, \"target\": 1, \"reduction\": \"mean\"}", 400,
     "option_conflict", "#/reduction"},
    {"reduction=%zz", "{\"input\": 1, \"target\": 1}", 400, "query_malformed", ""},
    {"reduction=%00", "{\"input\": 1, \"target\": 1}", 400, "query_malformed", ""},
    {"reduktion=sum", "{\"input\": 1, \"target\": 1}", 422, "option_unknown", "reduktion"},
    {"log_target=maybe", "{\"input\": 1, \"target\": 1}", 422, "option_invalid", "log_target"},
    {"log_target=null", "{\"input\": 1, \"target\": 1}", 422, "option_invalid", "log_target"},
    {NULL, "{\"input\": 1, \"target\": 1, \"a/b~c \": 1}", 422, "option_unknown", "#/a~1b~0c%20"},
    {NULL, "{\"input\": 1, \"target\": 1, \"reduction\": \"bogus\"}", 422, "reduction_invalid",
     "#/reduction"},
    {NULL, "{\"input\": 1, \"target\": 1, \"reduction\": null}", 422, "option_invalid",
     "#/reduction"},
    {NULL, "{\"input\": 1, \"target\": 1, \"reduction\": [\"sum\", \"sum\"]}", 422,
     "option_invalid", "#/reduction"},
    {NULL, "{\"input\": 1, \"target\": 1, \"reduction\": [[\"sum\"]]}", 422, "option_invalid",
     "#/reduction"},
    {NULL, "{\"input\": 1, \"target\": 1, \"reduction\": []}", 422, "option_invalid",
     "#/reduction"},
    {NULL, "{\"input\": 1, \"target\": 1, \"log_target\": 1}", 422, "option_invalid",
     "#/log_target"},
    {NULL, "{\"input\": 1, \"target\": 1, \"size_average\": \"true\"}", 422, "option_invalid",
     "#/size_average"},
    {NULL, "{\"input\": 1, \"target\": 1, \"dtype\": \"int64\"}", 422, "dtype_unsupported",
     "#/dtype"},
    {NULL, "{\"input\": 1, \"target\": 1, \"compat\": \"jax\"}", 422, "compat_invalid", "#/compat"},
    {"dim=2", "{\"input\": [[1]], \"target\": [[1]]}", 422, "dim_invalid", "dim"},
    {NULL,
     "{\"input\": [], \"target\": [], \"shape\": [1000000000000, 0], \"gradient\": \"input\"}", 422,
     "shape_invalid", ""},
    {"reduction=none&gradient=input",
     "{\"input\": [], \"target\": [], \"shape\": [1000000000000, 0], \"dim\": 0}", 422,
     "shape_invalid", ""},
    {"dim=x", "{\"input\": 1, \"target\": 1}", 422, "dim_invalid", "dim"},
    {"dim=0,0", "{\"input\": 1, \"target\": 1}", 422, "dim_invalid", "dim"},
    {NULL, "{\"input\": [1], \"target\": [1], \"dim\": [0, -1]}", 422, "dim_invalid", "#/dim"},
    {NULL, "{\"input\": 1, \"target\": 1, \"dim\": 1.5}", 422, "option_invalid", "#/dim"},
    {NULL, "{\"input\": 1, \"target\": 1, \"dim\": 99}", 422, "dim_invalid", "#/dim"},
    {"dim=0", "{\"input\": 1, \"target\": 1, \"dim\": -1}", 400, "option_conflict", "#/dim"},
    {"base=10", "{\"input\": 1, \"target\": 1}", 422, "base_invalid", "base"},
    {NULL, "{\"input\": 1, \"target\": 1, \"base\": 10}", 422, "base_invalid", "#/base"},
    {NULL, "{\"input\": 1, \"target\": 1, \"reduction\": 2}", 422, "option_invalid", "#/reduction"},
    {"target_space=logits", "{\"input\": 1, \"target\": 1}", 422, "space_invalid", "target_space"},
    {"log_target=true&target_space=prob", "{\"input\": 1, \"target\": 1}", 422, "space_conflict",
     "target_space"},
    {"log_target=false&target_space=log_prob", "{\"input\": 1, \"target\": 1}", 422,
     "space_conflict", "target_space"},
    {"divergence=jeffreys", "{\"input\": 1, \"target\": 1}", 422, "divergence_invalid",
     "divergence"},
    {"divergence=js&beta=1.5", "{\"input\": 1, \"target\": 1}", 422, "beta_invalid", "beta"},
    {"divergence=js&beta=nan", "{\"input\": 1, \"target\": 1}", 422, "beta_invalid", "beta"},
    {"divergence=js&beta=", "{\"input\": 1, \"target\": 1}", 422, "beta_invalid", "beta"},
    {"divergence=skew", "{\"input\": 1, \"target\": 1, \"alpha\": -0.1}", 422, "alpha_invalid",
     "#/alpha"},
    {"divergence=skew", "{\"input\": 1, \"target\": 1, \"alpha\": null}", 422, "option_invalid",
     "#/alpha"},
    {"beta=0", "{\"input\": 1, \"target\": 1}", 422, "beta_unused", "beta"},
    {"divergence=reverse", "{\"input\": 1, \"target\": 1, \"alpha\": 0.5}", 422, "alpha_unused",
     "#/alpha"},
    {"scale=2", "{\"input\": 1, \"target\": 1}", 422, "scale_invalid", "scale"},
    {"scale=temperature_squared", "{\"input\": 1, \"target\": 1}", 422, "temperature_unused",
     "scale"},
    {"divergence=reverse&compat=math", "{\"input\": 1, \"target\": [1]}", 422, "shape_mismatch",
     "#/target"},
    {"divergence=reverse&compat=math", "{\"input\": [-1, -1], \"target\": [1, -1]}", 422,
     "target_negative", "#/target/1"},
    {"temperature=0", "{\"input\": 1, \"target\": 1}", 422, "temperature_invalid", "temperature"},
    {"temperature=inf", "{\"input\": 1, \"target\": 1}", 422, "temperature_invalid", "temperature"},
    {"temperature=2x", "{\"input\": 1, \"target\": 1}", 422, "temperature_invalid", "temperature"},
    {"temperature=2", "{\"input\": 1, \"target\": 1}", 422, "temperature_unused", "temperature"},
    {"temperature=2&input_space=prob", "{\"input\": 1, \"target\": 1}", 422, "temperature_unused",
     "temperature"},
    {NULL, "{\"input\": 1, \"target\": 1, \"temperature\": 0.5}", 422, "temperature_unused",
     "#/temperature"},
    {"compat=math&input_space=prob", "{\"input\": [[1, 2], [-3, 4]], \"target\": [[1, 2], [3, 4]]}",
     422, "input_negative", "#/input/1/0"},
    {NULL, "{\"input\": 1, \"target\": 1, \"temperature\": -1.5}", 422, "temperature_invalid",
     "#/temperature"},
    {NULL, "{\"input\": 1, \"target\": 1, \"temperature\": true}", 422, "option_invalid",
     "#/temperature"},
    {NULL, "{\"input\": 1, \"target\": 1, \"temperature\": 1e-309}", 422, "temperature_invalid",
     "#/temperature"},
    {"broadcast=true", "{\"input\": [1, 2, 3], \"target\": [1, 2]}", 422, "shape_mismatch",
     "#/target"},
    {NULL, "{\"input\": [1, 2], \"target\": [1, 2], \"weight\": [[1, 2]]}", 422, "shape_mismatch",
     "#/weight"},
    {"dim=0", "{\"input\": [1, 2], \"target\": [1, 2], \"mask\": [1, 0]}", 422, "shape_mismatch",
     "#/mask"},
    {NULL, "{\"input\": [1, 2], \"target\": [1, 2], \"mask\": [1, 0.5]}", 422, "element_invalid",
     "#/mask/1"},
    {NULL, "{\"input\": [1, 2], \"target\": [1, 2], \"mask\": [1, null]}", 422, "element_invalid",
     "#/mask/1"},
    {NULL, "{\"input\": [1, 2], \"target\": [1, 2], \"weight\": [1, true]}", 422, "element_invalid",
     "#/weight/1"},
    {"compat=math", "{\"input\": [1, 2, 3], \"target\": [-1, -2, 3], \"mask\": [0, 1, 1]}", 422,
     "target_negative", "#/target/1"},
    {"dim=1", "{\"input\": [], \"target\": [], \"shape\": [1000000000000000, 0], \"weight\": 1}",
     422, "shape_invalid", ""},
    {"dim=1", "{\"input\": [], \"target\": [], \"shape\": [1000000000000000, 0], \"mask\": 1}", 422,
     "shape_invalid", ""},
    {"dim=1&reduction=none", "{\"input\": [], \"target\": [], \"shape\": [300000000, 0]}", 422,
     "shape_invalid", ""},
    {"gradient=loss", "{\"input\": 1, \"target\": 1}", 422, "option_invalid", "gradient"},
    {"gradient=,", "{\"input\": 1, \"target\": 1}", 422, "option_invalid", "gradient"},
    {"dim=[", "{\"input\": 1, \"target\": 1}", 422, "dim_invalid", "dim"},
    {NULL, "{\"input\": 1, \"target\": 1, \"dim\": \"\"}", 422, "dim_invalid", "#/dim"},
    {NULL, "{\"input\": 1, \"target\": 1, \"gradient\": \"\"}", 422, "option_invalid",
     "#/gradient"},
    {"dim=64", "{\"input\": 1, \"target\": 1}", 422, "dim_invalid", "dim"},
    {"dim=-65", "{\"input\": 1, \"target\": 1}", 422, "dim_invalid", "dim"},
    {"dim=0&dim=1", "{\"input\": [[1]], \"target\": [[1]], \"dim\": 0}", 400, "option_conflict",
     "#/dim"},
    {"reduction[]=sum", "{\"input\": 1, \"target\": 1}", 422, "option_unknown", "reduction[]"},
    {"reduction[0]=sum", "{\"input\": 1, \"target\": 1}", 422, "option_unknown", "reduction[0]"},
    {"dim[0=0", "{\"input\": 1, \"target\": 1}", 422, "option_unknown", "dim[0"},
    {"dim[a]=0", "{\"input\": 1, \"target\": 1}", 422, "option_unknown", "dim[a]"},
    {"dim[0]x=0", "{\"input\": 1, \"target\": 1}", 422, "option_unknown", "dim[0]x"},
    {NULL, "{\"input\": [\"NA\"], \"target\": [1]}", 422, "element_invalid", "#/input/0"},
    {NULL, "{\"input\": [\"inf\"], \"target\": [1]}", 422, "element_invalid", "#/input/0"},
    {NULL, "{\"input\": 1, \"target\": 1, \"gradient\": [1]}", 422, "option_invalid", "#/gradient"},
    {NULL, "{\"input\": [1], \"target\": [1], \"gradient\": \"input\", \"grad_output\": [1]}", 422,
     "shape_mismatch", "#/grad_output"},
    /* tensors */
    {NULL, "[1, 2]", 422, "body_not_object", "#"},
    {NULL, "{\"input\": [1]}", 422, "tensor_missing", "#"},
    {NULL, "{\"target\": [1]}", 422, "tensor_missing", "#"},
    {NULL, "{}", 422, "tensor_missing", "#"},
    {NULL, "{\"input\": [[1, 2], [3]], \"target\": 1}", 422, "tensor_ragged", "#/input/1"},
    {NULL, "{\"input\": [[1, 2], 3], \"target\": 1}", 422, "tensor_ragged", "#/input/1"},
    {NULL, "{\"input\": [1, [2]], \"target\": 1}", 422, "tensor_ragged", "#/input/1"},
    {NULL, "{\"input\": [[], [1]], \"target\": 1}", 422, "tensor_ragged", "#/input/1"},
    {NULL, "{\"input\": [[1], []], \"target\": 1}", 422, "tensor_ragged", "#/input/1"},
    {NULL, "{\"input\": [[[1]], []], \"target\": 1}", 422, "tensor_ragged", "#/input/1"},
    {NULL, "{\"input\": [[], [[]]], \"target\": 1}", 422, "tensor_ragged", "#/input/1/0"},
    {NULL, "{\"target\": [[1, 2], [3, null]], \"input\": 1}", 422, "element_invalid",
     "#/target/1/1"},
    {NULL, "{\"input\": [true], \"target\": 1}", 422, "element_invalid", "#/input/0"},
    {NULL, "{\"input\": [1, \"2\"], \"target\": 1}", 422, "element_invalid", "#/input/1"},
    {NULL, "{\"input\": {\"a\": 1}, \"target\": 1}", 422, "element_invalid", "#/input"},
    {NULL, "{\"input\": null, \"target\": 1}", 422, "element_invalid", "#/input"},
    {NULL, "{\"input\": [1e309], \"target\": 1}", 422, "number_too_large", "#/input/0"},
    {NULL, "{\"input\": [[1, 2]], \"target\": [1, 2]}", 422, "shape_mismatch", "#/target"},
    {NULL, "{\"input\": [1, 2], \"target\": [1, 2], \"shape\": [3]}", 422, "shape_invalid",
     "#/shape"},
    {NULL, "{\"input\": [1, 2], \"target\": [1, 2], \"shape\": [-2]}", 422, "shape_invalid",
     "#/shape"},
    {NULL, "{\"input\": [1, 2], \"target\": [1, 2], \"shape\": [2.0]}", 422, "shape_invalid",
     "#/shape"},
    {NULL, "{\"input\": [1, 2], \"target\": [1, 2], \"shape\": 2}", 422, "shape_invalid",
     "#/shape"},
    {NULL, "{\"input\": [[1], [2]], \"target\": [1, 2], \"shape\": [1, 2]}", 422, "shape_invalid",
     "#/shape"},
    {"reduction=none", "{\"input\": [], \"target\": [], \"shape\": [9223372036854775807, 9, 0]}",
     422, "shape_invalid", ""},
    {"reduction=none", "{\"input\": [], \"target\": [], \"shape\": [1000000000, 0]}", 422,
     "shape_invalid", ""},
    {"compat=oneflow&reduction=batchmean", "{\"input\": 1, \"target\": 1}", 422, "batchmean_scalar",
     "#/input"},
    {"compat=math", "{\"input\": [[1, 2], [3, 4]], \"target\": [[1, 2], [-3, 4]]}", 422,
     "target_negative", "#/target/1/0"},
    {"compat=math", "{\"input\": [1, 2, 3, 4], \"target\": [1, 2, 3, -4], \"shape\": [2, 2]}", 422,
     "target_negative", "#/target/3"},
    {"compat=math", "{\"input\": 1, \"target\": -1}", 422, "target_negative", "#/target"},
};

static const char mark[] = "\xef\xbb\xbf";

static void check_bad(const struct bad *b, bool marked)
{
    char body[5000];
    int size = snprintf(body, sizeof body, "%s%s", marked ? mark : "", b->body);
    cr_assert_lt((size_t)size, sizeof body);
    struct answer answer = ask_loss(b->query, body);
    const json_t *error = json_array_get(json_object_get(answer.json, "errors"), 0);
    const char *place =
        *text_of(error, "pointer") ? text_of(error, "pointer") : text_of(error, "parameter");
    cr_expect_eq(answer.status, b->status, "%s: %d", b->body, answer.status);
    cr_expect_str_eq(answer.response.content_type, "application/problem+json");
    cr_expect_eq(json_integer_value(json_object_get(answer.json, "status")), b->status);
    cr_expect_str_eq(text_of(answer.json, "code"), b->code, "%s: %s", b->body,
                     text_of(answer.json, "code"));
    cr_expect_str_eq(place, b->pointer, "%s: %s", b->body, place);
    cr_expect(*text_of(answer.json, "title") && *text_of(answer.json, "detail") &&
              *text_of(answer.json, "type"));
    answer_free(&answer);
    cr_expect_eq(bytes_held(), 0, "%s: leak", b->body);
}

Test(requests, every_bad_one_gets_its_status_code_and_pointer)
{
    for (size_t i = 0; i < COUNT(bad); i++)
        check_bad(&bad[i], false);
}

/* Windows PowerShell writes files so. */
Test(requests, a_byte_order_mark_changes_nothing)
{
    static const char *const bodies[] = {
        "{\"input\": -1, \"target\": 0.5}",
        " {\"input\": [-1], \"target\": [0.5], \"reduction\": \"sum\"}",
        "x",
        "",
        "{\"input\": [1, x",
        "{\"input\": [1], \"target\": [1], \"log_target\": treu}",
        "{\"input\": [1], \"target\": [1]}}",
        "\n {\"input\": 1, \"target\": 1, \"\xff\": 1}",
        "{\"input\": [1], \"log_target\": true, \"target\": [1",
    };
    static const char *const types[] = {"application/json", NULL, "application/octet-stream"};
    char marked[200];
    for (size_t i = 0; i < COUNT(bad); i++)
        check_bad(&bad[i], true);
    for (size_t i = 0; i < COUNT(bodies) * COUNT(types); i++) {
        const char *body = bodies[i / COUNT(types)], *type = types[i % COUNT(types)];
        int size = snprintf(marked, sizeof marked, "%s%s", mark, body);
        struct answer plain = ask("POST", "/kl_div", NULL, type, body, strlen(body));
        struct answer answer = ask("POST", "/kl_div", NULL, type, marked, (size_t)size);
        cr_expect_eq(answer.status, *body || type == types[0] ? plain.status : 415, "%s: %d", body,
                     answer.status);
        if (*body)
            cr_expect_str_eq(text_of(answer.json, "detail"), text_of(plain.json, "detail"), "%s",
                             body);
        answer_free(&plain);
        answer_free(&answer);
    }
}

Test(requests, say_where_json_is_malformed)
{
    struct answer answer = ask_loss(NULL, "{\"input\": [1,\n  2,\n  x], \"target\": 1}");
    cr_expect_str_eq(text_of(answer.json, "detail"),
                     "line 3, column 3: expected a number or an array, found 'x'");
    answer_free(&answer);
    answer = ask_loss(NULL, "{\"input\": [1, 2],\n\"target\": [1, 2],\n\"log_target\": treu}");
    cr_expect(strncmp(text_of(answer.json, "detail"), "line 3, column ", 15) == 0, "%s",
              text_of(answer.json, "detail"));
    answer_free(&answer);
    answer = ask_loss(NULL, "{\"input\": 1, \"target\": 1, \"redction\": \"sum\"}");
    cr_expect(strstr(text_of(answer.json, "detail"),
                     "there is no option 'redction'; did you mean 'reduction'? The tensors are "
                     "input, target, grad_output, weight, mask, indices and log_normalizer, "
                     "the options are reduction, "));
    answer_free(&answer);
    answer = ask_loss("reduction=batch_mean", "{\"input\": 1, \"target\": 1}");
    cr_expect_str_eq(
        text_of(answer.json, "detail"),
        "batch_mean is not a valid value for reduction; did you mean 'batchmean'? It takes "
        "mean, batchmean, sum, none, elementwise_mean");
    answer_free(&answer);
}

/* Equivalent bodies. */
Test(requests, options_and_tensors_come_in_many_forms)
{
    static const struct {
        const char *query, *body;
    } cases[] = {
        {"reduction=sum", "{\"input\":[[-1,-0.5]],\"target\":[[0.4,0.6]]}"},
        {"reduction=sum",
         " \r\n\t{ \"target\" : [ [ 0.4 , 6e-1 ] ] , \"input\" : [[-1.0,-5E-1]] } "},
        {NULL, "{\"reduction\":\"sum\",\"input\":[[-1,-0.5]],\"target\":[[0.4,0.6]]}"},
        {NULL, "{\"input\":[[-1,-0.5]],\"reduction\":\"sum\",\"target\":[[0.4,0.6]]}"},
        {NULL, "{\"input\":[[-1,-0.5]],\"target\":[[0.4,0.6]],\"reduction\":\"sum\"}"},
        {"reduction=sum", "{\"input\":[[-1,-0.5]],\"target\":[[0.4,0.6]],\"reduction\":\"sum\"}"},
        {"size_average=False&reduce=True", "{\"input\":[-1,-0.5],\"target\":[0.4,0.6]}"},
        {"size_average=0", "{\"input\":[-1,-0.5],\"target\":[0.4,0.6],\"reduce\":null}"},
        {"size_average=FALSE&reduce=NULL&log_target=F&broadcast=TRUE&diagnose=F",
         "{\"input\":[-1,-0.5],\"target\":[0.4,0.6]}"},
        {"reduction=sum&dim=0&dim=1", "{\"input\":[[-1,-0.5]],\"target\":[[0.4,0.6]]}"},
        {"reduction=sum&dim[]=0&dim%5B%5D=1", "{\"input\":[[-1,-0.5]],\"target\":[[0.4,0.6]]}"},
        {"reduction=sum&dim[0]=0&dim%5B1%5D=1", "{\"input\":[[-1,-0.5]],\"target\":[[0.4,0.6]]}"},
        {"reduction=sum&dim[10]=1&dim[]=0", "{\"input\":[[-1,-0.5]],\"target\":[[0.4,0.6]]}"},
        {"reduction=sum&dim=1&dim=0",
         "{\"input\":[[-1,-0.5]],\"target\":[[0.4,0.6]],\"dim\":[0,1]}"},
        {"reduction=sum&temperature=1&temperature=1.0",
         "{\"input\":[-1,-0.5],\"target\":[0.4,0.6]}"},
        {NULL,
         "{\"input\":[-1,-0.5],\"target\":[0.4,0.6],\"reduction\":[\"sum\"],\"log_target\":[false],"
         "\"dtype\":[\"float64\"],\"compat\":[\"pytorch\"],\"base\":[\"e\"],\"partial\":[false],"
         "\"input_space\":[\"log_prob\"],\"target_space\":[\"prob\"],\"temperature\":[1],"
         "\"broadcast\":[false],\"diagnose\":[false],\"reduce\":[null],\"dim\":[0]}"},
        {NULL, "{\"input\":[-1,-0.5],\"target\":[0.4,0.6],\"size_average\":[false]}"},
        {"log_target=false&reduction=%73um", "{\"input\":[-1,-0.5],\"target\":[0.4,0.6]}"},
        {NULL, "{\"shape\":[2,1],\"input\":[-1,-0.5],\"target\":[0.4,0.6],\"size_average\":false}"},
        {NULL, "{\"\\u0069nput\":[-1,-0.5],\"t\\u0061rget\":[0.4,0.6],\"size_average\":false}"},
        {NULL, "{\"input\":[-1,-0.5],\"target\":[0.4,0.6],\"dtype\":\"float64\","
               "\"size_average\":false}"},
        {NULL, "{\"dtype\":\"float64\",\"input\":[-1,-0.5],\"target\":[0.4,0.6],"
               "\"size_average\":false}"},
    };
    double expected = 0.4 * (log(0.4) + 1) + 0.6 * (log(0.6) + 0.5);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer = ask_loss(cases[i].query, cases[i].body);
        cr_expect_eq(answer.status, 200, "%s: %s", cases[i].body, text_of(answer.json, "detail"));
        double loss = json_number_value(json_object_get(answer.json, "loss"));
        cr_expect(fabs(loss - expected) < 1e-16, "%s: %.17g", cases[i].body, loss);
        answer_free(&answer);
    }
}

Test(requests, numbers_are_rounded_to_the_dtype_wherever_it_stands)
{
    static const char *const bodies[] = {
        "{\"dtype\":\"float16\",\"input\":[-1.0004],\"target\":[1],\"reduction\":\"none\"}",
        "{\"input\":[-1.0004],\"target\":[1],\"reduction\":\"none\",\"dtype\":\"float16\"}",
        "{\"input\":[-1.0004],\"d\\u0074ype\":\"float16\",\"target\":[1],\"reduction\":\"none\"}",
    };
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct answer answer = ask_loss(NULL, bodies[i]);
        double loss = json_number_value(json_array_get(json_object_get(answer.json, "loss"), 0));
        cr_expect_eq(loss, 1, "%s: %.17g", bodies[i], loss);
        cr_expect_str_eq(text_of(answer.json, "dtype"), "float16");
        answer_free(&answer);
    }
}

Test(requests, non_finite_numbers_come_quoted_or_bare_and_go_quoted)
{
    struct answer answer =
        ask_loss("reduction=none", "{\"input\":[-Infinity,\"-Inf\",\"Inf\",\"NaN\",NaN],"
                                   "\"target\":[1,1,1,1,1]}");
    const char *expected = "{\"loss\":[\"Infinity\",\"Infinity\",\"-Infinity\",\"NaN\",\"NaN\"],"
                           "\"shape\":[5],\"dtype\":\"float64\",\"reduction\":\"none\","
                           "\"warnings\":[]}\n";
    cr_expect_eq(answer.status, 200);
    cr_expect(answer.response.body.size == strlen(expected) &&
                  memcmp(answer.response.body.data, expected, strlen(expected)) == 0,
              "%.*s", (int)answer.response.body.size, answer.response.body.data);
    answer_free(&answer);
}

Test(requests, tensors_have_at_most_64_dimensions)
{
    char body[1000];
    for (int depth = 64; depth <= 65; depth++) {
        int n = snprintf(body, sizeof body, "{\"input\": ");
        n += (int)strlen(memset(memset(body + n, 0, 200), '[', (size_t)depth));
        body[n++] = '1';
        memset(body + n, ']', (size_t)depth);
        n += depth;
        snprintf(body + n, sizeof body - (size_t)n, ", \"target\": 1}");
        struct answer answer = ask_loss(NULL, body);
        cr_expect_str_eq(text_of(answer.json, "code"),
                         depth == 64 ? "shape_mismatch" : "tensor_too_deep");
        answer_free(&answer);
    }
}

/* All axes of a tensor with the most axes, counted from both ends. */
Test(requests, dim_reaches_all_axes)
{
    char body[1000], query[40];
    int n =
        snprintf(body, sizeof body, "{\"input\": [-1, -2], \"target\": [0.5, 0.5], \"shape\": [");
    for (int i = 0; i < 63; i++)
        n += snprintf(body + n, sizeof body - (size_t)n, "1,");
    snprintf(body + n, sizeof body - (size_t)n, "2]}");
    for (int axis = -64; axis < 64; axis++) {
        snprintf(query, sizeof query, "reduction=none&dim=%d", axis);
        struct answer answer = ask_loss(query, body);
        size_t ndim = json_array_size(json_object_get(answer.json, "shape")), last = 1;
        cr_assert_eq(answer.status, 200, "%s: %s", query, text_of(answer.json, "detail"));
        cr_expect_eq(ndim, 63);
        last =
            (size_t)json_integer_value(json_array_get(json_object_get(answer.json, "shape"), 62));
        cr_expect_eq(last, axis == -1 || axis == 63 ? 1 : 2, "%s", query);
        answer_free(&answer);
    }
}

Test(requests, unknown_members_are_refused_whatever_they_hold)
{
    size_t size = 3 << 20;
    char *body = malloc(size);
    size_t n = (size_t)snprintf(body, size, "{\"input\": 1, \"target\": 1, \"x\": [1");
    while (n < size - 3)
        n += (size_t)snprintf(body + n, 3, ",1");
    memcpy(body + n, "]}", 2);
    struct answer answer = ask("POST", "/kl_div", NULL, NULL, body, n + 2);
    cr_expect_eq(answer.status, 422);
    cr_expect_str_eq(text_of(answer.json, "code"), "option_unknown");
    answer_free(&answer);
    free(body);
}

Test(requests, a_nul_is_refused_wherever_it_stands)
{
    static const char body[] = "{\"input\": [1\0,2], \"target\": [1,2]}";
    struct answer answer = ask("POST", "/kl_div", NULL, NULL, body, sizeof body - 1);
    cr_expect_eq(answer.status, 400);
    cr_expect_str_eq(text_of(answer.json, "code"), "json_malformed");
    answer_free(&answer);
}

Test(requests, failed_calls_still_carry_their_warnings)
{
    struct answer answer = ask_loss("size_average=true", "{\"input\": [1], \"target\": [1, 2]}");
    const json_t *warning = json_array_get(json_object_get(answer.json, "warnings"), 0);
    cr_expect_eq(answer.status, 422);
    cr_expect_str_eq(text_of(warning, "code"), "size_average_reduce_deprecated");
    cr_expect_str_eq(text_of(warning, "message"),
                     "size_average and reduce args will be deprecated, please use "
                     "reduction='mean' instead.");
    answer_free(&answer);
}

/* Operands that broadcast beyond --max-body are refused; large ones are never computed on a
 * network thread. */
Test(requests, that_broadcast_are_bounded_by_what_they_broadcast_to)
{
    enum { N = 400 };
    static char body[8 * N + 100];
    size_t n = (size_t)sprintf(body, "{\"broadcast\": true, \"input\": [1");
    for (size_t i = 1; i < N; i++)
        n += (size_t)sprintf(body + n, ",1");
    n += (size_t)sprintf(body + n, "], \"target\": [[1]");
    for (size_t i = 1; i < N; i++)
        n += (size_t)sprintf(body + n, ",[1]");
    n += (size_t)sprintf(body + n, "]}");
    for (size_t limit = 1000000; limit <= 2000000; limit += 1000000) {
        const struct api_service service = service_of(limit);
        struct answer answer = ask_question(&(struct question){0}, &service, body, n);
        cr_expect_eq(answer.status, limit < N * N * sizeof(double) ? 422 : 200, "%d",
                     answer.status);
        cr_expect_eq(answer.handed_over, answer.status == 200);
        if (answer.status == 422)
            cr_expect_str_eq(text_of(answer.json, "code"), "broadcast_too_large");
        answer_free(&answer);
    }
}
