#include "api/loss/warnings.h"

#include "api/text/nearest.h"

const char *api_warning_code(unsigned bit)
{
    return bit < KL_WARNINGS ? kl_warning_text((enum kl_warning)bit, KL_MEAN)->code
                             : kl_finding_code((enum kl_finding)(bit - KL_WARNINGS));
}

/* Appends the subscripts of an element, such as [2,0]. */
static void append_index(struct api_buffer *out, const struct kl_tensor *tensor, size_t index)
{
    size_t subscripts[KL_MAX_DIMS];
    for (size_t i = tensor->ndim; i-- > 0; index /= tensor->shape[i])
        subscripts[i] = index % tensor->shape[i];
    api_append_sizes(out, subscripts, tensor->ndim);
}

static void append_warning(const struct api_warnings *warnings, unsigned bit,
                           struct api_buffer *out)
{
    bool is_finding = bit >= KL_WARNINGS;
    api_append_format(
        out, "{\"code\":\"%s\",\"category\":\"UserWarning\",\"message\":", api_warning_code(bit));
    if (!is_finding) {
        api_append_json_string(out,
                               kl_warning_text((enum kl_warning)bit, warnings->reduction)->message);
    } else {
        unsigned i = bit - KL_WARNINGS;
        const struct kl_diagnosis *diagnosis = warnings->diagnosis;
        bool of_target = diagnosis->findings[i].operand == KL_TARGET;
        api_append_json_string(out, diagnosis->findings[i].message);
        api_append_format(out, ",\"count\":%zu,\"index\":", diagnosis->findings[i].count);
        append_index(out, of_target ? &warnings->plan->target : &warnings->plan->input,
                     diagnosis->findings[i].index);
    }
    api_append_text(out, "}");
}

void api_warnings_json(const struct api_warnings *warnings, struct api_buffer *out)
{
    const char *separator = "";
    api_append_text(out, "[");
    for (unsigned bit = 0; bit < API_WARNINGS; bit++) {
        if (!(warnings->bits >> bit & 1))
            continue;
        api_append_text(out, separator);
        append_warning(warnings, bit, out);
        separator = ",";
    }
    api_append_text(out, "]");
}

void api_warnings_members(const struct api_warnings *warnings, struct api_buffer *out)
{
    struct api_buffer array = {.budget = out->budget};
    api_append_text(out, "\"reduction\":\"");
    api_append_text(out, kl_reduction_name(warnings->reduction));
    api_append_text(out, "\",\"warnings\":");
    if (!warnings->bits) {
        api_append_text(out, "\"[]\"");
        return;
    }
    api_warnings_json(warnings, &array);
    api_append(&array, "", 1);
    api_append_json_string(out, array.failed ? "" : array.data);
    out->failed |= array.failed;
    api_buffer_free(&array);
}

void api_warnings_codes(const struct api_warnings *warnings, char *to, size_t size)
{
    *to = '\0';
    for (unsigned bit = 0; bit < API_WARNINGS; bit++)
        if (warnings->bits >> bit & 1)
            api_append_word(to, size, api_warning_code(bit));
}
