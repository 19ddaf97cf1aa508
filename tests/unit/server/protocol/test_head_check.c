#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "server/protocol/head_check.h"

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

Test(head, names_are_tokens)
{
    for (int c = 1; c < 256; c++) {
        char head[64];
        bool is_token = strchr("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                               c) != NULL;
        if (c == ':' || c == '\r' || c == '\n')
            continue; /* these end it */
        int bytes = snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: a\r\nX%cY: a\r\n\r\n", c);
        cr_expect_eq(head_check(head, (size_t)bytes) == STATUS_OK, is_token, "byte %d", c);
    }
}
