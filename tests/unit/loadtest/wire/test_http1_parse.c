#include "loadtest/wire/http1_parse.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static http1_parser parser;
static response got;

static void begin(void)
{
    http1_parser_reset(&parser);
    response_reset(&got);
    got.keep_body = true;
}

/* Feeds `text` in pieces of `step` bytes; the status, and how many bytes were used in all. */
static status feed(const char *text, size_t step, size_t *used)
{
    size_t bytes = strlen(text), at = 0, part;
    begin();
    while (at < bytes && parser.stage != HTTP1_DONE) {
        size_t piece = bytes - at < step ? bytes - at : step;
        status s = http1_parse(&parser, &got, text + at, piece, &part);
        if (s)
            return s;
        at += part;
    }
    *used = at;
    return STATUS_OK;
}

static void whole(const char *text, int code, const char *body, bool keep_alive)
{
    for (size_t step = 1; step <= strlen(text); step++) {
        size_t used;
        cr_assert_eq(feed(text, step, &used), STATUS_OK, "step %zu: %s", step, status_message());
        cr_assert_eq(parser.stage, HTTP1_DONE);
        cr_assert_eq(got.code, code);
        cr_assert_str_eq(text_buffer_string(&got.body), body);
        cr_assert_eq(parser.keep_alive, keep_alive);
        cr_assert_eq(used, strlen(text));
    }
}

Test(http1, answers_in_pieces_of_any_size)
{
    whole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true);
    whole("HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", 200, "", true);
    whole("HTTP/1.1 204 \r\n\r\n", 204, "", true);
    whole("HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", 200, "x", true);
    whole("HTTP/1.1 503 x\r\nConnection: foo , Close\r\nContent-Length: 2\r\n\r\nno", 503, "no",
          false);
    whole("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nno", 200, "no", false);
    whole("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nno", 200, "no",
          true);
    whole("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x",
          true);
    whole("HTTP/1.1 200 OK\nContent-Length: 1\n\nx", 200, "x", true);
}

Test(http1, chunks)
{
    whole("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n "
          "123456789\r\n0\r\n\r\n",
          200, "hello 123456789", true);
    whole("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\nTrailer: x\r\nB: "
          "y\r\n\r\n",
          200, "", true);
}

Test(http1, a_body_can_end_with_the_connection)
{
    size_t used;
    cr_assert_eq(feed("HTTP/1.1 200 OK\r\n\r\nhello", 3, &used), STATUS_OK);
    cr_assert_eq(parser.stage, HTTP1_BODY_TO_END);
    cr_assert_eq(http1_parse_end(&parser), STATUS_OK);
    cr_assert_str_eq(text_buffer_string(&got.body), "hello");
    cr_assert_not(parser.keep_alive);
    cr_assert_eq(feed("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 3, &used), STATUS_OK);
    cr_assert_eq(http1_parse_end(&parser), STATUS_CORRUPT);
}

Test(http1, what_follows_an_answer_is_left)
{
    size_t used;
    const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200";
    begin();
    cr_assert_eq(http1_parse(&parser, &got, text, strlen(text), &used), STATUS_OK);
    cr_assert_eq(used, strlen(text) - 12);
}

Test(http1, what_is_not_HTTP_is_refused)
{
    static const char *const wrong[] = {
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: empty\r\n\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (size_t step = 1; step < 64; step += 7) {
            size_t used;
            cr_expect_eq(feed(wrong[i], step, &used), STATUS_CORRUPT, "%s", wrong[i]);
        }
}

Test(http1, heads_have_an_end)
{
    static char long_head[HTTP1_HEAD_BYTES_MAX + 100];
    memset(long_head, 'x', sizeof long_head - 1);
    memcpy(long_head, "HTTP/1.1 200 OK\r\nX: ", 20);
    size_t used;
    cr_assert_eq(feed(long_head, 4096, &used), STATUS_CORRUPT);
}

typedef struct stages {
    char text[256];
} stages;

static void each(void *context, const char *name, uint64_t duration_ns)
{
    stages *s = context;
    size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s=%lu ", name, (unsigned long)duration_ns);
}

static void timing(const char *text, const char *wanted)
{
    stages s = {0};
    server_timing_parse(text, strlen(text), each, &s);
    cr_expect_str_eq(s.text, wanted, "%s: %s", text, s.text);
}

Test(server_timing, durations)
{
    timing("queue;dur=1.5, execute;dur=20", "queue=1500000 execute=20000000 ");
    timing("a;desc=\"x, y;dur=9\";dur=2", "a=2000000 ");
    timing("cache;desc=hit, b ; DUR = \"3\" ", "b=3000000 ");
    timing("a;dur=1;dur=2", "a=1000000 ");
    timing("a;dur=-1, b;dur=nan, c;dur=, d;dur=1e300, e;dur=4", "e=4000000 ");
    timing("", "");
    timing(",;=\"", "");
    timing("a-name-that-is-longer-than-we-keep;dur=1", "a-name-that-is-longer-t=1000000 ");
}

Test(answer, headers_of_interest)
{
    begin();
    response_header(&got, "Server-Timing", 13, "a;dur=1", 7);
    response_header(&got, "server-timing", 13, "b;dur=2", 7);
    stages s = {0};
    server_timing_parse(got.timing, got.timing_bytes, each, &s);
    cr_expect_str_eq(s.text, "a=1000000 b=2000000 ");
    for (int i = 0; i < 100; i++) /* never past its end */
        response_header(&got, "server-timing", 13, "a-long-name-of-a-stage;dur=1", 28);
    cr_expect_leq(got.timing_bytes, RESPONSE_TIMING_BYTES_MAX);
    response_header(&got, "inference-header-content-length", 31, "77", 2);
    cr_expect_eq(got.header_json_bytes, 77);
}
