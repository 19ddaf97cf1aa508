#ifndef TEXT_UNICODE_BYTE_ALPHABET_H
#define TEXT_UNICODE_BYTE_ALPHABET_H

#include <stdbool.h>
#include <stdint.h>

/* The characters that stand for bytes in byte-level vocabularies (GPT-2, encoder.py,
 * bytes_to_unicode): printable ones of Latin-1 for themselves, the other 68 bytes as U+0100 and on,
 * in their order. */

static inline bool byte_alphabet_is_itself(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

static inline uint32_t byte_alphabet_character(uint8_t byte)
{
    if (byte_alphabet_is_itself(byte))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte <= 0xA0)
        return 0x121u + (byte - 0x7Fu);
    return 0x143;
}

/* The byte, or -1. */
static inline int byte_alphabet_byte(uint32_t code)
{
    if (code < 0x100)
        return byte_alphabet_is_itself(code) ? (int)code : -1;
    if (code <= 0x120)
        return (int)(code - 0x100);
    if (code <= 0x142)
        return (int)(code - 0x121 + 0x7F);
    return code == 0x143 ? 0xAD : -1;
}

#endif
