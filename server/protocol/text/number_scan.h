#ifndef SERVER_PROTOCOL_TEXT_NUMBER_SCAN_H
#define SERVER_PROTOCOL_TEXT_NUMBER_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal text to numbers, correctly rounded (to nearest, ties to even) and at memory speed: what
 * tensors in JSON need. All functions read [at, end) and return the first byte after the number,
 * or NULL when there is no number there. They are pure; any thread. */

typedef enum number_kind {
    NUMBER_DECIMAL,  /* sign, mantissa, exponent as below */
    NUMBER_NAN,      /* NaN */
    NUMBER_INFINITY, /* Infinity, Inf; sign as below */
} number_kind;

typedef struct number {
    number_kind kind;
    bool is_negative, is_integer; /* integer: no '.', no exponent */
    bool is_truncated;            /* more than 19 significant digits: mantissa holds the first 19 */
    uint64_t mantissa;            /* value = mantissa * 10^exponent (plus a bit, if truncated) */
    int64_t exponent;
    const char *text; /* borrowed: the whole token */
    size_t text_bytes;
} number;

/* One JSON number (RFC 8259, section 6), or the tokens NaN, Infinity, -Infinity. */
const char *number_scan(const char *at, const char *end, number *out);

/* The nearest binary64 and binary32; overflow gives infinity. Source of the method: D. Lemire,
 * "Number parsing at a gigabyte per second", 2021; the rare undecided case goes to strtod. */
double number_to_f64(const number *n);
float number_to_f32(const number *n);

/* Exact integers; false when there is a fraction or it does not fit. "1e3" and "2.0" are integers.
 */
bool number_to_i64(const number *n, int64_t *out);
bool number_to_u64(const number *n, uint64_t *out);

#endif
