#include "api/json/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct kind {
    const char *code;
    int status;
    const char *title;
} kinds[] = {
    {"json_malformed", 400, "The body is not well-formed JSON"},
    {"safetensors_malformed", 400, "The body is not a well-formed safetensors file"},
    {"npy_malformed", 400, "An array is not a well-formed .npy file"},
    {"npz_malformed", 400, "The body is not a well-formed .npz file"},
    {"csv_malformed", 400, "The body is not well-formed CSV"},
    {"column_repeated", 400, "A column is given twice"},
    {"multipart_malformed", 400, "The body is not a well-formed multipart form"},
    {"content_malformed", 400, "The body does not match its Content-Encoding"},
    {"inference_malformed", 400, "The body is not a well-formed inference request"},
    {"shared_memory_off", 400, "Shared memory is not enabled"},
    {"setting_fixed", 400, "Settings of the server cannot be changed"},
    {"region_malformed", 400, "The body does not describe a region"},
    {"region_invalid", 400, "The shared memory object cannot be used"},
    {"region_registered", 400, "A region of this name is registered already"},
    {"region_unknown", 400, "No region of this name is registered"},
    {"region_too_small", 400, "The range is outside the region"},
    {"region_lost", 400, "The shared memory object is shorter than the region"},
    {"too_many_regions", 400, "The server has its maximum number of regions"},
    {"tensor_repeated", 400, "A tensor is given twice"},
    {"query_malformed", 400, "The query string is malformed"},
    {"option_conflict", 400, "An option is given twice, with different values"},
    {"idempotency_key_invalid", 400, "The Idempotency-Key is invalid"},
    {"bad_request", 400, "The request is not valid HTTP"},
    {"unauthorized", 401, "The request has no valid token"},
    {"scope_missing", 403, "The token lacks the scope for this request"},
    {"group_forbidden", 403, "The token is not for this group"},
    {"origin_forbidden", 403, "A page of another origin may not do this"},
    {"not_found", 404, "There is nothing at this path"},
    {"group_not_found", 404, "There is no such group of monitors"},
    {"monitor_not_found", 404, "There is no such monitor"},
    {"window_not_found", 404, "There is no such window"},
    {"note_not_found", 404, "There is no such note"},
    {"method_not_allowed", 405, "The path does not have this method"},
    {"not_acceptable", 406, "No format that the client accepts can be made"},
    {"client_left", 408, "The client closed its side before the response was ready"},
    {"request_timeout", 408, "The request took too long to arrive"},
    {"reply_timeout", 408, "The response was not read in time"},
    {"idle", 408, "No request arrived"},
    {"test_running", 409, "A test of this receiver is under way"},
    {"precondition_failed", 412, "The resource does not match If-Match or If-None-Match"},
    {"body_too_large", 413, "The body is larger than this server accepts"},
    {"target_too_long", 414, "The request line is too long"},
    {"media_type_unsupported", 415, "The path does not accept this Content-Type"},
    {"content_coding_unsupported", 415, "The path does not accept this Content-Encoding"},
    {"expectation_failed", 417, "The expectation in Expect is not supported"},
    {"host_not_allowed", 421, "The request is for a host that this server does not serve"},
    {"body_not_object", 422, "The body is JSON, but not an object"},
    {"members_too_large", 422, "Members other than tensors and tables are too large"},
    {"option_unknown", 422, "There is no such option"},
    {"option_invalid", 422, "An option has an invalid value"},
    {"reduction_invalid", 422, "There is no such reduction"},
    {"compat_invalid", 422, "There is no such compatibility mode"},
    {"base_invalid", 422, "There is no such base"},
    {"space_invalid", 422, "There is no such space"},
    {"space_conflict", 422, "log_target and target_space contradict each other"},
    {"temperature_invalid", 422, "The temperature is not a finite number above 0"},
    {"temperature_unused", 422, "There are no logits for the temperature"},
    {"divergence_invalid", 422, "There is no such divergence"},
    {"beta_invalid", 422, "The share of the mixture is not a number from 0 to 1"},
    {"beta_unused", 422, "Only divergence=js has a beta"},
    {"alpha_invalid", 422, "The share of the mixture is not a number from 0 to 1"},
    {"alpha_unused", 422, "Only divergence=skew has an alpha"},
    {"scale_invalid", 422, "There is no such scale"},
    {"tail_invalid", 422, "There is no such tail"},
    {"indices_invalid", 422, "An index of a sparse target is out of range or repeated"},
    {"indices_missing", 422, "There is no sparse target"},
    {"mass_invalid", 422, "The probabilities of a sparse target sum to more than 1"},
    {"normalizer_missing", 422, "The logits of a sparse target lack log_normalizer"},
    {"normalizer_unused", 422, "There are no logits for log_normalizer"},
    {"sparse_unsupported", 422, "The option is not for sparse targets"},
    {"partial_none", 422, "Losses that are not reduced have no partial result"},
    {"partial_gradient", 422, "A gradient has no partial result"},
    {"partial_unsupported", 422, "Inference responses have no partial result"},
    {"dim_invalid", 422, "An axis does not exist, or is named twice"},
    {"ndim_invalid", 422, "A tensor has too many dimensions"},
    {"dtype_invalid", 422, "There is no such dtype"},
    {"dtype_unsupported", 422, "The loss is not defined for this dtype"},
    {"tensor_missing", 422, "A tensor is missing"},
    {"tensor_unknown", 422, "There is no such tensor"},
    {"output_unknown", 422, "There is no such output"},
    {"tensor_ragged", 422, "Arrays at the same depth differ in length or kind"},
    {"tensor_too_deep", 422, "A tensor has too many dimensions"},
    {"columns_unequal", 422, "Columns differ in their number of values"},
    {"value_invalid", 422, "A value of a table has an invalid type"},
    {"too_many_windows", 422, "More windows than a request may have"},
    {"too_many_columns", 422, "The table has more columns than this server accepts"},
    {"table_too_sparse", 422, "Rows lack most of the members of other rows"},
    {"element_invalid", 422, "An element of a tensor is not a number"},
    {"number_too_large", 422, "A number is too large for float64"},
    {"shape_invalid", 422, "The shape does not fit the numbers"},
    {"shape_mismatch", 422, "Tensors that must have the same shape do not"},
    {"broadcast_too_large", 422, "The operands broadcast to more than this server accepts"},
    {"batchmean_scalar", 422, "A scalar has no batch"},
    {"input_negative", 422, "A probability of input is negative"},
    {"target_negative", 422, "A probability is negative"},
    {"name_invalid", 422, "A group or a monitor cannot have this name"},
    {"bins_missing", 422, "There are no values from which to make bins"},
    {"bins_invalid", 422, "The bins are invalid"},
    {"labels_too_large", 422, "Labels are longer than this server accepts"},
    {"counts_invalid", 422, "Counts or probabilities do not fit the bins"},
    {"reference_missing", 422, "The monitor has nothing to compare with"},
    {"reference_empty", 422, "The reference has no value"},
    {"nothing_to_compare", 422, "The values cannot be compared with later ones"},
    {"columns_unknown", 422, "The group has no monitor for any column of the table"},
    {"too_many_segments", 422, "The group has more segments than a request may have"},
    {"segments_missing", 422, "The group has no segments by this column"},
    {"column_missing", 422, "The table has no column for this monitor"},
    {"value_not_number", 422, "A value is text where a number is expected"},
    {"observations_empty", 422, "There are no observations"},
    {"timestamp_invalid", 422, "A time cannot be read, or is out of bounds"},
    {"cursor_invalid", 422, "The cursor is not one of this list"},
    {"windows_missing", 422, "There are no closed windows in the period"},
    {"too_many_monitors", 422, "The server has its maximum number of monitors"},
    {"too_many_notes", 422, "The group has its maximum number of notes"},
    {"idempotency_key_reused", 422, "The Idempotency-Key was used with another body"},
    {"header_too_large", 431, "The header of the request is too large"},
    {"internal_error", 500, "The server failed"},
    {"out_of_memory", 503, "The server has no memory left for the request"},
    {"overloaded", 503, "The server has too much work waiting"},
    {"store_full", 503, "The store of monitors has reached its limit"},
    {"store_unavailable", 503, "The store of monitors is unavailable"},
    {"compute_timeout", 503, "The response took too long to compute"},
    {"too_many_connections", 503, "The server has no connection left"},
    {"draining", 503, "The server is shutting down"},
    {"version_unsupported", 505, "The server does not support this version of HTTP"},
};

