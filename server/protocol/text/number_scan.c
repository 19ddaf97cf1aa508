#include "server/protocol/text/number_scan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/text/powers_of_ten.h"

#define DIGITS_MAX 19 /* decimal digits that always fit 64 bits */

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Eight ASCII digits at once: pairs, then quads, then all, by multiply and shift. */
static inline bool are_eight_digits(uint64_t v)
{
    return (((v + 0x4646464646464646ull) | (v - 0x3030303030303030ull)) & 0x8080808080808080ull) ==
           0;
}

static inline uint32_t eight_digits(uint64_t v)
{
    v -= 0x3030303030303030ull;
    v = v * 10 + (v >> 8);
    uint64_t low = (v & 0x000000FF000000FFull) * 0x000F424000000064ull;
    uint64_t high = ((v >> 16) & 0x000000FF000000FFull) * 0x0000271000000001ull;
    return (uint32_t)((low + high) >> 32);
}

/* Adds digits to *mantissa; wraps beyond 19 significant ones, which the caller notices. */
static const char *scan_digits(const char *p, const char *end, uint64_t *mantissa)
{
    uint64_t m = *mantissa;
    while (end - p >= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        if (!are_eight_digits(v))
            break;
        m = m * 100000000u + eight_digits(v);
        p += 8;
    }
    while (p < end && is_digit(*p))
        m = m * 10 + (uint64_t)(*p++ - '0');
    *mantissa = m;
    return p;
}

static const char *scan_word(const char *p, const char *end, number *out)
{
    static const struct {
        const char *text;
        size_t bytes;
        number_kind kind;
    } words[] = {
        {"NaN", 3, NUMBER_NAN}, {"Infinity", 8, NUMBER_INFINITY}, {"Inf", 3, NUMBER_INFINITY}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if ((size_t)(end - p) >= words[i].bytes && !memcmp(p, words[i].text, words[i].bytes)) {
            out->kind = words[i].kind;
            return p + words[i].bytes;
        }
    }
    return NULL;
}

/* More than 19 significant digits: reads the first 19 again and moves the exponent. */
static void truncate_digits(const char *first, const char *last, int64_t exponent_written,
                            number *out)
{
    const char *p = first;
    while (p < last && (*p == '0' || *p == '.'))
        p++;
    uint64_t m = 0;
    int digits = 0;
    bool has_point = false;
    int64_t exponent = exponent_written;
    for (const char *q = first; q < p; q++) {
        if (*q == '.')
            has_point = true;
        else if (has_point)
            exponent--;
    }
    for (; p < last && digits < DIGITS_MAX; p++) {
        if (*p == '.') {
            has_point = true;
            continue;
        }
        m = m * 10 + (uint64_t)(*p - '0');
        digits++;
        if (has_point)
            exponent--;
    }
    bool is_rest_zero = true;
    for (; p < last; p++) {
        if (*p == '.') {
            has_point = true;
            continue;
        }
        is_rest_zero &= *p == '0';
        if (!has_point)
            exponent++;
    }
    out->mantissa = m;
    out->exponent = exponent;
    out->is_truncated = !is_rest_zero;
}

const char *number_scan(const char *at, const char *end, number *out)
{
    const char *p = at;
    out->kind = NUMBER_DECIMAL;
    out->is_negative = p < end && *p == '-';
    out->is_truncated = false;
    p += out->is_negative;
    if (p == end)
        return NULL;
    if (!is_digit(*p)) {
        p = scan_word(p, end, out);
        out->is_integer = false;
        if (p == NULL || (out->kind == NUMBER_NAN && out->is_negative))
            return NULL;
        goto done;
    }
    const char *first = p;
    uint64_t mantissa = 0;
    p = scan_digits(p, end, &mantissa);
    if (*first == '0' && p - first > 1)
        return NULL; /* JSON has no leading zeros */
    int64_t digits = p - first, exponent = 0;
    out->is_integer = true;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        p = scan_digits(p, end, &mantissa);
        if (p == fraction)
            return NULL;
        exponent = -(p - fraction);
        digits += p - fraction;
        out->is_integer = false;
    }
    const char *last = p;
    int64_t written = 0;
    if (p < end && (*p == 'e' || *p == 'E')) {
        out->is_integer = false;
        p++;
        bool is_down = p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+'))
            p++;
        if (p == end || !is_digit(*p))
            return NULL;
        for (; p < end && is_digit(*p); p++) {
            if (written < 1000000)
                written = written * 10 + (*p - '0');
        }
        if (is_down)
            written = -written;
    }
    out->mantissa = mantissa;
    out->exponent = exponent + written;
    if (digits > DIGITS_MAX)
        truncate_digits(first, last, written, out);
done:
    out->text = at;
    out->text_bytes = (size_t)(p - at);
    return p;
}

/* What differs between the two binary formats. */
typedef struct format {
    int mantissa_bits, exponent_bias, exponent_infinite, even_min, even_max, power_min, power_max;
} format;
static const format f64_format = {52, 1023, 0x7ff, -4, 23, -342, 308};
static const format f32_format = {23, 127, 0xff, -17, 10, -64, 38};

