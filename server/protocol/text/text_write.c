#include "server/protocol/text/text_write.h"

#include <string.h>

#include "server/protocol/text/json_scan.h"
#include "server/protocol/text/number_write.h"

void text_write_u64(text_buffer *t, uint64_t value)
{
    char *out = text_buffer_reserve(t, NUMBER_INTEGER_CHARS);
    if (out != NULL)
        t->bytes += (size_t)(number_write_u64(out, value) - out);
}

void text_write_i64(text_buffer *t, int64_t value)
{
    char *out = text_buffer_reserve(t, NUMBER_INTEGER_CHARS);
    if (out != NULL)
        t->bytes += (size_t)(number_write_i64(out, value) - out);
}

void text_write_f64(text_buffer *t, double value)
{
    char *out = text_buffer_reserve(t, NUMBER_F64_CHARS);
    if (out != NULL)
        t->bytes += (size_t)(number_write_f64(out, value) - out);
}

/* Length of the well-formed UTF-8 character at `data`, or 0. */
static size_t character_bytes(const char *data, size_t bytes)
{
    for (size_t n = 1; n <= 4 && n <= bytes; n++) {
        if (json_is_utf8(data, n))
            return n;
    }
    return 0;
}

void text_write_json_string(text_buffer *t, const char *data, size_t bytes)
{
    static const char hex[] = "0123456789abcdef";
    char *start = text_buffer_reserve(t, bytes * 6 + 3), *out = start;
    if (start == NULL)
        return;
    *out++ = '"';
    for (size_t i = 0; i < bytes;) {
        unsigned char c = (unsigned char)data[i];
        if (c >= 0x80) {
            size_t n = character_bytes(data + i, bytes - i);
            memcpy(out, n ? data + i : "\xef\xbf\xbd", n ? n : 3);
            out += n ? n : 3;
            i += n ? n : 1;
            continue;
        }
        i++;
        const char *letter = c == '"'    ? "\\\""
                             : c == '\\' ? "\\\\"
                             : c == '\n' ? "\\n"
                             : c == '\r' ? "\\r"
                             : c == '\t' ? "\\t"
                                         : NULL;
        if (letter) {
            *out++ = letter[0];
            *out++ = letter[1];
        } else if (c < 0x20 || c == 0x7f) {
            memcpy(out, "\\u00", 4);
            out[4] = hex[c >> 4];
            out[5] = hex[c & 15];
            out += 6;
        } else {
            *out++ = (char)c;
        }
    }
    *out++ = '"';
    t->bytes += (size_t)(out - start);
}

void text_write_json_text(text_buffer *t, const char *text)
{
    text_write_json_string(t, text, strlen(text));
}
