#ifndef TEXT_UNICODE_UTF8_H
#define TEXT_UNICODE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* UTF-8 as RFC 3629 has it: at most 4 bytes, no surrogates, nothing above U+10FFFF, no longer form
 * than needed. Any thread may call. */

#define UTF8_BYTES_MAX 4

/* Where the first invalid sequence begins; `bytes` if there is none. */
size_t utf8_valid_bytes(const uint8_t *data, size_t bytes);

/* The number of bytes at the front that are ASCII. */
size_t utf8_ascii_bytes(const uint8_t *data, size_t bytes);

/* The length of a character by its first byte; the text is valid. */
static inline unsigned utf8_length(uint8_t first)
{
    return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

static inline bool utf8_is_first(uint8_t byte)
{
    return (byte & 0xC0) != 0x80;
}

/* The code point at `p` in valid text. */
static inline uint32_t utf8_decode(const uint8_t *p)
{
    if (p[0] < 0x80)
        return p[0];
    if (p[0] < 0xE0)
        return (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3F);
    if (p[0] < 0xF0)
        return (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 |
           (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
}

/* Where the character before `at` begins; at > 0, valid text. */
static inline size_t utf8_before(const uint8_t *data, size_t at)
{
    do
        at--;
    while (at > 0 && !utf8_is_first(data[at]));
    return at;
}

/* Writes a code point, at most UTF8_BYTES_MAX bytes; returns how many. */
static inline unsigned utf8_encode(uint32_t code, uint8_t *out)
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}

/* The number of characters of valid text. */
size_t utf8_count(const uint8_t *data, size_t bytes);

#endif
