#include "api/files/dtypes.h"

#include "api/text/nearest.h"

#include <string.h>

/* Names of dtypes in each format; the column of .npy has numpy's names, because its files hold
 * codes that few users know. */
static const struct {
    enum kl_dtype dtype;
    const char *names[API_DTYPE_NAMES], *numpy_word;
} dtypes[] = {
    {KL_FLOAT64,
     {[API_SAFETENSORS] = "F64", [API_NUMPY] = "f8", [API_INFERENCE] = "FP64"},
     "float64"},
    {KL_FLOAT32,
     {[API_SAFETENSORS] = "F32", [API_NUMPY] = "f4", [API_INFERENCE] = "FP32"},
     "float32"},
    {KL_FLOAT16,
     {[API_SAFETENSORS] = "F16", [API_NUMPY] = "f2", [API_INFERENCE] = "FP16"},
     "float16"},
    {KL_BFLOAT16, {[API_SAFETENSORS] = "BF16", [API_INFERENCE] = "BF16"}, NULL},
    {API_BYTE, {[API_SAFETENSORS] = "BOOL", [API_NUMPY] = "b1", [API_INFERENCE] = "BOOL"}, "bool"},
    {API_BYTE, {[API_SAFETENSORS] = "U8", [API_NUMPY] = "u1", [API_INFERENCE] = "UINT8"}, "uint8"},
};
#define N_DTYPES (sizeof dtypes / sizeof *dtypes)

#define INTEGRAL ": kl_div: Integral inputs not supported."
#define COMPLEX ": kl_div: Complex inputs not supported."

/* Name of row `i` if a tensor of that kind may have it, else NULL. */
static const char *name_for(enum api_dtype_names format, bool is_mask, size_t i)
{
    return (dtypes[i].dtype == API_BYTE) == is_mask ? dtypes[i].names[format] : NULL;
}

bool api_dtype_find(enum api_dtype_names format, const char *name, size_t size, bool is_mask,
                    enum kl_dtype *dtype)
{
    for (size_t i = 0; i < N_DTYPES; i++) {
        const char *known = name_for(format, is_mask, i);
        if (!known || strlen(known) != size || memcmp(known, name, size) != 0)
            continue;
        *dtype = dtypes[i].dtype;
        return true;
    }
    return false;
}

const char *api_dtype_name(enum api_dtype_names format, enum kl_dtype dtype)
{
    size_t i = 0;
    while (dtypes[i].dtype != dtype)
        i++;
    return dtypes[i].names[format];
}

void api_dtype_list(enum api_dtype_names format, bool is_mask, char *to, size_t size)
{
    *to = '\0';
    for (size_t i = 0; i < N_DTYPES; i++) {
        const char *name = name_for(format, is_mask, i);
        if (name && format == API_NUMPY)
            name = dtypes[i].numpy_word;
        if (name)
            api_append_word(to, size, name);
    }
}

const char *api_dtype_unsupported_reason(enum api_dtype_names format, const char *name,
                                         bool is_mask)
{
    static const struct {
        const char *begins, *words;
    } refused[API_DTYPE_NAMES][4] = {
        [API_SAFETENSORS] = {{"I", INTEGRAL}, {"U", INTEGRAL}, {"BOOL", INTEGRAL}, {"C", COMPLEX}},
        [API_NUMPY] = {{"i", INTEGRAL}, {"u", INTEGRAL}, {"b", INTEGRAL}, {"c", COMPLEX}},
        [API_INFERENCE] = {{"INT", INTEGRAL}, {"UINT", INTEGRAL}, {"BOOL", INTEGRAL}},
    };
    for (size_t i = 0; i < 4 && refused[format][i].begins && !is_mask; i++)
        if (strncmp(name, refused[format][i].begins, strlen(refused[format][i].begins)) == 0)
            return refused[format][i].words;
    return "";
}
