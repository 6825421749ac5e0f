/* api_buffer: a growing byte buffer on the budget of the process. */
#pragma once

#include "api/memory/budget.h"

#include <stdatomic.h>
#include <string.h>

/* Empty and usable if zeroed; `budget` may be NULL. A failed allocation or an exhausted budget
 * sets `failed` and keeps the contents; later appends do nothing, so a writer checks `failed`
 * once, at the end. */
struct api_buffer {
    char *data;
    size_t size, capacity;
    size_t expected; /* bytes that may come in all, for which addresses are kept free; or 0 */
    size_t reserved; /* bytes mapped, if they are more than a block of `capacity` bytes; or 0 */
    struct api_budget *budget;
    bool failed;
    bool borrowed; /* `data` is another's, who frees it; a larger capacity is a block of its own */
};

/* Has an empty buffer borrow memory, so that small contents need no allocation. The memory counts toward no budget,
 * and must live as long as the buffer, or until api_buffer_own. */
static inline void api_buffer_borrow(struct api_buffer *buffer, void *memory, size_t size)
{
    buffer->data = memory;
    buffer->capacity = size;
    buffer->borrowed = true;
}

/* Moves borrowed contents to a block of the buffer's own; false if memory is exhausted. */
bool api_buffer_own(struct api_buffer *buffer);

/* Grows the capacity to at least `capacity` bytes; false if memory is exhausted. */
bool api_buffer_grow(struct api_buffer *buffer, size_t capacity);
static inline bool api_buffer_reserve(struct api_buffer *buffer, size_t capacity)
{
    return !buffer->failed && (capacity <= buffer->capacity || api_buffer_grow(buffer, capacity));
}

/* Makes an empty buffer hold `size` bytes of zeros, at least one; NULL if memory is exhausted. */
void *api_buffer_zeros(struct api_buffer *buffer, size_t size);

/* Frees the capacity beyond `size`, if that is more than half of it. */
void api_buffer_trim(struct api_buffer *buffer);

/* Makes room for `size` more bytes at data + size; at least doubles the capacity if it grows. */
bool api_buffer_room(struct api_buffer *buffer, size_t size);

/* Inline: a response and a log line are some sixty short texts, most of which have a length that the
 * compiler knows. */
static inline void api_append(struct api_buffer *buffer, const void *bytes, size_t size)
{
    if (size == 0 || (size > buffer->capacity - buffer->size && !api_buffer_room(buffer, size)) ||
        buffer->failed)
        return;
    memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
}

static inline void api_append_text(struct api_buffer *buffer, const char *text)
{
    api_append(buffer, text, strlen(text));
}

void api_append_unsigned(struct api_buffer *buffer, size_t value);
void api_append_sizes(struct api_buffer *buffer, const size_t *sizes, size_t n); /* [2,3] */
void api_append_format(struct api_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Length, in bytes, of the UTF-8 sequence at `s`, or 0 if it is malformed. */
size_t api_utf8_length(const unsigned char *s);
bool api_is_utf8(const char *text); /* a whole text */

/* The bytes of a text in UTF-8 that are left if it is cut to at most `max`, where a character ends. */
static inline size_t api_utf8_cut(const char *text, size_t size, size_t max)
{
    if (size > max)
        for (size = max; size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80;)
            size--;
    return size;
}

/* Appends a JSON string, quoted and escaped. Bytes that are not UTF-8 become U+FFFD. */
void api_append_json_string(struct api_buffer *buffer, const char *text);

/* Frees the bytes; the buffer is empty and usable. Inline: most of the buffers of a request never had
 * memory of their own. */
void api_buffer_release(struct api_buffer *buffer);
static inline void api_buffer_free(struct api_buffer *buffer)
{
    if (buffer->data && !buffer->borrowed)
        api_buffer_release(buffer);
    *buffer = (struct api_buffer){.budget = buffer->budget};
}

/* api_shared: bytes that several responses send at the same time, kept once. The maker fills `bytes` before any other thread has the object; after that nobody changes them. */
struct api_shared {
    atomic_uint refcount;
    struct api_buffer bytes;
};

/* Makes an object without bytes and with one reference; the bytes will be on the budget. NULL if memory
 * is exhausted. */
struct api_shared *api_shared_new(struct api_budget *budget);

/* Add and drop a reference, from any thread; the last one frees the bytes. NULL is fine. */
struct api_shared *api_shared_hold(struct api_shared *shared);
void api_shared_release(struct api_shared *shared);
