#include "text/unicode/utf8.h"

#include <criterion/criterion.h>
#include <string.h>

Test(utf8, every_code_point_comes_back_and_surrogates_are_invalid)
{
    for (uint32_t code = 0; code < 0x110000; code++) {
        uint8_t text[UTF8_BYTES_MAX + 1] = {0};
        unsigned length = utf8_encode(code, text);
        bool is_surrogate = code >= 0xD800 && code < 0xE000;
        cr_assert_eq(utf8_valid_bytes(text, length), is_surrogate ? 0 : length, "U+%04X", code);
        cr_assert_eq(utf8_length(text[0]), length);
        cr_assert_eq(utf8_decode(text), code);
    }
}

Test(utf8, finds_the_first_invalid_byte)
{
    static const struct {
        const char *text;
        size_t valid;
    } cases[] = {{"", 0},
                 {"abcdefghijk", 11},
                 {"abcdefgh\x80", 8},
                 {"\xC3\xA9\xC3", 2},
                 {"\xC0\xAF", 0},
                 {"a\xE0\x80\xAF", 1},
                 {"\xF4\x90\x80\x80", 0},
                 {"\xF0\x9F\x91\x8D\xF0\x9F\x91", 4},
                 {"\xFE", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(utf8_valid_bytes((const uint8_t *)cases[i].text, strlen(cases[i].text)),
                     cases[i].valid, "case %zu", i);
}
