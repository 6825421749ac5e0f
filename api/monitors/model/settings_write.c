#include "api/monitors/model/format.h"

static void write_window(const struct api_settings *settings, struct api_buffer *out)
{
    if (settings->window == API_BATCH) {
        api_append_text(out, "\"batch\"");
    } else {
        api_append_text(out, settings->window == API_COUNT ? "{\"count\":" : "{\"seconds\":");
        api_write_number(out, settings->window_size);
        if (settings->window == API_SECONDS) {
            api_append_text(out, ",\"grace\":");
            api_write_number(out, settings->grace);
        }
        api_append_text(out, "}");
    }
}

void api_write_compare(const struct api_settings *settings, struct api_buffer *out)
{
    if (settings->previous == 0) {
        api_append_text(out, "\"reference\"");
        return;
    }
    api_append_text(out, "{\"previous\":");
    api_write_number(out, settings->previous);
    api_append_text(out, "}");
}

void api_write_thresholds(const struct api_settings *settings, struct api_buffer *out)
{
    api_append_text(out, "{\"warning\":");
    api_write_number(out, settings->warning);
    api_append_text(out, ",\"critical\":");
    api_write_number(out, settings->critical);
    api_append_text(out, ",\"significance\":");
    api_write_number(out, settings->significance);
    api_append_text(out, "}");
}

void api_settings_write(const struct api_settings *settings, struct api_buffer *out)
{
    api_append_text(out, "\"window\":");
    write_window(settings, out);
    api_append_text(out, ",\"compare\":");
    api_write_compare(settings, out);
    api_append_text(out, ",\"pseudocount\":");
    api_write_number(out, settings->pseudocount);
    api_append_text(out, ",\"min_observations\":");
    api_write_number(out, settings->min_observations);
    api_append_text(out, ",\"thresholds\":");
    api_write_thresholds(settings, out);
    api_append_text(out, ",\"fire_after\":");
    api_write_number(out, settings->fire_after);
    api_append_text(out, ",\"clear_after\":");
    api_write_number(out, settings->clear_after);
    api_append_text(out, ",\"retention_days\":");
    api_write_number(out, settings->retention_days);
}
