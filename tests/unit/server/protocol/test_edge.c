/* Routes, request heads, chunked bodies and content codings: the forms peers try. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "server/http/overrides/chunked.h"
#include "server/protocol/compress.h"
#include "server/protocol/head_check.h"
#include "server/protocol/route.h"
#include "server/protocol/text/base64.h"

Test(route, paths_find_their_kind)
{
    static const struct {
        const char *path;
        route_kind kind;
        const char *name;
        int64_t version;
    } cases[] = {{"/", ROUTE_STATUS_PAGE, "", 0},
                 {"/v2", ROUTE_SERVER_METADATA, "", 0},
                 {"/v2/", ROUTE_SERVER_METADATA, "", 0},
                 {"/v2/health/ready", ROUTE_READY, "", 0},
                 {"/v2/models/a", ROUTE_MODEL_METADATA, "a", 0},
                 {"/v2/models/a/versions/3/infer", ROUTE_INFER, "a", 3},
                 {"/v2/models/a%2Fb/infer", ROUTE_INFER, "a/b", 0},
                 {"/v2/models/stats", ROUTE_ALL_STATS, "", 0},
                 {"/v2/models/a/versions/0/infer", ROUTE_UNKNOWN, "a", 0},
                 {"/v2/models/a/versions/x", ROUTE_UNKNOWN, "a", 0},
                 {"/v2/models//infer", ROUTE_UNKNOWN, "", 0},
                 {"/v2/models/a%zz/infer", ROUTE_UNKNOWN, "", 0},
                 {"/v2/models/a%00/infer", ROUTE_UNKNOWN, "", 0},
                 {"/v2/repository/index", ROUTE_INDEX, "", 0},
                 {"/v2/repository/models/a/unload", ROUTE_UNLOAD, "a", 0},
                 {"/v1/models/a:predict", ROUTE_TF_PREDICT, "a", 0},
                 {"/v1/models/a%3Apredict", ROUTE_TF_PREDICT, "a", 0},
                 {"/v1/models/a/versions/2:predict", ROUTE_TF_PREDICT, "a", 2},
                 {"/v1/models/a/labels/stable:predict", ROUTE_TF_PREDICT, "a", 0},
                 {"/v1/models/a/metadata", ROUTE_TF_METADATA, "a", 0},
                 {"/v1/models/a:classify", ROUTE_TF_STATUS, "a:classify", 0},
                 {"/metrics", ROUTE_METRICS, "", 0},
                 {"/metrics/x", ROUTE_UNKNOWN, "", 0},
                 {"*", ROUTE_UNKNOWN, "", 0},
                 {"/a/b/c/d/e/f/g/h/i/j", ROUTE_UNKNOWN, "", 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        route r;
        route_parse(cases[i].path, strlen(cases[i].path), &r);
        cr_assert_eq(r.kind, cases[i].kind, "%s", cases[i].path);
        if (r.kind != ROUTE_UNKNOWN) {
            cr_assert_str_eq(r.name, cases[i].name);
            cr_assert_eq(r.version, cases[i].version);
        }
    }
}

Test(head, honest_heads_pass)
{
    static const char *const heads[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost:a\r\n\r\n",
        "POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 12 \r\nX: \t\xc3\xa9\r\n\r\nbody\nbody",
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        cr_assert_eq(head_check(heads[i], strlen(heads[i])), STATUS_OK, "%s: %s", heads[i],
                     status_message());
}

Test(head, ambiguous_heads_are_refused)
{
    static const char *const heads[] = {
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        cr_assert_eq(head_check(heads[i], strlen(heads[i])), STATUS_INVALID_ARGUMENT, "%s",
                     heads[i]);
}

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
                                        "5;a\x01\r\nhello\r\n0\r\n\r\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char out[128];
        size_t bytes;
        cr_assert_eq(decode(texts[i], 3, out, &bytes), -1, "%s", texts[i]);
    }
}

Test(coding, bodies_survive_both_ways)
{
    for (int coding = CODING_GZIP; coding <= CODING_DEFLATE; coding++) {
        char data[10000], *packed, *back;
        size_t packed_bytes, back_bytes;
        for (size_t i = 0; i < sizeof(data); i++)
            data[i] = (char)("0123,. "[i * i % 7]);
        compress_piece pieces[] = {{data, 4000}, {data + 4000, 0}, {data + 4000, 6000}};
        cr_assert_eq(compress_pieces(coding, pieces, 3, &packed, &packed_bytes), STATUS_OK);
        cr_assert_eq(decompress(coding, packed, packed_bytes, 10000, &back, &back_bytes),
                     STATUS_OK);
        cr_assert(back_bytes == sizeof(data) && memcmp(back, data, sizeof(data)) == 0);
        free(back);
        cr_assert_eq(decompress(coding, packed, packed_bytes, 9999, &back, &back_bytes),
                     STATUS_TOO_LARGE);
        cr_assert_eq(decompress(coding, packed, packed_bytes - 1, 20000, &back, &back_bytes),
                     STATUS_INVALID_ARGUMENT);
        packed[packed_bytes / 2] ^= 0x55;
        cr_assert_eq(decompress(coding, packed, packed_bytes, 20000, &back, &back_bytes),
                     STATUS_INVALID_ARGUMENT);
        free(packed);
    }
}

Test(coding, headers_are_understood)
{
    cr_assert_eq(content_coding_parse("GZIP", 4), CODING_GZIP);
    cr_assert_eq(content_coding_parse("br", 2), CODING_UNKNOWN);
    static const struct {
        const char *accept;
        content_coding chosen;
    } cases[] = {{"", CODING_IDENTITY},           {"deflate", CODING_DEFLATE},
                 {"deflate, gzip", CODING_GZIP},  {"gzip;q=0, deflate;q=0.5", CODING_DEFLATE},
                 {"gzip;q=0.0", CODING_IDENTITY}, {"br", CODING_IDENTITY}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_assert_eq(content_coding_choose(cases[i].accept, strlen(cases[i].accept)),
                     cases[i].chosen, "%s", cases[i].accept);
}

Test(coding, base64_is_strict)
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
