/* Warnings on the wire. */
#ifndef KLDIV_API_WARNINGS_H
#define KLDIV_API_WARNINGS_H

#include "api/buffer.h"
#include "lib/kldiv.h"

/* Appends a JSON array of {"code", "category", "message"}, for a plan's warnings. */
void api_warnings_json(const struct kl_plan *plan, struct api_buffer *out);

/* The same as the text of a JSON string, for formats whose values are strings. */
void api_warnings_json_text(const struct kl_plan *plan, struct api_buffer *out);

/* Writes their codes, ", " between; cut if `size` is too small. */
void api_warnings_codes(const struct kl_plan *plan, char *to, size_t size);

#endif
