#include "text/unicode/utf8.h"

#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

size_t utf8_ascii_bytes(const uint8_t *data, size_t bytes)
{
    size_t i = 0;
    uint64_t word;
    for (; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, data + i, sizeof word);
        if (word & HIGH_BITS)
            break;
    }
    while (i < bytes && data[i] < 0x80)
        i++;
    return i;
}

/* The length of the valid sequence at `p`, which does not begin with ASCII; 0: it is invalid. */
static unsigned sequence_bytes(const uint8_t *p, size_t bytes)
{
    unsigned length = p[0] >= 0xC2 && p[0] < 0xE0   ? 2
                      : p[0] >= 0xE0 && p[0] < 0xF0 ? 3
                      : p[0] >= 0xF0 && p[0] < 0xF5 ? 4
                                                    : 0;
    if (length == 0 || bytes < length)
        return 0;
    for (unsigned i = 1; i < length; i++) {
        if (utf8_is_first(p[i]))
            return 0;
    }
    /* Too long, a surrogate, or beyond U+10FFFF (RFC 3629, section 4). */
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return length;
}

size_t utf8_valid_bytes(const uint8_t *data, size_t bytes)
{
    size_t i = 0;
    while (i < bytes) {
        if (data[i] < 0x80) {
            i += utf8_ascii_bytes(data + i, bytes - i);
            continue;
        }
        unsigned length = sequence_bytes(data + i, bytes - i);
        if (length == 0)
            return i;
        i += length;
    }
    return bytes;
}

size_t utf8_count(const uint8_t *data, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += utf8_is_first(data[i]);
    return count;
}
