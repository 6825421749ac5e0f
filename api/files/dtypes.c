#include "api/files/dtypes.h"

#include "api/text/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* word: the name of a type beside numpy's code for it, which few users know. */
static const struct {
    const char *names[API_DTYPE_NAMES], *word;
    struct api_type type;
} types[] = {
    {{"F64", "f8", "FP64"}, "float64", {API_FLOAT, KL_FLOAT64, 8, false}},
    {{"F32", "f4", "FP32"}, "float32", {API_FLOAT, KL_FLOAT32, 4, false}},
    {{"F16", "f2", "FP16"}, "float16", {API_FLOAT, KL_FLOAT16, 2, false}},
    {{"BF16", "", "BF16"}, "", {API_FLOAT, KL_BFLOAT16, 2, false}},
    {{"BOOL", "b1", "BOOL"}, "bool", {API_BOOL, API_BYTE, 1, false}},
    {{"U8", "u1", "UINT8"}, "uint8", {API_UNSIGNED, API_BYTE, 1, false}},
    {{"U16", "u2", "UINT16"}, "uint16", {API_UNSIGNED, KL_FLOAT64, 2, false}},
    {{"U32", "u4", "UINT32"}, "uint32", {API_UNSIGNED, KL_FLOAT64, 4, false}},
    {{"U64", "u8", "UINT64"}, "uint64", {API_UNSIGNED, KL_FLOAT64, 8, false}},
    {{"I8", "i1", "INT8"}, "int8", {API_SIGNED, KL_FLOAT64, 1, false}},
    {{"I16", "i2", "INT16"}, "int16", {API_SIGNED, KL_FLOAT64, 2, false}},
    {{"I32", "i4", "INT32"}, "int32", {API_SIGNED, API_INT32, 4, false}},
    {{"I64", "i8", "INT64"}, "int64", {API_SIGNED, API_INT64, 8, false}},
};
#define N_TYPES (sizeof types / sizeof *types)

/* Finds numpy's text by "U5", of five characters. */
static bool find_text(const char *name, struct api_type *type)
{
    enum { MAX_CHARACTERS = 1 << 24 };
    char *end;
    if (*name != 'U' || !isdigit((unsigned char)name[1]))
        return false;
    unsigned long n = strtoul(name + 1, &end, 10);
    *type = (struct api_type){API_CHARACTERS, KL_FLOAT64, n * API_CHARACTER, false};
    return !*end && n <= MAX_CHARACTERS;
}

bool api_type_find(enum api_dtype_names format, const char *name, struct api_type *type)
{
    size_t i = 0;
    bool swapped = *name == '>';
    if (format == API_NUMPY && (!*name || !strchr("<>=|", *name++)))
        return false;
    while (i < N_TYPES && (!*name || strcmp(types[i].names[format], name) != 0))
        i++;
    if (i < N_TYPES)
        *type = types[i].type;
    else if (format != API_NUMPY || !find_text(name, type))
        return false;
    type->swapped = swapped;
    return true;
}

static bool may_have(const struct api_type *type, enum api_tensor_kind kind)
{
    return kind == API_BITS      ? type->dtype == API_BYTE
           : kind == API_INDICES ? type->dtype >= API_INT32
                                 : type->element == API_FLOAT;
}

/* Why a tensor of numbers cannot have the type, which is NULL if it is unknown; or "". */
static const char *reason(enum api_dtype_names format, const char *name,
                          const struct api_type *type)
{
    if (type)
        return type->element == API_CHARACTERS ? "" : ": kl_div: Integral inputs not supported.";
    if (format == API_NUMPY && *name && name[1] == 'O')
        return ": Python objects are not supported";
    bool is_complex =
        format == API_NUMPY ? *name && name[1] == 'c' : format == API_SAFETENSORS && *name == 'C';
    return is_complex ? ": kl_div: Complex inputs not supported." : "";
}

bool api_type_of_tensor(enum api_dtype_names format, const char *name, enum api_tensor_kind kind,
                        struct api_type *type, char refusal[API_REFUSAL])
{
    static const char *const words[][2] = {[API_SAFETENSORS] = {"dtype ", ""},
                                           [API_NUMPY] = {"numpy's dtype '", "'"},
                                           [API_INFERENCE] = {"datatype ", ""}};
    bool is_known = api_type_find(format, name, type);
    char known[60] = "";
    if (is_known && may_have(type, kind))
        return true;
    for (size_t i = 0; i < N_TYPES; i++)
        if (may_have(&types[i].type, kind) && *types[i].names[format])
            api_append_word(known, sizeof known,
                            format == API_NUMPY ? types[i].word : types[i].names[format]);
    snprintf(refusal, API_REFUSAL, "%s%.30s%s is not one of %s%s", words[format][0], name,
             words[format][1], known,
             kind == API_NUMBERS ? reason(format, name, is_known ? type : NULL) : "");
    return false;
}

const char *api_dtype_name(enum api_dtype_names format, enum kl_dtype dtype)
{
    size_t i = 0;
    while (types[i].type.dtype != dtype)
        i++;
    return types[i].names[format];
}
