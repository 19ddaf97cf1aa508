#include "base/dtype.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* The value of a small float by its definition (IEEE 754 section 3.4), in double, which holds every
 * binary16 and bfloat16 exactly. */
static double value_of(uint16_t bits, int exponent_bits, int fraction_bits)
{
    int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = bits & ((1 << fraction_bits) - 1);
    int bias = (1 << (exponent_bits - 1)) - 1;
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

static bool is_same_double(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

Test(dtype, widens_every_16_bit_float_exactly)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        cr_assert(is_same_double((double)dtype_f16_to_f32((uint16_t)bits),
                                 value_of((uint16_t)bits, 5, 10)),
                  "f16 %04x", bits);
        cr_assert(is_same_double((double)dtype_bf16_to_f32((uint16_t)bits),
                                 value_of((uint16_t)bits, 8, 7)),
                  "bf16 %04x", bits);
    }
}

/* Round to nearest, ties to even, by search over the sorted non-negative values. */
static uint16_t round_slowly(double magnitude, int exponent_bits, int fraction_bits)
{
    uint32_t low = 0, high = ((1u << exponent_bits) - 1) << fraction_bits; /* 0 and infinity */
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (value_of((uint16_t)middle, exponent_bits, fraction_bits) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    /* Infinity takes the place of the next power of two when rounding (IEEE 754 section 4.3.1). */
    double below = value_of((uint16_t)low, exponent_bits, fraction_bits), above;
    if (high == ((1u << exponent_bits) - 1) << fraction_bits)
        above = ldexp(1, 1 << (exponent_bits - 1));
    else
        above = value_of((uint16_t)high, exponent_bits, fraction_bits);
    double to_below = magnitude - below, to_above = above - magnitude;
    if (to_below < to_above || (to_below == to_above && low % 2 == 0))
        return (uint16_t)low;
    return (uint16_t)high;
}

static void check_narrowing(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    uint16_t f16 = dtype_f32_to_f16(value), bf16 = dtype_f32_to_bf16(value);
    if (isnan(value)) {
        cr_assert((f16 & 0x7c00) == 0x7c00 && (f16 & 0x0200) != 0, "NaN %08x", bits);
        cr_assert((bf16 & 0x7f80) == 0x7f80 && (bf16 & 0x0040) != 0, "NaN %08x", bits);
        return;
    }
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    double magnitude = fabs((double)value);
    uint16_t want = isinf(value) ? 0x7c00 : round_slowly(magnitude, 5, 10);
    cr_assert_eq(f16, sign | want, "f32 %08x: f16 %04x, not %04x", bits, f16, sign | want);
    want = isinf(value) ? 0x7f80 : round_slowly(magnitude, 8, 7);
    cr_assert_eq(bf16, sign | want, "f32 %08x: bf16 %04x, not %04x", bits, bf16, sign | want);
}

Test(dtype, narrows_to_nearest_even)
{
    /* Every value of 16 bits with the bits around the rounding point of either type below it: exact
     * values, ties and their neighbours. */
    static const uint32_t tails[] = {0,      1,      0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000,
                                     0x3001, 0x7fff, 0x8000, 0x8001, 0xefff, 0xf000, 0xffff};
    for (uint32_t high = 0; high < 65536; high++)
        for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++)
            check_narrowing(high << 16 | tails[i]);
    uint32_t random = 1;
    for (int i = 0; i < 300000; i++)
        check_narrowing(random = random * 1664525 + 1013904223);
}

Test(dtype, narrowing_undoes_widening)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        if (!isnan(dtype_f16_to_f32((uint16_t)bits)))
            cr_assert_eq(dtype_f32_to_f16(dtype_f16_to_f32((uint16_t)bits)), bits);
        if (!isnan(dtype_bf16_to_f32((uint16_t)bits)))
            cr_assert_eq(dtype_f32_to_bf16(dtype_bf16_to_f32((uint16_t)bits)), bits);
    }
}

Test(dtype, names_and_numbers_are_one_to_one)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        dtype found;
        const char *name = dtype_kserve_name((dtype)i);
        cr_assert(dtype_from_kserve_name(name, strlen(name), &found));
        cr_assert_eq(found, i);
        cr_assert_not(dtype_from_kserve_name(name, strlen(name) - 1, &found) && found == (dtype)i);
        cr_assert(dtype_from_onnx(dtype_to_onnx((dtype)i), &found));
        cr_assert_eq(found, i);
        for (int j = 0; j < i; j++) {
            cr_assert_str_neq(dtype_name((dtype)i), dtype_name((dtype)j));
            cr_assert_str_neq(dtype_tensorflow_name((dtype)i), dtype_tensorflow_name((dtype)j));
        }
    }
    dtype untouched = DTYPE_F64;
    cr_assert_not(dtype_from_kserve_name("FP128", 5, &untouched));
    cr_assert_not(dtype_from_kserve_name("", 0, &untouched));
    cr_assert_not(dtype_from_onnx(0, &untouched));
    cr_assert_not(dtype_from_onnx(14, &untouched));
    cr_assert_not(dtype_from_onnx(-1, &untouched));
    cr_assert_eq(untouched, DTYPE_F64);
}

Test(dtype, knows_the_range_of_each_integer)
{
    cr_assert_eq(dtype_integer_min(DTYPE_I8), -128);
    cr_assert_eq(dtype_integer_max(DTYPE_I8), 127);
    cr_assert_eq(dtype_integer_min(DTYPE_U8), 0);
    cr_assert_eq(dtype_integer_max(DTYPE_U8), 255);
    cr_assert_eq(dtype_integer_min(DTYPE_I64), INT64_MIN);
    cr_assert_eq(dtype_integer_max(DTYPE_I64), INT64_MAX);
    cr_assert_eq(dtype_integer_max(DTYPE_U64), UINT64_MAX);
    cr_assert_eq(dtype_integer_min(DTYPE_I16), -32768);
    cr_assert_eq(dtype_integer_max(DTYPE_U32), UINT32_MAX);
    cr_assert(dtype_is_integer(DTYPE_U8) && !dtype_is_integer(DTYPE_BOOL));
    cr_assert(dtype_is_float(DTYPE_BF16) && !dtype_is_float(DTYPE_I32));
    cr_assert(dtype_is_signed(DTYPE_F16) && !dtype_is_signed(DTYPE_U64));
}
