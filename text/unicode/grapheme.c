#include "text/unicode/grapheme.h"

#include <utf8proc.h>

#include "text/unicode/utf8.h"

size_t grapheme_bytes(const uint8_t *data, size_t bytes)
{
    size_t at = utf8_length(data[0]);
    /* Between ASCII characters there is always a boundary, except in CR LF. */
    if (at == 1 && bytes > 1 && data[1] < 0x80)
        return data[0] == '\r' && data[1] == '\n' ? 2 : 1;
    int32_t state = 0;
    int32_t before = (int32_t)utf8_decode(data);
    while (at < bytes) {
        int32_t next = (int32_t)utf8_decode(data + at);
        if (utf8proc_grapheme_break_stateful(before, next, &state))
            return at;
        at += utf8_length(data[at]);
        before = next;
    }
    return bytes;
}
