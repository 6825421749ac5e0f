#include "api/memory/buffer.h"

#include "api/text/decimal.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* WORTH_TRIMMING: the ratio of capacity to size above which a buffer is trimmed. A smaller
 * excess does not justify a block of an unusual size, which no later request reuses. */
enum { WORTH_TRIMMING = 2 };

/* A buffer whose announced size is more than WORTH_A_RESERVATION stays where it is once it has more than
 * BEFORE_A_RESERVATION bytes. A body of 1 MiB took half as long again when it moved from block to block up to
 * 256 KiB, which malloc maps anew for each. */
enum { WORTH_A_RESERVATION = 256 << 10, BEFORE_A_RESERVATION = 64 << 10 };

static bool fail(struct api_buffer *buffer)
{
    buffer->failed = true;
    return false;
}

static bool grow_in_place(struct api_buffer *buffer, size_t capacity)
{
    if (capacity > buffer->reserved)
        return fail(buffer);
    capacity = api_reservation_size(capacity);
    if (capacity > buffer->reserved)
        capacity = buffer->reserved;
    if (!api_reservation_grow(buffer->budget, buffer->data, buffer->capacity, capacity))
        return fail(buffer);
    buffer->capacity = capacity;
    return true;
}

static bool move_to_reservation(struct api_buffer *buffer, size_t capacity)
{
    size_t reservation = buffer->expected;
    capacity = api_reservation_size(capacity);
    void *data = api_reservation_new(buffer->budget, buffer->capacity, capacity, &reservation);
    if (!data)
        return false;
    if (buffer->size > 0)
        memcpy(data, buffer->data, buffer->size);
    api_block_free(NULL, buffer->data,
                   buffer->capacity); /* its bytes are counted for the reservation */
    buffer->data = data;
    buffer->capacity = capacity;
    buffer->reserved = reservation;
    return true;
}

/* Leaves borrowed memory for a block of at least `capacity` bytes. */
static bool spill(struct api_buffer *buffer, size_t capacity)
{
    void *data = api_block_resize(buffer->budget, NULL, 0, &capacity);
    if (!data)
        return fail(buffer);
    memcpy(data, buffer->data, buffer->size);
    buffer->data = data;
    buffer->capacity = capacity;
    buffer->borrowed = false;
    return true;
}

bool api_buffer_own(struct api_buffer *buffer)
{
    return !buffer->borrowed || spill(buffer, buffer->capacity);
}

bool api_buffer_grow(struct api_buffer *buffer, size_t capacity)
{
    if (buffer->borrowed)
        return spill(buffer, capacity);
    bool announced = buffer->reserved == 0 && capacity > BEFORE_A_RESERVATION &&
                     buffer->expected > capacity && buffer->expected > WORTH_A_RESERVATION;
    if (buffer->reserved > 0)
        return grow_in_place(buffer, capacity);
    if (announced && move_to_reservation(buffer, capacity))
        return true;
    void *data = api_block_resize(buffer->budget, buffer->data, buffer->capacity, &capacity);
    if (!data)
        return fail(buffer);
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void api_buffer_trim(struct api_buffer *buffer)
{
    size_t capacity = buffer->size ? buffer->size : 1;
    if (buffer->reserved || buffer->borrowed ||
        buffer->capacity - capacity <= capacity / WORTH_TRIMMING)
        return;
    void *data = api_block_resize(buffer->budget, buffer->data, buffer->capacity, &capacity);
    if (!data)
        return;
    buffer->data = data;
    buffer->capacity = capacity;
}

bool api_buffer_room(struct api_buffer *buffer, size_t size)
{
    size_t needed;
    if (size <= buffer->capacity - buffer->size)
        return !buffer->failed;
    if (__builtin_add_overflow(buffer->size, size, &needed) || needed > SIZE_MAX / 2) {
        buffer->failed = true;
        return false;
    }
    size_t doubled = buffer->capacity < 128 ? 256 : 2 * buffer->capacity;
    return api_buffer_reserve(buffer, needed > doubled ? needed : doubled);
}

void *api_buffer_zeros(struct api_buffer *buffer, size_t size)
{
    if (!api_buffer_reserve(buffer, size + 1))
        return NULL;
    buffer->size = size;
    return memset(buffer->data, 0, size + 1);
}

void api_append_unsigned(struct api_buffer *buffer, size_t value)
{
    enum { DIGITS = 20 };
    if (api_buffer_room(buffer, DIGITS))
        buffer->size += api_unsigned_write(buffer->data + buffer->size, value);
}

void api_append_sizes(struct api_buffer *buffer, const size_t *sizes, size_t n)
{
    api_append(buffer, "[", 1);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            api_append(buffer, ",", 1);
        api_append_unsigned(buffer, sizes[i]);
    }
    api_append(buffer, "]", 1);
}

void api_append_format(struct api_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char text[1024];
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size >= 0 && (size_t)size < sizeof text)
        api_append(buffer, text, (size_t)size);
    else
        buffer->failed = true;
}

size_t api_utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high, length;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (s[0] < forms[i].first_low || s[0] > forms[i].first_high)
            continue;
        for (size_t j = 1; j < forms[i].length; j++) {
            unsigned low = j == 1 ? forms[i].second_low : 0x80;
            unsigned high = j == 1 ? forms[i].second_high : 0xbf;
            if (s[j] < low || s[j] > high)
                return 0;
        }
        return forms[i].length;
    }
    return 0;
}

bool api_is_utf8(const char *text)
{
    size_t size = 1;
    for (; *text && size > 0; text += size)
        size = api_utf8_length((const unsigned char *)text);
    return size > 0;
}

void api_append_json_string(struct api_buffer *buffer, const char *text)
{
    const unsigned char *s = (const unsigned char *)text, *plain = s;
    api_append(buffer, "\"", 1);
    for (size_t length; *s; s += length) {
        bool is_plain = *s >= 0x20 && *s != '"' && *s != '\\' && *s != 0x7f;
        length = is_plain && *s < 0x7f ? 1 : api_utf8_length(s);
        if (length > 0 && is_plain)
            continue;
        api_append(buffer, plain, (size_t)(s - plain));
        if (length == 0)
            api_append_text(buffer, "\\ufffd");
        else
            api_append_format(buffer, *s == '"' || *s == '\\' ? "\\%c" : "\\u%04x", *s);
        length = 1;
        plain = s + 1;
    }
    api_append(buffer, plain, (size_t)(s - plain));
    api_append(buffer, "\"", 1);
}

void api_buffer_release(struct api_buffer *buffer)
{
    if (buffer->reserved)
        api_reservation_free(buffer->budget, buffer->data, buffer->capacity, buffer->reserved);
    else
        api_block_free(buffer->budget, buffer->data, buffer->capacity);
}

/* ---- Shared bytes */

struct api_shared *api_shared_new(struct api_budget *budget)
{
    struct api_shared *shared = calloc(1, sizeof *shared);
    if (!shared)
        return NULL;
    shared->refcount = 1;
    shared->bytes.budget = budget;
    return shared;
}

struct api_shared *api_shared_hold(struct api_shared *shared)
{
    if (shared)
        atomic_fetch_add(&shared->refcount, 1);
    return shared;
}

void api_shared_release(struct api_shared *shared)
{
    if (!shared || atomic_fetch_sub(&shared->refcount, 1) > 1)
        return;
    api_buffer_free(&shared->bytes);
    free(shared);
}
