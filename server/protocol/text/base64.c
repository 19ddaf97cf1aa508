#include "server/protocol/text/base64.h"

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

bool base64_decode(const char *text, size_t bytes, uint8_t *out, size_t *out_bytes)
{
    bool is_padded = bytes > 0 && text[bytes - 1] == '=';
    if (is_padded && bytes % 4 != 0)
        return false;
    for (int i = 0; i < 2 && bytes > 0 && text[bytes - 1] == '='; i++)
        bytes--;
    if (bytes % 4 == 1)
        return false;
    uint32_t group = 0;
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        int v = value_of(text[i]);
        if (v < 0)
            return false;
        group = group << 6 | (uint32_t)v;
        if (i % 4 != 0)
            out[n++] = (uint8_t)(group >> (6 - 2 * (i % 4)));
    }
    *out_bytes = n;
    return true;
}

char *base64_encode(char *out, const uint8_t *data, size_t bytes)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (; bytes >= 3; bytes -= 3, data += 3) {
        uint32_t v = (uint32_t)data[0] << 16 | (uint32_t)data[1] << 8 | data[2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *out++ = alphabet[v >> shift & 63];
    }
    if (bytes > 0) {
        uint32_t v = (uint32_t)data[0] << 16 | (bytes == 2 ? (uint32_t)data[1] << 8 : 0);
        *out++ = alphabet[v >> 18];
        *out++ = alphabet[v >> 12 & 63];
        *out++ = bytes == 2 ? alphabet[v >> 6 & 63] : '=';
        *out++ = '=';
    }
    return out;
}
