#include "api/monitors/model/window.h"

#include "api/monitors/model/format.h"

#include <stdlib.h>

void api_window_free(struct api_window *window)
{
    free(window->settings);
    free(window->reference);
    window->settings = NULL;
    window->reference = NULL;
}

void api_window_write(const struct api_window *window, struct api_buffer *out)
{
    if (window->id == 0) {
        api_append_text(out, "null");
        return;
    }
    api_append_text(out, "{\"id\":");
    api_append_unsigned(out, (size_t)window->id);
    api_append_text(out, ",\"start\":");
    api_write_time(out, window->start);
    api_append_text(out, ",\"end\":");
    api_write_time(out, window->end);
    api_write_flag(out, "closed", window->closed);
    api_write_flag(out, "restated", window->restated);
    api_append(out, "}", 1);
}
