#include "api/monitors/model/verdict.h"

const char *const api_verdict_names[API_VERDICTS] = {"insufficient_data", "ok", "warning",
                                                     "critical"};

enum api_verdict api_verdict_of(int64_t number)
{
    return number >= 0 && number < API_VERDICTS ? (enum api_verdict)number : API_INSUFFICIENT;
}

enum api_verdict api_state_after(enum api_verdict before, const enum api_verdict *verdicts,
                                 size_t n, size_t fire_after, size_t clear_after)
{
    enum api_verdict state = before < API_OK ? API_OK : before;
    enum api_verdict min = API_CRITICAL, max = API_OK;
    for (size_t i = 0; i < fire_after && i < n; i++)
        if (verdicts[n - 1 - i] < min)
            min = verdicts[n - 1 - i];
    for (size_t i = 0; i < clear_after && i < n; i++)
        if (verdicts[n - 1 - i] > max)
            max = verdicts[n - 1 - i];
    if (n >= fire_after && min > state)
        return min;
    return n >= clear_after && max < state ? max : state;
}
