#include "server/protocol/text/number_write.h"

#include <stdbool.h>
#include <string.h>

#include "server/protocol/text/powers_of_ten.h"

static const char digit_pairs[201] = "00010203040506070809"
                                     "10111213141516171819"
                                     "20212223242526272829"
                                     "30313233343536373839"
                                     "40414243444546474849"
                                     "50515253545556575859"
                                     "60616263646566676869"
                                     "70717273747576777879"
                                     "80818283848586878889"
                                     "90919293949596979899";

static int digit_count(uint64_t v)
{
    int n = 1;
    for (; v >= 10000; v /= 10000)
        n += 4;
    return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

static void write_digits(char *out, uint64_t v, int digits)
{
    char *p = out + digits;
    for (; v >= 100; v /= 100) {
        p -= 2;
        memcpy(p, digit_pairs + 2 * (v % 100), 2);
    }
    if (v >= 10)
        memcpy(p - 2, digit_pairs + 2 * v, 2);
    else
        p[-1] = (char)('0' + v);
}

char *number_write_u64(char *out, uint64_t value)
{
    int digits = digit_count(value);
    write_digits(out, value, digits);
    return out + digits;
}

char *number_write_i64(char *out, int64_t value)
{
    if (value >= 0)
        return number_write_u64(out, (uint64_t)value);
    *out = '-';
    return number_write_u64(out + 1, 0 - (uint64_t)value);
}

/* digits * 10^exponent, trailing zeros removed by the caller or not: 12.5, 1.0, 1.5e-7. */
static char *write_decimal(char *out, uint64_t digits, int exponent)
{
    while (digits % 10 == 0 && digits != 0) {
        digits /= 10;
        exponent++;
    }
    int count = digit_count(digits), point = count + exponent; /* digits before the point */
    if (exponent >= 0 && point <= 16) {
        write_digits(out, digits, count);
        memset(out + count, '0', (size_t)exponent);
        memcpy(out + point, ".0", 2);
        return out + point + 2;
    }
    if (point > 0 && point <= 16) {
        char text[20];
        write_digits(text, digits, count);
        memcpy(out, text, (size_t)point);
        out[point] = '.';
        memcpy(out + point + 1, text + point, (size_t)(count - point));
        return out + count + 1;
    }
    if (point <= 0 && point > -5) {
        memcpy(out, "0.0000", 6);
        write_digits(out + 2 - point, digits, count);
        return out + 2 - point + count;
    }
    char text[20];
    write_digits(text, digits, count);
    *out++ = text[0];
    if (count > 1) {
        *out++ = '.';
        memcpy(out, text + 1, (size_t)(count - 1));
        out += count - 1;
    }
    *out++ = 'e';
    return number_write_i64(out, point - 1);
}

static char *write_special(char *out, bool is_nan, bool is_negative)
{
    const char *text = is_nan ? "NaN" : is_negative ? "-Infinity" : "Infinity";
    size_t bytes = strlen(text);
    memcpy(out, text, bytes);
    return out + bytes;
}

static inline int floor_log2_power10(int e)
{
    return (int)(((int64_t)e * 1741647) >> 19);
}

/* floor(log10(2^q)), or of 3/4 of it when the gap below is half as wide. */
static inline int floor_log10_power2(int q, bool is_lower_closer)
{
    return (int)(((int64_t)q * 1262611 - (is_lower_closer ? 524031 : 0)) >> 22);
}

/* Among the decimals in the rounding interval: v, its left and right ends, all times 4, scaled. */
static void choose(uint64_t v, uint64_t left, uint64_t right, bool is_even, int k, uint64_t *digits,
                   int *exponent)
{
    uint64_t lower = left + !is_even, upper = right - !is_even, s = v / 4;
    *exponent = k;
    if (s >= 10) { /* one digit fewer? */
        uint64_t tens = s / 10;
        bool is_down_in = lower <= 40 * tens, is_up_in = 40 * tens + 40 <= upper;
        if (is_down_in != is_up_in) {
            *digits = tens + is_up_in;
            *exponent = k + 1;
            return;
        }
    }
    bool is_down_in = lower <= 4 * s, is_up_in = 4 * s + 4 <= upper;
    if (is_down_in != is_up_in) {
        *digits = s + is_up_in;
        return;
    }
    uint64_t middle = 4 * s + 2;
    *digits = s + (v > middle || (v == middle && (s & 1)));
}

/* 10^k to 128 bits, rounded up. */
static power_of_ten power_up(int k)
{
    power_of_ten g = powers_of_ten[k - POWERS_OF_TEN_MIN];
    if ((k < 0 || k > 55) && ++g.low == 0)
        g.high++;
    return g;
}

static inline uint64_t round_to_odd64(power_of_ten g, uint64_t c)
{
    uint64_t low = (uint64_t)(((unsigned __int128)g.low * c) >> 64);
    unsigned __int128 sum = (unsigned __int128)g.high * c + low;
    return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

char *number_write_f64(char *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint64_t fraction = bits & ((1ull << 52) - 1);
    int field = (int)(bits >> 52 & 0x7ff);
    if (field == 0x7ff)
        return write_special(out, fraction != 0, bits >> 63);
    if (bits >> 63)
        *out++ = '-';
    if (field == 0 && fraction == 0) {
        memcpy(out, "0.0", 3);
        return out + 3;
    }
    uint64_t c = field == 0 ? fraction : fraction | 1ull << 52;
    int q = (field == 0 ? 1 : field) - 1075, exponent;
    uint64_t digits;
    if (q <= 0 && q > -53 && (c & ((1ull << -q) - 1)) == 0) {
        digits = c >> -q; /* a small integer is its own shortest text */
        exponent = 0;
    } else {
        bool is_lower_closer = fraction == 0 && field > 1;
        int k = floor_log10_power2(q, is_lower_closer);
        int h = q + floor_log2_power10(-k) + 1;
        power_of_ten g = power_up(-k);
        choose(round_to_odd64(g, 4 * c << h), round_to_odd64(g, (4 * c - 2 + is_lower_closer) << h),
               round_to_odd64(g, (4 * c + 2) << h), (c & 1) == 0, k, &digits, &exponent);
    }
    return write_decimal(out, digits, exponent);
}

static inline uint64_t round_to_odd32(uint64_t g, uint32_t c)
{
    unsigned __int128 product = (unsigned __int128)g * c;
    return (uint64_t)(product >> 64) | ((uint32_t)(product >> 32) > 1);
}

/* c * 2^q, c > 0, as the shortest text that no neighbour's rounding interval holds: for
 * significands of up to 24 bits. `is_lower_closer`: c is a power of two and the gap below it half
 * as wide. */
static char *write_narrow(char *out, uint32_t c, int q, bool is_lower_closer)
{
    uint64_t digits;
    int exponent;
    if (q <= 0 && q > -24 && (c & ((1u << -q) - 1)) == 0) {
        digits = c >> -q;
        exponent = 0;
    } else {
        int k = floor_log10_power2(q, is_lower_closer);
        int h = q + floor_log2_power10(-k) + 1;
        power_of_ten wide = powers_of_ten[-k - POWERS_OF_TEN_MIN];
        uint64_t g = wide.high + (wide.low != 0 || k > 0); /* 64 bits, rounded up */
        choose(round_to_odd32(g, 4 * c << h), round_to_odd32(g, (4 * c - 2 + is_lower_closer) << h),
               round_to_odd32(g, (4 * c + 2) << h), (c & 1) == 0, k, &digits, &exponent);
    }
    return write_decimal(out, digits, exponent);
}

/* Any IEEE-754 style binary format of at most 32 bits: sign, exponent, fraction. */
static inline char *write_bits(char *out, uint32_t bits, int exponent_bits, int fraction_bits)
{
    uint32_t fraction = bits & ((1u << fraction_bits) - 1);
    int field_max = (1 << exponent_bits) - 1, bias = field_max / 2 + fraction_bits;
    int field = (int)(bits >> fraction_bits) & field_max;
    bool is_negative = bits >> (exponent_bits + fraction_bits) & 1;
    if (field == field_max)
        return write_special(out, fraction != 0, is_negative);
    if (is_negative)
        *out++ = '-';
    if (field == 0 && fraction == 0) {
        memcpy(out, "0.0", 3);
        return out + 3;
    }
    return write_narrow(out, field == 0 ? fraction : fraction | 1u << fraction_bits,
                        (field == 0 ? 1 : field) - bias, fraction == 0 && field > 1);
}

char *number_write_f32(char *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return write_bits(out, bits, 8, 23);
}

char *number_write_f16(char *out, uint16_t bits)
{
    return write_bits(out, bits, 5, 10);
}

char *number_write_bf16(char *out, uint16_t bits)
{
    return write_bits(out, bits, 8, 7);
}