static const struct kind *find(const char *code)
{
    const struct kind *kind = kinds, *internal = kinds;
    for (; kind < kinds + sizeof kinds / sizeof *kinds; kind++) {
        if (strcmp(kind->code, code) == 0)
            return kind;
        if (kind->status == 500)
            internal = kind;
    }
    return internal;
}

const char *api_problem_code(size_t i)
{
    return i < sizeof kinds / sizeof *kinds ? kinds[i].code : NULL;
}

static bool fail(struct api_problem *problem, enum api_location where, const char *location,
                 const char *code, const char *format, va_list arguments)
{
    if (problem->code)
        return false;
    problem->code = code;
    problem->where = where;
    snprintf(problem->location, sizeof problem->location, "%s", location);
    vsnprintf(problem->detail, sizeof problem->detail, format, arguments);
    return false;
}

bool api_fail(struct api_problem *problem, const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(problem, API_NOWHERE, "", code, format, arguments);
    va_end(arguments);
    return false;
}

bool api_fail_at(struct api_problem *problem, enum api_location where, const char *location,
                 const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(problem, where, location, code, format, arguments);
    va_end(arguments);
    return false;
}

bool api_fail_member(struct api_problem *problem, struct api_origin origin, const char *code,
                     const char *format, ...)
{
    char pointer[sizeof problem->location];
    va_list arguments;
    if (origin.within)
        api_pointer_to_member(pointer, sizeof pointer, origin.within, origin.name);
    va_start(arguments, format);
    fail(problem, origin.within ? API_BODY : API_QUERY, origin.within ? pointer : origin.name, code,
         format, arguments);
    va_end(arguments);
    return false;
}

