#include "api/request/coding.h"

#include "api/request/response.h"
#include "api/text/accept.h"
#include "api/text/number.h"

#include <limits.h>
#include <string.h>
#include <strings.h>
#define ZLIB_CONST
#include <zlib.h>

const char api_codings[] = "gzip, deflate";

enum wrapper { NONE, GZIP, DEFLATE };

/* Window bits of zlib: 15, plus 16 for gzip, negative for no wrapper. */
enum { GZIP_BITS = 15 + 16, ZLIB_BITS = 15, RAW_BITS = -15 };

static const struct {
    const char *name;
    enum wrapper wrapper;
} codings[] = {
    {"gzip", GZIP}, {"x-gzip", GZIP}, {"deflate", DEFLATE}, {"identity", NONE}, {"", NONE}};
#define N_CODINGS (sizeof codings / sizeof *codings)

static size_t find(const char *coding)
{
    size_t i = 0, size = strcspn(coding, " \t");
    if (coding[size + strspn(coding + size, " \t")])
        return N_CODINGS;
    while (i < N_CODINGS &&
           (strlen(codings[i].name) != size || strncasecmp(coding, codings[i].name, size) != 0))
        i++;
    return i;
}

bool api_coding_is_known(const char *coding) { return find(coding) < N_CODINGS; }

bool api_coding_is_identity(const char *coding)
{
    size_t i = find(coding);
    return i < N_CODINGS && codings[i].wrapper == NONE;
}

/* Detects the wrapper: a zlib header starts with method 8 and is a multiple of 31 (RFC 1950,
 * 2.2). */
static int window_bits(enum wrapper wrapper, const unsigned char *bytes, size_t size)
{
    if (wrapper == GZIP)
        return GZIP_BITS;
    bool wrapped = size >= 2 && (bytes[0] & 15) == 8 && (bytes[0] << 8 | bytes[1]) % 31 == 0;
    return wrapped ? ZLIB_BITS : RAW_BITS;
}

/* Bounds of an inflated body: FREE_SIZE bytes, or if that is more RATIO times the compressed size. */
enum { FREE_SIZE = 1 << 20, RATIO = 256 };

/* Checks the size of the output so far, from `used` bytes of input. */
static bool check_output(const struct api_inflation *inflation, size_t used,
                         const struct api_buffer *out, struct api_problem *problem)
{
    if (out->size > inflation->max)
        return api_fail(problem, "body_too_large",
                        "the body inflates to more than %zu bytes, the most this server accepts",
                        inflation->max);
    if (out->size > FREE_SIZE && out->size / RATIO > used)
        return api_fail(problem, "body_too_large",
                        "the body inflates to more than %d times its size", RATIO);
    if (inflation->stop && atomic_load(inflation->stop))
        return api_fail(problem, "client_left", "the client closed its side");
    return true;
}

/* Makes room for zlib's output, up to one byte more than the maximum. */
static bool make_room(const struct api_inflation *inflation, struct api_buffer *out,
                      struct api_problem *problem)
{
    size_t capacity = out->capacity < 32768 ? 65536 : 2 * out->capacity;
    if (capacity > inflation->max + 1 + API_PADDING)
        capacity = inflation->max + 1 + API_PADDING;
    if (out->capacity - out->size <= API_PADDING && !api_buffer_reserve(out, capacity))
        return api_fail_oom(problem);
    return true;
}

/* Translates what zlib says of a step. */
static bool check_state(int state, const z_stream *z, size_t left, struct api_problem *problem)
{
    if (state == Z_MEM_ERROR)
        return api_fail_oom(problem);
    if (state == Z_BUF_ERROR && left == 0)
        return api_fail(problem, "content_malformed", "the compressed body is cut off");
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
        return api_fail(problem, "content_malformed",
                        "the body does not match its Content-Encoding: %s",
                        z->msg ? z->msg : "it needs a preset dictionary");
    return true;
}

/* STEP: maximum bytes of output between two checks. */
enum { STEP = 1 << 20 };

static bool inflate_all(z_stream *z, struct api_inflation *inflation, bool members,
                        struct api_buffer *out, struct api_problem *problem)
{
    const unsigned char *start = z->next_in, *end = start + inflation->size;
    for (int state = Z_OK;;) {
        size_t left = (size_t)(end - z->next_in), used = inflation->size - left;
        if (!check_output(inflation, used, out, problem))
            return false;
        if (state == Z_STREAM_END && left == 0)
            return true;
        if (out->size > inflation->affordable) {
            inflation->is_partial = true;
            inflation->estimate =
                (double)out->size * (double)inflation->size / (double)(used ? used : 1);
            return true;
        }
        if (state == Z_STREAM_END && (!members || inflateReset(z) != Z_OK))
            return api_fail(problem, "content_malformed",
                            "%zu bytes follow the end of the compressed body", left);
        if (!make_room(inflation, out, problem))
            return false;
        size_t room = out->capacity - out->size - API_PADDING;
        z->avail_in = left < UINT_MAX ? (unsigned)left : UINT_MAX;
        z->avail_out = room < STEP ? (unsigned)room : STEP;
        z->next_out = (unsigned char *)out->data + out->size;
        state = inflate(z, Z_NO_FLUSH);
        out->size = (size_t)((char *)z->next_out - out->data);
        if (!check_state(state, z, (size_t)(end - z->next_in), problem))
            return false;
    }
}

