#include "text/load/base64.h"

#include <stdlib.h>

#define TEXT_BYTES_MAX (64u << 20)

/* The value of a digit, or -1. */
static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

status text_base64_decode(const char *text, size_t text_bytes, uint8_t **out, size_t *bytes)
{
    size_t padding = 0, count = 0;
    if (text_bytes % 4 != 0 || text_bytes > TEXT_BYTES_MAX)
        return status_fail(STATUS_CORRUPT, "base64 of %zu characters", text_bytes);
    while (padding < 2 && padding < text_bytes && text[text_bytes - 1 - padding] == '=')
        padding++;
    uint8_t *data = malloc(text_bytes / 4 * 3 + 1);
    if (data == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu characters of base64",
                           text_bytes);
    for (size_t i = 0; i < text_bytes; i += 4) {
        uint32_t group = 0;
        for (size_t k = i; k < i + 4; k++) {
            int value = k >= text_bytes - padding ? 0 : digit_value(text[k]);
            if (value < 0) {
                free(data);
                return status_fail(STATUS_CORRUPT, "base64: character %zu is no digit", k);
            }
            group = group << 6 | (uint32_t)value;
        }
        data[count++] = (uint8_t)(group >> 16);
        data[count++] = (uint8_t)(group >> 8);
        data[count++] = (uint8_t)group;
    }
    *out = data;
    *bytes = count - padding;
    return STATUS_OK;
}

status text_base64_encode(const uint8_t *data, size_t bytes, char **out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((bytes + 2) / 3 * 4 + 1), *to = text;
    if (text == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes in base64", bytes);
    for (size_t i = 0; i < bytes; i += 3) {
        size_t left = bytes - i;
        uint32_t group = (uint32_t)data[i] << 16 | (uint32_t)(left > 1 ? data[i + 1] : 0) << 8 |
                         (left > 2 ? data[i + 2] : 0);
        *to++ = digits[group >> 18];
        *to++ = digits[group >> 12 & 63];
        *to++ = left > 1 ? digits[group >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[group & 63] : '=';
    }
    *to = 0;
    *out = text;
    return STATUS_OK;
}