bool api_fail_oom(struct api_problem *problem)
{
    return api_fail(problem, "out_of_memory", "no memory is left for the request; try again");
}

void api_problem_prefix(struct api_problem *problem, const char *words)
{
    char detail[sizeof problem->detail];
    memcpy(detail, problem->detail, sizeof detail);
    snprintf(problem->detail, sizeof problem->detail, "%.60s%.440s", words, detail);
}

void api_pointer_to_member(char *to, size_t size, const char *within, const char *name)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-._!$&'()*+,;=:@?";
    size_t used = (size_t)snprintf(to, size, "%s", within);
    for (; *name && used + 4 < size; name++) {
        if (*name == '~' || *name == '/')
            used += (size_t)snprintf(to + used, size - used, "~%d", *name == '/');
        else if (strchr(plain, *name))
            to[used++] = *name;
        else
            used += (size_t)snprintf(to + used, size - used, "%%%02X", (unsigned char)*name);
    }
    to[used] = '\0';
}

int api_problem_status(const struct api_problem *problem) { return find(problem->code)->status; }

void api_problem_write(const struct api_problem *problem, struct api_buffer *out)
{
    const struct kind *kind = find(problem->code);
    api_append_format(out, "\"type\":\"urn:kldiv:problem:%s\",\"title\":", kind->code);
    api_append_json_string(out, kind->title);
    api_append_format(out, ",\"status\":%d,\"code\":\"%s\",\"detail\":", kind->status, kind->code);
    api_append_json_string(out, problem->detail);
    api_append_text(out, ",\"errors\":[");
    if (problem->where != API_NOWHERE) {
        api_append_text(out, "{\"detail\":");
        api_append_json_string(out, problem->detail);
        api_append_text(out, problem->where == API_BODY ? ",\"pointer\":" : ",\"parameter\":");
        api_append_json_string(out, problem->location);
        api_append_text(out, "}");
    }
    api_append_text(out, "]");
}