bool api_inflate(struct api_inflation *inflation, struct api_buffer *out,
                 struct api_problem *problem)
{
    const unsigned char *start = (const unsigned char *)inflation->bytes;
    enum wrapper wrapper = codings[find(inflation->coding)].wrapper;
    z_stream z = {.next_in = start};
    if (inflateInit2(&z, window_bits(wrapper, start, inflation->size)) != Z_OK)
        return api_fail_oom(problem);
    bool good = inflate_all(&z, inflation, wrapper == GZIP, out, problem);
    inflateEnd(&z);
    if (good && !api_buffer_reserve(out, out->size + API_PADDING))
        return api_fail_oom(problem);
    if (good)
        memset(out->data + out->size, 0, API_PADDING);
    return good;
}

const char *api_coding_choose(const char *accept_encoding)
{
    static const char *const offered[] = {"gzip", "deflate"};
    const char *best = NULL;
    double best_quality = 0;
    if (!accept_encoding)
        return NULL;
    for (size_t i = 0; i < sizeof offered / sizeof *offered; i++) {
        double q = api_accept_quality(accept_encoding, offered[i]);
        if (q > best_quality) {
            best_quality = q;
            best = offered[i];
        }
    }
    return best && best_quality >= api_accept_quality(accept_encoding, "identity") ? best : NULL;
}

/* Compresses one piece of content. The last piece of all has `flush` Z_FINISH, one whose output must be
 * complete Z_FULL_FLUSH, others Z_NO_FLUSH. */
static bool deflate_piece(z_stream *z, const struct api_buffer *piece, int flush,
                          struct api_buffer *out)
{
    const unsigned char *end = (const unsigned char *)piece->data + piece->size;
    bool is_flushed = flush == Z_NO_FLUSH;
    z->next_in = (const unsigned char *)piece->data;
    while (z->next_in < end || !is_flushed) {
        size_t left = (size_t)(end - z->next_in);
        if (!api_buffer_room(out, 4096))
            return false;
        size_t room = out->capacity - out->size;
        z->avail_in = left < UINT_MAX ? (unsigned)left : UINT_MAX;
        z->avail_out = room < UINT_MAX ? (unsigned)room : UINT_MAX;
        z->next_out = (unsigned char *)out->data + out->size;
        bool is_last = z->avail_in == left;
        int state = deflate(z, is_last ? flush : Z_NO_FLUSH);
        out->size = (size_t)((char *)z->next_out - out->data);
        if (state == Z_STREAM_ERROR)
            return false;
        is_flushed |= is_last && (flush == Z_FINISH ? state == Z_STREAM_END : z->avail_out > 0);
    }
    return true;
}

static bool begin_deflate(z_stream *z, int bits)
{
    return deflateInit2(z, Z_BEST_SPEED, Z_DEFLATED, bits, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) ==
           Z_OK;
}

bool api_gzip_begin(const struct api_buffer *first, uint32_t *crc, struct api_buffer *out)
{
    z_stream z = {0};
    if (!begin_deflate(&z, GZIP_BITS))
        return false;
    bool good = deflate_piece(&z, first, Z_FULL_FLUSH, out);
    deflateEnd(&z);
    *crc = (uint32_t)crc32_z(0, (const unsigned char *)first->data, first->size);
    return good;
}

/* Appends a number of the trailer of RFC 1952: 32 bits, the low byte first. */
static void append_trailer(struct api_buffer *out, uint32_t value)
{
    const unsigned char bytes[] = {(unsigned char)value, (unsigned char)(value >> 8),
                                   (unsigned char)(value >> 16), (unsigned char)(value >> 24)};
    api_append(out, bytes, sizeof bytes);
}

bool api_gzip_end(const struct api_buffer *second, uint32_t crc, size_t first_size,
                  struct api_buffer *out)
{
    z_stream z = {0};
    if (!begin_deflate(&z, RAW_BITS))
        return false;
    bool good = deflate_piece(&z, second, Z_FINISH, out);
    deflateEnd(&z);
    uLong own = crc32_z(0, (const unsigned char *)second->data, second->size);
    append_trailer(out, (uint32_t)crc32_combine(crc, own, (z_off_t)second->size));
    append_trailer(out, (uint32_t)(first_size + second->size));
    return good && !out->failed;
}

bool api_deflate_response(struct api_response *response, const char *coding)
{
    bool gzip = strcmp(coding, "gzip") == 0;
    struct api_buffer out = {.budget = response->body.budget};
    z_stream z = {0};
    bool good = begin_deflate(&z, gzip ? GZIP_BITS : ZLIB_BITS);
    if (good) {
        size_t n = response->n_tensors;
        good = deflate_piece(&z, &response->body, n == 0 ? Z_FINISH : Z_NO_FLUSH, &out);
        for (size_t i = 0; good && i < n; i++)
            good =
                deflate_piece(&z, &response->tensors[i], i + 1 == n ? Z_FINISH : Z_NO_FLUSH, &out);
        deflateEnd(&z);
    }
    if (!good || out.failed) {
        api_buffer_free(&out);
        return false;
    }
    api_response_free(response);
    response->body = out;
    api_response_header(response, "Content-Encoding", coding);
    return true;
}
