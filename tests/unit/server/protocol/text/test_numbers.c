/* The scanner and the writer against the C library, on values drawn over all bit patterns. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "server/protocol/text/number_scan.h"
#include "server/protocol/text/number_write.h"

static uint64_t state = 88172645463325252ull;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static bool scan(const char *text, number *out)
{
    const char *end = text + strlen(text);
    return number_scan(text, end, out) == end;
}

Test(numbers, f32_round_trips)
{
    for (int i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)(draw() >> 16), back;
        float value, read;
        char text[NUMBER_F32_CHARS + 1];
        number n;
        memcpy(&value, &bits, sizeof(value));
        if (isnan(value))
            continue;
        *number_write_f32(text, value) = '\0';
        cr_assert(scan(text, &n), "%s", text);
        read = number_to_f32(&n);
        memcpy(&back, &read, sizeof(back));
        cr_assert_eq(back, bits, "%a is written %s", (double)value, text);
        cr_assert(isinf(value) || strtof(text, NULL) == value, "%s", text);
    }
}

Test(numbers, f64_round_trips)
{
    for (int i = 0; i < 1000000; i++) {
        uint64_t bits = draw(), back;
        double value, read;
        char text[NUMBER_F64_CHARS + 1];
        number n;
        memcpy(&value, &bits, sizeof(value));
        if (isnan(value))
            continue;
        *number_write_f64(text, value) = '\0';
        cr_assert(scan(text, &n), "%s", text);
        read = number_to_f64(&n);
        memcpy(&back, &read, sizeof(back));
        cr_assert_eq(back, bits, "%a is written %s", value, text);
        cr_assert(isinf(value) || strtod(text, NULL) == value, "%s", text);
    }
}

static int significant_digits(const char *text)
{
    int digits = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text == '0' && digits > 0)
            zeros++;
        else if (*text >= '1' && *text <= '9')
            digits += zeros + 1, zeros = 0;
    }
    return digits;
}

/* All of them: each text reads back as itself, and nothing with fewer digits does. */
static void check_16_bits(char *write(char *, uint16_t), float read(uint16_t),
                          uint16_t round(float))
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float value = read((uint16_t)bits);
        char text[NUMBER_F32_CHARS + 1], other[40];
        if (!isfinite(value))
            continue;
        *write(text, (uint16_t)bits) = '\0';
        cr_assert_eq(round(strtof(text, NULL)), bits, "%s is not %04x", text, bits);
        int digits = significant_digits(text);
        if (value == 0 || digits < 2)
            continue;
        /* The two texts of one digit fewer that enclose the value. */
        int exponent = (int)floor(log10(fabs((double)value)));
        double step = pow(10, exponent - digits + 2), low = floor(fabs((double)value) / step);
        for (int up = 0; up < 2; up++) {
            snprintf(other, sizeof(other), "%s%.0fe%d", value < 0 ? "-" : "", low + up,
                     exponent - digits + 2);
            cr_assert(round(strtof(other, NULL)) != bits, "%s is longer than %s", text, other);
        }
    }
}

Test(numbers, f16_and_bf16_text_is_shortest)
{
    char text[NUMBER_F32_CHARS + 1];
    check_16_bits(number_write_f16, dtype_f16_to_f32, dtype_f32_to_f16);
    check_16_bits(number_write_bf16, dtype_bf16_to_f32, dtype_f32_to_bf16);
    *number_write_f16(text, 0x2e66) = '\0';
    cr_assert_str_eq(text, "0.1");
    *number_write_bf16(text, 0x3dcd) = '\0';
    cr_assert_str_eq(text, "0.1");
    *number_write_f16(text, 0x7bff) = '\0';
    cr_assert_str_eq(text, "65500.0");
}

Test(numbers, f32_text_is_shortest)
{
    for (int i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t)(draw() >> 16) & 0x7fffffff;
        float value;
        char text[NUMBER_F32_CHARS + 1], other[40];
        memcpy(&value, &bits, sizeof(value));
        if (!isfinite(value) || value == 0)
            continue;
        *number_write_f32(text, value) = '\0';
        int digits = significant_digits(text);
        snprintf(other, sizeof(other), "%.*e", digits > 1 ? digits - 2 : 0, (double)value);
        cr_assert(digits == 1 || strtof(other, NULL) != value, "%s is longer than %s", text, other);
    }
}

Test(numbers, scanning_rounds_as_the_library_does)
{
    for (int i = 0; i < 500000; i++) {
        char text[64], *p = text;
        int digits = 1 + (int)(draw() % 25);
        number n;
        for (int d = 0; d < digits; d++) {
            *p++ = (char)('0' + (d == 0 ? 1 + draw() % 9 : draw() % 10));
            if (d == 0 && digits > 1)
                *p++ = '.';
        }
        sprintf(p, "e%d", (int)(draw() % 100) - 50);
        cr_assert(scan(text, &n));
        cr_assert_eq(number_to_f32(&n), strtof(text, NULL), "%s", text);
        cr_assert_eq(number_to_f64(&n), strtod(text, NULL), "%s", text);
    }
}

Test(numbers, hard_cases)
{
    static const char *const texts[] = {
        "2.2250738585072011e-308", /* the number that hung PHP */
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "9007199254740993",
        "9007199254740992.9999999999999999999999",
        "1e-400",
        "1e400",
        "0.000",
        "-0.0",
        "16777217",
        "16777216.99999999999999999999999",
        "1.17549429e-38",
        "3.4028236e38",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649"
        "017977587207096330286416692887910946555547851940402630657488671505820681908902000708383"
        "676273854845817711531764475730270069855571366959622842914819860834936475292719074168444"
        "365510704342711559699508093042880"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        number n;
        cr_assert(scan(texts[i], &n), "%s", texts[i]);
        cr_assert_eq(number_to_f64(&n), strtod(texts[i], NULL), "%s", texts[i]);
        cr_assert_eq(number_to_f32(&n), strtof(texts[i], NULL), "%s", texts[i]);
    }
}

Test(numbers, what_json_does_not_allow_is_no_number)
{
    static const char *const texts[] = {"",    "-",   "+1",  ".5",   "1.",      "01",  "-01", "1e",
                                        "1e+", "0x1", "nan", "-NaN", "Infinit", "--1", "1.e5"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        number n;
        cr_assert_not(scan(texts[i], &n), "\"%s\" was taken", texts[i]);
    }
}

Test(numbers, integers_are_exact_or_refused)
{
    static const struct {
        const char *text;
        bool fits_i64, fits_u64;
        int64_t value;
    } cases[] = {{"9223372036854775807", true, true, INT64_MAX},
                 {"9223372036854775808", false, true, INT64_MIN},
                 {"-9223372036854775808", true, false, INT64_MIN},
                 {"-9223372036854775809", false, false, 0},
                 {"18446744073709551615", false, true, -1},
                 {"18446744073709551616", false, false, 0},
                 {"1e3", true, true, 1000},
                 {"2.0", true, true, 2},
                 {"2.5", false, false, 0},
                 {"1e300", false, false, 0},
                 {"-0", true, true, 0},
                 {"NaN", false, false, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        number n;
        int64_t s;
        uint64_t u;
        cr_assert(scan(cases[i].text, &n));
        cr_assert_eq(number_to_i64(&n, &s), cases[i].fits_i64, "%s", cases[i].text);
        cr_assert_eq(number_to_u64(&n, &u), cases[i].fits_u64, "%s", cases[i].text);
        if (cases[i].fits_i64)
            cr_assert_eq(s, cases[i].value);
        if (cases[i].fits_u64)
            cr_assert_eq((int64_t)u, cases[i].value);
    }
}
