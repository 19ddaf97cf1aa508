#include <criterion/criterion.h>
#include <string.h>

#include "server/http1/overrides/decode_chunked.h"

/* Feeds `text` in pieces of `step` bytes, as a socket would. */
static ssize_t decode(const char *text, size_t step, char *out, size_t *out_bytes)
{
    struct phr_chunked_decoder d = {.consume_trailer = 1};
    size_t total = strlen(text), used = 0, at = 0;
    ssize_t result = -2;
    while (at < total && result == -2) {
        size_t n = total - at < step ? total - at : step;
        memcpy(out + used, text + at, n);
        at += n;
        result = phr_decode_chunked(&d, out + used, &n);
        used += n;
    }
    *out_bytes = used;
    return result >= 0 ? result + (ssize_t)(total - at) : result;
}

Test(chunked, bodies_are_joined_however_they_arrive)
{
    static const char text[] = "5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nX: y\r\n\r\nnext";
    for (size_t step = 1; step <= sizeof(text); step++) {
        char out[128];
        size_t bytes;
        cr_assert_eq(decode(text, step, out, &bytes), 4, "step %zu", step);
        cr_assert_eq(bytes, 11);
        cr_assert_eq(memcmp(out, "hello world", 11), 0);
    }
}

static int last_code;
static const char *last_body;

static void note_refusal(const char *body, int code)
{
    last_body = body;
    last_code = code;
}

Test(chunked, a_size_over_the_limit_is_refused_before_its_data)
{
    char out[64];
    size_t bytes;
    decode_chunked_install(10, note_refusal);
    cr_assert_eq(decode("a\r\n0123456789\r\n0\r\n\r\n", 1, out, &bytes), 0);
    cr_assert_eq(last_code, 0);
    cr_assert_eq(decode("5\r\nhello\r\nb\r\n", 64, out, &bytes), -1);
    cr_assert(last_code == 413 && last_body == out);
    cr_assert_eq(decode("b\rx", 64, out, &bytes), -1);
    cr_assert_eq(last_code, 400);
}

Test(chunked, loose_framing_is_refused)
{
    static const char *const texts[] = {"0x5\r\nhello\r\n0\r\n\r\n",
                                        "5\nhello\r\n0\r\n\r\n",
                                        "5\r\nhello0\r\n\r\n",
                                        "5\r\nhello\n0\r\n\r\n",
                                        "\r\n",
                                        ";a\r\n",
                                        "5 \r\nhello\r\n0\r\n\r\n",
                                        "-5\r\n",
                                        "10000000000000000\r\n",
                                        "0\r\nX: y\n\r\n",
                                        "0\r\n X: y\r\n\r\n",
                                        "0\r\nX\r\n\r\n",
                                        "0\r\nX : y\r\n\r\n",
                                        "0\r\n: y\r\n\r\n",
                                        "5\rhello\r\n0\r\n\r\n",
                                        "5;a\x01\r\nhello\r\n0\r\n\r\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char out[128];
        size_t bytes;
        cr_assert_eq(decode(texts[i], 3, out, &bytes), -1, "%s", texts[i]);
    }
}
