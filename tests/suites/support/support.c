#include "tests/suites/support/support.h"

#include "api/request/response.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

static struct api_budget budget;

/* State of allocation failures and counts, of the thread that asks: the store's own is left alone. */
static _Thread_local struct {
    bool armed, on, sticky, failed;
    long left;
} failing;

size_t bytes_held(void) { return atomic_load(&budget.used); }

struct api_service service_of(size_t max_body)
{
    return (struct api_service){
        .endpoints = api_endpoints, .budget = &budget, .max_body = max_body};
}

/* Copies the response, so that it outlives the exchange. The texts that are not static live until this
 * thread's next answer. */
static struct api_response keep_response(const struct api_exchange *x)
{
    static _Thread_local char text[sizeof x->response.header_text], etag[sizeof x->response.etag];
    struct api_response response = x->response;
    memcpy(text, x->response.header_text, sizeof text);
    memcpy(etag, x->response.etag, sizeof etag);
    for (size_t i = 0; i < response.n_headers; i++)
        if (response.headers[i].value == x->response.header_text)
            response.headers[i].value = text;
        else if (response.headers[i].value == x->response.etag)
            response.headers[i].value = etag;
    return response;
}

/* Handles a request as a host without `resume` does; true if it was too long for a network thread. */
static bool handle(struct api_exchange *x)
{
    bool done = api_handle(x, API_LIGHT_NS), handed_over = !done && !x->work;
    while (!done && (!x->work || api_wait(x)))
        done = api_handle(x, HUGE_VAL);
    return handed_over;
}

struct answer ask_question(const struct question *question, const struct api_service *service,
                           const char *body, size_t body_size)
{
    static const struct api_service usual = {
        .endpoints = api_endpoints, .budget = &budget, .max_body = 1 << 30};
    struct answer answer = {0};
    char *padded = calloc(1, body_size + API_PADDING);
    cr_assert(padded);
    if (body_size)
        memcpy(padded, body, body_size);
    struct api_exchange x = question_exchange(question, service ? service : &usual, body_size);
    failing.on = failing.armed;
    if (api_begin(&x)) {
        x.request.body = padded;
        x.request.body_size = body_size;
        answer.handed_over = handle(&x);
    }
    failing.on = failing.armed = false;
    answer.status = x.response.status;
    answer.response = keep_response(&x);
    if (answer.response.body.size && !question->unread)
        answer.json = json_loadb(answer.response.body.data, answer.response.body.size, 0, NULL);
    free(padded);
    return answer;
}

struct answer ask(const char *method, const char *path, const char *query, const char *content_type,
                  const char *body, size_t body_size)
{
    const struct question question = {
        .method = method, .path = path, .query = query, .content_type = content_type};
    return ask_question(&question, NULL, body, body_size);
}

struct answer ask_loss(const char *query, const char *body)
{
    return ask("POST", "/kl_div", query, "application/json", body, strlen(body));
}

void answer_free(struct answer *answer)
{
    json_decref(answer->json);
    api_response_free(&answer->response);
}

const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

double number_of(const json_t *value)
{
    const char *word = json_string_value(value);
    if (json_is_number(value))
        return json_number_value(value);
    cr_assert(word, "neither a number nor a string");
    if (strcmp(word, "NaN") == 0)
        return (double)NAN;
    cr_assert(strcmp(word, "Infinity") == 0 || strcmp(word, "-Infinity") == 0, "%s", word);
    return *word == '-' ? -(double)INFINITY : (double)INFINITY;
}

void gzip(struct api_buffer *body)
{
    struct api_buffer coded = {0};
    z_stream z = {.next_in = (unsigned char *)body->data, .avail_in = (unsigned)body->size};
    cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    cr_assert(api_buffer_reserve(&coded, deflateBound(&z, body->size)));
    z.next_out = (unsigned char *)coded.data;
    z.avail_out = (unsigned)coded.capacity;
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    coded.size = z.total_out;
    deflateEnd(&z);
    api_buffer_free(body);
    *body = coded;
}

static unsigned sextet(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return (unsigned)(strchr(digits, c) - digits);
}

char *decode_base64(const char *text, size_t *size)
{
    size_t length = strlen(text);
    char *bytes = malloc(length + 1);
    cr_assert(bytes);
    *size = 0;
    for (size_t i = 0; i < length; i += 4) {
        unsigned bits = 0, n = 0;
        for (size_t j = i; j < i + 4; j++) {
            bits = bits << 6 | (text[j] == '=' ? 0 : sextet(text[j]));
            n += text[j] != '=';
        }
        for (unsigned k = 0; k + 1 < n; k++)
            bytes[(*size)++] = (char)(bits >> (16 - 8 * k));
    }
    return bytes;
}

char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 1 << 16; /* files of /proc do not tell their size */
    cr_assert(file, "cannot open %s", path);
    *size = 0;
    do {
        room *= 2;
        text = realloc(text, room);
        cr_assert(text);
        *size += fread(text + *size, 1, room - 1 - *size, file);
    } while (*size == room - 1);
    cr_assert(!ferror(file), "cannot read %s", path);
    fclose(file);
    text[*size] = '\0';
    return text;
}

/* The linker redirects allocations of all objects of the test program here (--wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void fail_allocation(long n, bool sticky)
{
    failing.armed = n >= 0;
    failing.left = n;
    failing.sticky = sticky;
    failing.failed = false;
}

void fail_now(bool on) { failing.on = on && failing.armed; }

bool allocation_failed(void) { return failing.failed; }

static bool fails_now(void)
{
    if (!failing.on || failing.left-- > 0)
        return false;
    if (failing.failed && !failing.sticky)
        return false;
    failing.failed = true;
    return true;
}

#ifdef __SANITIZE_ADDRESS__
int __lsan_do_recoverable_leak_check(void);
void expect_no_leak(void) { cr_expect_eq(__lsan_do_recoverable_leak_check(), 0, "see above"); }
#else
void expect_no_leak(void) {}
#endif

/* SQLite in this process calls these: no test cuts the power, and each call takes milliseconds. */
int fdatasync(int fd);
int fsync(int fd);
__attribute__((visibility("default"))) int fdatasync(int fd) { return fd < 0 ? -1 : 0; }
__attribute__((visibility("default"))) int fsync(int fd) { return fd < 0 ? -1 : 0; }

static atomic_size_t allocated;

size_t bytes_allocated(void) { return allocated; }

void *__wrap_malloc(size_t size)
{
    allocated += size;
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocated += n * size;
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    allocated += size;
    return fails_now() ? NULL : __real_realloc(old, size);
}
