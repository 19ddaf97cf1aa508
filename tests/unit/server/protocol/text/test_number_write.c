/* The writer against the C library, on values drawn over all bit patterns. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/xorshift.h"
#include "server/protocol/text/number_scan.h"
#include "server/protocol/text/number_write.h"

static uint64_t state = 88172645463325252ull;

static uint64_t draw(void)
{
    return xorshift64_next(&state);
}

static bool scan(const char *text, number *out)
{
    const char *end = text + strlen(text);
    return number_scan(text, end, out) == end;
}

Test(number_write, f32_round_trips)
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

Test(number_write, f64_round_trips)
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

Test(number_write, f16_and_bf16_text_is_shortest)
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

Test(number_write, f32_text_is_shortest)
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
