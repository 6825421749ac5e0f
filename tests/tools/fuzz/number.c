/* Decimals: parsed as strtod does, and formatted so that they read back. */
#include "api/text/number.h"
#include "api/text/decimal.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + API_PADDING);
    double value, narrow;
    if (!text)
        abort();
    memcpy(text, data, size);
    const char *end = api_number_read(text, KL_FLOAT64, &value);
    if (end) {
        text[end - text] = '\0';
        double theirs = strtod(text, NULL);
        if (memcmp(&value, &theirs, sizeof value) != 0 ||
            api_number_read(text, KL_FLOAT32, &narrow) != end)
            abort();
        if ((float)narrow != strtof(text, NULL))
            abort();
    }
    free(text);
}

static void check_value(const uint8_t *data)
{
    char text[API_DECIMAL_MAX + API_PADDING] = {0};
    double value, back;
    memcpy(&value, data, sizeof value);
    size_t size = api_decimal_write(text, KL_FLOAT64, value);
    memset(text + size, 0, sizeof text - size);
    if (isfinite(value) && (api_number_read(text, KL_FLOAT64, &back) != text + size ||
                            memcmp(&value, &back, sizeof value) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_text(data, size);
    if (size >= sizeof(double))
        check_value(data);
    return 0;
}
