/* Parsing and formatting of decimals. */
#include "api/text/decimal.h"
#include "api/text/number.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *read_padded(const char *text, enum kl_dtype dtype, double *value)
{
    static char padded[1200];
    size_t size = strlen(text);
    cr_assert(size + API_PADDING < sizeof padded);
    memcpy(padded, text, size);
    memset(padded + size, 0, API_PADDING);
    const char *end = api_number_read(padded, dtype, value);
    cr_expect_eq(api_number_end(padded), end, "%s", text);
    return end ? text + (end - padded) : NULL;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

Test(numbers, grammar_is_that_of_json)
{
    static const struct {
        const char *text;
        int length; /* number of bytes read, or -1 */
    } cases[] = {{"0", 1},
                 {"-0", 2},
                 {"10.25e-3,", 8},
                 {"1E+2]", 4},
                 {"1e2", 3},
                 {"123 ", 3},
                 {"01", -1},
                 {"-", -1},
                 {"+1", -1},
                 {".5", -1},
                 {"1.", -1},
                 {"1.e3", -1},
                 {"1e", -1},
                 {"1e+", -1},
                 {"-01", -1},
                 {"Infinity", -1},
                 {"", -1},
                 {"0x10", 1},
                 {"1_000", 1},
                 {"00", -1},
                 {"-a", -1},
                 {"0.0e0", 5},
                 {"12345678901234567890123", 23}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        double value;
        const char *end = read_padded(cases[i].text, KL_FLOAT64, &value);
        int length = end ? (int)(end - cases[i].text) : -1;
        cr_expect_eq(length, cases[i].length, "%s: %d", cases[i].text, length);
    }
}

Test(numbers, hard_cases_are_those_of_strtod)
{
    static const char *const cases[] = {
        "-0",
        "0.1",
        "9007199254740993",
        "9007199254740992.99999999999999999999",
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1e309",
        "1e-400",
        "123456789012345678901234567890e-30",
        "0.000000000000000000000000000000000000000000000000000000000000000000000001234567890123",
        "6.02214076e23",
        "8.5e22",
        "9e22",
        "1e23",
        "3e-23",
        "7.2057594037927933e16",
        "1000000000000000000000000000000000000000000000000000000000000000000000000000000e-75",
        "0e999999999999",
        "1e999999999999",
        "1e-999999999999",
        "8.98846567431157953e307",
        "0.500000000000000166533453693773481063544750213623046875",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126",
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        double value;
        cr_assert(read_padded(cases[i], KL_FLOAT64, &value), "%s", cases[i]);
        cr_expect_eq(bits_of(value), bits_of(strtod(cases[i], NULL)), "%s: %a", cases[i], value);
    }
}

/* KLDIV_NUMBERS sets the number of strings; the default is a million. */
Test(numbers, random_strings_are_read_as_strtod_reads_them)
{
    unsigned long long state = 7;
    const char *asked = getenv("KLDIV_NUMBERS");
    size_t n = asked ? strtoul(asked, NULL, 10) : 1000000;
    for (size_t i = 0; i < n; i++) {
        char text[64];
        int digits = 1 + (int)(uniform(&state) * 20), exponent = (int)(uniform(&state) * 660) - 340;
        double mantissa = uniform(&state) * 10 - 5, value;
        if (i & 1)
            snprintf(text, sizeof text, "%.*f", digits, mantissa);
        else
            snprintf(text, sizeof text, "%.*fe%d", digits, mantissa, exponent);
        cr_assert(read_padded(text, KL_FLOAT64, &value), "%s", text);
        if (bits_of(value) != bits_of(strtod(text, NULL)))
            cr_expect(false, "%s: %a", text, value);
    }
}

Test(numbers, narrow_dtypes_are_rounded_once)
{
    static const struct {
        const char *text;
        enum kl_dtype dtype;
        double expected;
    } cases[] = {
        {"1.00000005960464477540", KL_FLOAT32, 0x1.000002p0}, /* just above a tie */
        {"1.00000005960464477539", KL_FLOAT32, 0x1.000000p0}, /* the tie itself */
        {"1.00000017881393432617187499999999999999", KL_FLOAT32, 0x1.000002p0},
        {"1.00000017881393432617187500000000000001", KL_FLOAT32, 0x1.000004p0},
        {"-1.00000017881393432617187500000000000001", KL_FLOAT32, -0x1.000004p0},
        {"7.0064923216240853546186479164495806564013097093825788587853e-46", KL_FLOAT32, 0},
        {"7.0064923216240853546186479164495806564013097093825788587854e-46", KL_FLOAT32, 0x1p-149},
        {"1e39", KL_FLOAT32, INFINITY},
        {"65519.999999999999999999999999", KL_FLOAT16, 65504},
        {"65520", KL_FLOAT16, INFINITY},
        {"1.00048828125", KL_FLOAT16, 1},
        {"1.000488281250000000000000000000001", KL_FLOAT16, 0x1.004p0},
        {"1.00390625000000000000000000000001", KL_BFLOAT16, 0x1.02p0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        double value;
        char cell[8];
        cr_assert(read_padded(cases[i].text, cases[i].dtype, &value));
        kl_store(cases[i].dtype, cell, 0, value);
        cr_expect_eq(kl_load(cases[i].dtype, cell, 0), cases[i].expected, "%s", cases[i].text);
    }
}

Test(numbers, locales_do_not_matter)
{
    double value;
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        setlocale(LC_ALL, "C.UTF-8");
    cr_assert(
        read_padded("1.00000000000000011102230246251565404236316680908203126", KL_FLOAT64, &value));
    cr_expect_eq(value, 0x1.0000000000001p0);
}

static void written(char *text, enum kl_dtype dtype, double value)
{
    text[api_decimal_write(text, dtype, value)] = '\0';
}

Test(numbers, are_written_as_people_write_them)
{
    static const struct {
        double value;
        enum kl_dtype dtype;
        const char *text;
    } cases[] = {
        {0, KL_FLOAT64, "0.0"},
        {-0.0, KL_FLOAT64, "-0.0"},
        {1, KL_FLOAT64, "1.0"},
        {-2.5, KL_FLOAT64, "-2.5"},
        {0.1, KL_FLOAT64, "0.1"},
        {100, KL_FLOAT64, "100.0"},
        {1e15, KL_FLOAT64, "1000000000000000.0"},
        {1e16, KL_FLOAT64, "1e16"},
        {1e22, KL_FLOAT64, "1e22"},
        {0.0001, KL_FLOAT64, "0.0001"},
        {0.00001, KL_FLOAT64, "1e-5"},
        {1.5e-7, KL_FLOAT64, "1.5e-7"},
        {5e-324, KL_FLOAT64, "5e-324"},
        {1.7976931348623157e308, KL_FLOAT64, "1.7976931348623157e308"},
        {0x1.99999ap-4, KL_FLOAT32, "0.1"},
        {0x1p-149, KL_FLOAT32, "1e-45"},
        {0x1.998p-4, KL_FLOAT16, "0.1"},
        {65504, KL_FLOAT16, "65500.0"},
        {0x1.9ap-4, KL_BFLOAT16, "0.1"},
        {NAN, KL_FLOAT64, "\"NaN\""},
        {INFINITY, KL_FLOAT32, "\"Infinity\""},
        {-INFINITY, KL_FLOAT16, "\"-Infinity\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[API_DECIMAL_MAX + 1];
        written(text, cases[i].dtype, cases[i].value);
        cr_expect_str_eq(text, cases[i].text);
    }
}

static size_t digits_in(const char *text)
{
    size_t n = 0, zeros = 0;
    bool leading = true;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (leading && *text == '0'))
            continue;
        leading = false;
        n++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

/* Smallest number of printf's digits that read back. */
static size_t fewest_digits(double value)
{
    char text[40];
    int precision = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision++, value);
    while (strtod(text, NULL) != value);
    return digits_in(text);
}

Test(numbers, written_float64_are_shortest_and_read_back)
{
    unsigned long long state = 3;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = bits_of(uniform(&state)) ^ (uint64_t)(uniform(&state) * 0x1p63) << 1;
        double value, back;
        memcpy(&value, &bits, sizeof value);
        char text[API_DECIMAL_MAX + 1];
        if (!isfinite(value))
            continue;
        written(text, KL_FLOAT64, value);
        cr_assert(read_padded(text, KL_FLOAT64, &back));
        if (back != value || digits_in(text) > fewest_digits(value))
            cr_expect(false, "%a: %s", value, text);
    }
}

Test(numbers, every_half_reads_back)
{
    for (enum kl_dtype dtype = KL_FLOAT16; dtype <= KL_BFLOAT16; dtype++)
        for (unsigned bits = 0; bits < 65536; bits++) {
            unsigned short half = (unsigned short)bits, back;
            char text[API_DECIMAL_MAX + 1];
            double value = kl_load(dtype, &half, 0);
            if (!isfinite(value))
                continue;
            written(text, dtype, value);
            cr_assert(read_padded(text, dtype, &value));
            kl_store(dtype, &back, 0, value);
            cr_assert_eq(back, half, "%s", text);
            cr_assert_leq(digits_in(text), 5);
        }
}
