#include <criterion/criterion.h>

#include "server/protocol/text/base64.h"

Test(base64, is_strict)
{
    uint8_t out[16];
    size_t bytes;
    cr_assert(base64_decode("AAECAw==", 8, out, &bytes) && bytes == 4 && out[3] == 3);
    cr_assert(base64_decode("AAECAw", 6, out, &bytes) && bytes == 4);
    cr_assert_not(base64_decode("AAECA", 5, out, &bytes));
    cr_assert_not(base64_decode("AA!=", 4, out, &bytes));
    cr_assert_not(base64_decode("AAE=A", 5, out, &bytes));
    char text[9] = {0};
    base64_encode(text, (const uint8_t *)"\0\1\2\3", 4);
    cr_assert_str_eq(text, "AAECAw==");
}
