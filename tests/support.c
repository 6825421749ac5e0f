#include "tests/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct api_budget budget;

/* Of allocations. */
static struct {
    bool on, sticky, failed;
    long left;
} failing;

size_t bytes_held(void) { return atomic_load(&budget.used); }

struct answer ask_request(const struct api_request *request, const char *body, size_t body_size,
                          size_t max_body)
{
    struct answer answer = {0};
    struct api_service service = {.budget = &budget, .max_body = max_body};
    struct api_request whole = *request;
    whole.method = request->method ? request->method : "POST";
    whole.path = request->path ? request->path : "/kl_div";
    whole.content_length = whole.body_size = body_size;
    whole.body = calloc(1, body_size + API_PADDING);
    cr_assert(whole.body);
    if (body_size)
        memcpy(whole.body, body, body_size);
    if (api_begin(&service, &whole, &answer.reply))
        api_handle(&service, &whole, &answer.reply);
    answer.status = answer.reply.status;
    failing.on = false;
    if (answer.reply.body.size)
        answer.json = json_loadb(answer.reply.body.data, answer.reply.body.size, 0, NULL);
    free(whole.body);
    return answer;
}

struct answer ask(const char *method, const char *path, const char *query, const char *content_type,
                  const char *body, size_t body_size)
{
    struct api_request request = {
        .method = method, .path = path, .query = query, .content_type = content_type};
    return ask_request(&request, body, body_size, 1 << 30);
}

struct answer ask_loss(const char *query, const char *body)
{
    return ask("POST", "/kl_div", query, "application/json", body, strlen(body));
}

void answer_free(struct answer *answer)
{
    json_decref(answer->json);
    api_reply_free(&answer->reply);
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

char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    cr_assert(file, "cannot open %s", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, *size + 1);
    cr_assert(text && fread(text, 1, *size, file) == *size);
    fclose(file);
    return text;
}

/* The linker sends the allocations of all objects in the test program through these. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void fail_allocation(long n, bool sticky)
{
    failing.on = n >= 0;
    failing.left = n;
    failing.sticky = sticky;
    failing.failed = false;
}

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
