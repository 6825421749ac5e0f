/* Growing byte buffers on the budget of the process. */
#ifndef KLDIV_API_MEMORY_BUFFER_H
#define KLDIV_API_MEMORY_BUFFER_H

#include "api/memory/budget.h"

/* Zeroed but for `budget` (which may be NULL) it is empty and usable. A failed allocation or an
 * exhausted budget sets `failed` and leaves the contents alone; appending goes on doing nothing,
 * so a writer looks at `failed` once, at the end. */
struct api_buffer {
    char *data;
    size_t size, capacity;
    struct api_budget *budget;
    bool failed;
};

/* Makes room for `capacity` bytes in all. */
bool api_buffer_reserve(struct api_buffer *buffer, size_t capacity);

/* Gives back the capacity beyond size, if that is more than half of it. */
void api_buffer_trim(struct api_buffer *buffer);

/* Room for `size` more bytes at data + size, at least doubling the capacity when it grows. */
bool api_buffer_room(struct api_buffer *buffer, size_t size);

void api_append(struct api_buffer *buffer, const void *bytes, size_t size);
void api_append_text(struct api_buffer *buffer, const char *text);
void api_append_unsigned(struct api_buffer *buffer, size_t value);
void api_append_sizes(struct api_buffer *buffer, const size_t *sizes, size_t n); /* [2,3] */
void api_append_format(struct api_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The length of the UTF-8 sequence that starts here, or 0 if none does. */
size_t api_utf8_length(const unsigned char *s);

/* A JSON string, quoted and escaped. Bytes that are not UTF-8 become U+FFFD. */
void api_append_json_string(struct api_buffer *buffer, const char *text);

/* Leaves it empty and usable. */
void api_buffer_free(struct api_buffer *buffer);

#endif
