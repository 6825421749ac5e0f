#include "api/warnings.h"

#include <stdio.h>

void api_warnings_json(const struct kl_plan *plan, struct api_buffer *out)
{
    const char *separator = "";
    api_append_text(out, "[");
    for (unsigned i = 0; i < KL_WARNINGS; i++) {
        if (!(plan->warnings & 1u << i))
            continue;
        const struct kl_warning_text *text = kl_warning_text((enum kl_warning)i, plan->reduction);
        api_append_format(out, "%s{\"code\":\"%s\",\"category\":\"%s\",\"message\":", separator,
                          text->code, text->category);
        api_append_json_string(out, text->message);
        api_append_text(out, "}");
        separator = ",";
    }
    api_append_text(out, "]");
}

void api_warnings_json_text(const struct kl_plan *plan, struct api_buffer *out)
{
    struct api_buffer array = {.budget = out->budget};
    if (!plan->warnings) {
        api_append_text(out, "\"[]\"");
        return;
    }
    api_warnings_json(plan, &array);
    api_append(&array, "", 1);
    api_append_json_string(out, array.failed ? "" : array.data);
    out->failed |= array.failed;
    api_buffer_free(&array);
}

void api_warnings_codes(const struct kl_plan *plan, char *to, size_t size)
{
    size_t used = 0;
    *to = '\0';
    for (unsigned i = 0; i < KL_WARNINGS && used < size; i++)
        if (plan->warnings & 1u << i)
            used += (size_t)snprintf(to + used, size - used, "%s%s", used ? ", " : "",
                                     kl_warning_text((enum kl_warning)i, plan->reduction)->code);
}
