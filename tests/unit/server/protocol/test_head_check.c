#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "server/protocol/head_check.h"

static status check(const char *head)
{
    head_facts unused;
    return head_check(head, strlen(head), &unused);
}

Test(head, honest_heads_pass)
{
    static const char *const heads[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost:a\r\n\r\n",
        "POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 12 \r\nX: \t\xc3\xa9\r\n\r\nbody\nbody",
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        cr_assert_eq(check(heads[i]), STATUS_OK, "%s: %s", heads[i], status_message());
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
        cr_assert_eq(check(heads[i]), STATUS_INVALID_ARGUMENT, "%s", heads[i]);
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
        snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: a\r\nX%cY: a\r\n\r\n", c);
        cr_expect_eq(check(head) == STATUS_OK, is_token, "byte %d", c);
    }
}

Test(head, hosts_have_their_form)
{
    static const char *const good[] = {"a",        "a:",         "a:0",
                                       "a:65535",  "1.2.3.4:80", "[::1]",
                                       "[::1]:80", "a-b_c.d~e",  "%41!$&'()*+,;="};
    static const char *const bad[] = {
        "",    ":80",    "a:65536", "a:99999999999", "a:b",   "a:1:2", "[::1",
        "[]",  "[::1]a", "[a::z]",  "u@a",           "a/b",   "a b",   "a?b",
        "a#b", "%",      "%4",      "%4g",           "\"a\"", "\xff",  "a\\b"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        cr_expect(head_is_authority(good[i], strlen(good[i])), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_expect_not(head_is_authority(bad[i], strlen(bad[i])), "%s", bad[i]);
}

Test(head, facts_are_what_the_library_overlooks)
{
    static const struct {
        const char *head;
        head_facts facts;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", {0}},
        {"GET / HTTP/1.0\r\nExpect: x\r\n\r\n", {.is_old = true, .has_expect = true}},
        {"GET http://a:80/b HTTP/1.1\r\nHost: c\r\n\r\n", {.authority_bytes = 11}},
        {"GET hTTps://a?/ HTTP/1.1\r\nHost: c\r\n\r\n", {.authority_bytes = 9}},
        {"GET / HTTP/1.1\r\nHost: a\r\nconnection:x ,\tClose\r\n\r\n", {.has_close = true}},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: closed, disclose\r\n\r\n", {0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        head_facts f;
        const head_facts *wanted = &cases[i].facts;
        cr_expect_eq(head_check(cases[i].head, strlen(cases[i].head), &f), STATUS_OK);
        cr_expect(f.is_old == wanted->is_old && f.has_expect == wanted->has_expect &&
                      f.has_close == wanted->has_close &&
                      f.authority_bytes == wanted->authority_bytes,
                  "%s", cases[i].head);
    }
}

Test(head, targets_fit_their_methods)
{
    cr_expect_eq(check("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), STATUS_OK);
    cr_expect_eq(check("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(check("GET a HTTP/1.1\r\nHost: a\r\n\r\n"), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(check("GET /#b HTTP/1.1\r\nHost: a\r\n\r\n"), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(check("G(T / HTTP/1.1\r\nHost: a\r\n\r\n"), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(check("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), STATUS_UNSUPPORTED);
}
