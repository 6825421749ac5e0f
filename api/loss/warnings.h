/* Warnings on the wire: those of the options and of the loss, and the findings of a diagnosis. */
#pragma once

#include "api/memory/buffer.h"
#include "lib/kldiv.h"

/* Number of warnings of both kinds, which are bits: enum kl_warning, then enum kl_finding. */
#define API_WARNINGS (KL_WARNINGS + KL_FINDINGS)
#define API_DEPRECATIONS ((1u << KL_LOSS_NEGATIVE) - 1)

/* api_warnings: the warnings of a response. `plan` and `diagnosis` are read only if there are
 * findings. */
struct api_warnings {
    unsigned bits;
    enum kl_reduction reduction; /* as applied */
    const struct kl_plan *plan;
    const struct kl_diagnosis *diagnosis;
};

/* Code of bit number `bit`. Static lifetime. */
const char *api_warning_code(unsigned bit);

/* Appends a JSON array of {"code", "category", "message"}, findings with {"count", "index"}. */
void api_warnings_json(const struct api_warnings *warnings, struct api_buffer *out);

/* Appends `"reduction":"mean","warnings":"[...]"`, for formats whose values are strings. */
void api_warnings_members(const struct api_warnings *warnings, struct api_buffer *out);

/* Formats the codes with ", " between; truncates to `size` bytes. */
void api_warnings_codes(const struct api_warnings *warnings, char *to, size_t size);