/* Bits of the nearest value to w * 10^q (w not 0), without its sign. */
static uint64_t nearest_bits(uint64_t w, int64_t q, const format *f)
{
    if (q < f->power_min)
        return 0;
    if (q > f->power_max)
        return (uint64_t)f->exponent_infinite << f->mantissa_bits;
    int leading = __builtin_clzll(w);
    w <<= leading;
    power_of_ten power = powers_of_ten[q - POWERS_OF_TEN_MIN];
    if (q < 0 && ++power.low == 0) /* reciprocals are rounded up */
        power.high++;
    unsigned __int128 product = (unsigned __int128)w * power.high;
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    uint64_t mask = UINT64_MAX >> (f->mantissa_bits + 3);
    if ((high & mask) == mask) {
        uint64_t more = (uint64_t)(((unsigned __int128)w * power.low) >> 64);
        low += more;
        high += more > low;
    }
    int upper = (int)(high >> 63);
    int shift = upper + 64 - f->mantissa_bits - 3;
    uint64_t mantissa = high >> shift;
    int64_t exponent = (((152170 + 65536) * q) >> 16) + 63 + upper - leading + f->exponent_bias;
    if (exponent <= 0) { /* subnormal */
        if (1 - exponent >= 64)
            return 0;
        mantissa >>= 1 - exponent;
        mantissa += mantissa & 1;
        return mantissa >> 1; /* a carry into the exponent field makes the smallest normal */
    }
    /* Exactly half way, which only small powers can be: to even. */
    if (low <= 1 && q >= f->even_min && q <= f->even_max && (mantissa & 3) == 1 &&
        mantissa << shift == high)
        mantissa &= ~1ull;
    mantissa += mantissa & 1;
    mantissa >>= 1;
    if (mantissa >= 2ull << f->mantissa_bits) {
        mantissa = 1ull << f->mantissa_bits;
        exponent++;
    }
    if (exponent >= f->exponent_infinite)
        return (uint64_t)f->exponent_infinite << f->mantissa_bits;
    return (mantissa & ~(1ull << f->mantissa_bits)) | (uint64_t)exponent << f->mantissa_bits;
}

/* The token as a C string for the library, whatever its length. */
static double through_library(const number *n, bool is_f32)
{
    char small[128], *text = small;
    if (n->text_bytes >= sizeof(small))
        text = malloc(n->text_bytes + 1);
    if (text == NULL)
        return (double)n->mantissa * pow(10, (double)n->exponent);
    memcpy(text, n->text, n->text_bytes);
    text[n->text_bytes] = '\0';
    double value = fabs(is_f32 ? (double)strtof(text, NULL) : strtod(text, NULL));
    if (text != small)
        free(text);
    return value;
}

static const double f64_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double special(const number *n)
{
    if (n->kind == NUMBER_NAN)
        return (double)NAN;
    return n->is_negative ? -(double)INFINITY : (double)INFINITY;
}

double number_to_f64(const number *n)
{
    if (n->kind != NUMBER_DECIMAL)
        return special(n);
    double value;
    /* Both factors exact: one rounding (Clinger 1990). */
    if (n->mantissa <= 1ull << 53 && n->exponent >= -22 && n->exponent <= 22 && !n->is_truncated) {
        value = (double)n->mantissa;
        value =
            n->exponent < 0 ? value / f64_powers[-n->exponent] : value * f64_powers[n->exponent];
    } else if (n->mantissa == 0) {
        value = 0;
    } else {
        uint64_t bits = nearest_bits(n->mantissa, n->exponent, &f64_format);
        if (n->is_truncated && bits != nearest_bits(n->mantissa + 1, n->exponent, &f64_format))
            value = through_library(n, false);
        else
            memcpy(&value, &bits, sizeof(value));
    }
    return n->is_negative ? -value : value;
}

float number_to_f32(const number *n)
{
    if (n->kind != NUMBER_DECIMAL)
        return (float)special(n);
    float value;
    if (n->mantissa <= 1u << 24 && n->exponent >= -10 && n->exponent <= 10 && !n->is_truncated) {
        value = (float)n->mantissa;
        value = n->exponent < 0 ? value / (float)f64_powers[-n->exponent]
                                : value * (float)f64_powers[n->exponent];
    } else if (n->mantissa == 0) {
        value = 0;
    } else {
        uint32_t bits = (uint32_t)nearest_bits(n->mantissa, n->exponent, &f32_format);
        if (n->is_truncated &&
            bits != (uint32_t)nearest_bits(n->mantissa + 1, n->exponent, &f32_format))
            value = (float)through_library(n, true);
        else
            memcpy(&value, &bits, sizeof(value));
    }
    return n->is_negative ? -value : value;
}

/* |n| as an integer; false: a fraction, or over 64 bits. */
static bool magnitude(const number *n, uint64_t *out)
{
    if (n->kind != NUMBER_DECIMAL || n->is_truncated)
        return false;
    uint64_t m = n->mantissa;
    int64_t exponent = m == 0 ? 0 : n->exponent;
    for (; exponent < 0; exponent++) {
        if (m % 10 != 0)
            return false;
        m /= 10;
    }
    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(m, (uint64_t)10, &m))
            return false;
    }
    *out = m;
    return true;
}

/* 20 digits do not fit the mantissa of number_scan, yet may fit 64 bits. */
static bool magnitude_of_text(const number *n, uint64_t *out)
{
    if (!n->is_integer || !n->is_truncated)
        return magnitude(n, out);
    uint64_t m = 0;
    for (size_t i = n->is_negative; i < n->text_bytes; i++) {
        if (__builtin_mul_overflow(m, (uint64_t)10, &m) ||
            __builtin_add_overflow(m, (uint64_t)(n->text[i] - '0'), &m))
            return false;
    }
    *out = m;
    return true;
}

bool number_to_i64(const number *n, int64_t *out)
{
    uint64_t m;
    if (!magnitude_of_text(n, &m) || m > (uint64_t)INT64_MAX + n->is_negative)
        return false;
    *out = n->is_negative ? (int64_t)(0 - m) : (int64_t)m;
    return true;
}

bool number_to_u64(const number *n, uint64_t *out)
{
    uint64_t m;
    if (!magnitude_of_text(n, &m) || (n->is_negative && m != 0))
        return false;
    *out = m;
    return true;
}
