#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "server/http2/session/stream.h"
#include "tests/unit/server/http2/session/peer.h"

static peer p;

static void set_up(void)
{
    peer_init(&p);
}

static void tear_down(void)
{
    if (p.server != NULL)
        peer_dispose(&p);
}

TestSuite(http2_session, .init = set_up, .fini = tear_down, .timeout = 300);

Test(http2_session, answers_a_request_without_a_body)
{
    peer_start(&p);
    peer_request *r = peer_find(&p, peer_ask(&p, "/v2", 0));
    peer_run(&p);
    cr_assert_eq(r->status, 200);
    cr_assert(r->is_done && r->error == 0 && r->is_closed && r->was_answered);
    cr_assert_eq(r->answer.bytes, 3);
    cr_assert_arr_eq(r->answer.data, "/v2", 3);
}

Test(http2_session, a_body_larger_than_the_windows_comes_through_when_it_is_consumed)
{
    p.limits.stream_window_bytes = 70000;
    p.limits.connection_window_bytes = 80000;
    peer_start(&p);
    peer_request *r = peer_find(&p, peer_ask(&p, "/", 1 << 20));
    peer_run(&p);
    cr_assert(r->is_done && r->status == 200);
    cr_assert_eq(r->answer.bytes, (1 << 20) + 1);
}

Test(http2_session, a_body_that_nobody_consumes_stops_at_its_window)
{
    p.limits.stream_window_bytes = 70000;
    p.is_consuming = false;
    peer_start(&p);
    peer_request *r = peer_find(&p, peer_ask(&p, "/", 1 << 20));
    peer_run(&p);
    cr_assert_eq(r->body.bytes, 70000);
    cr_assert_not(r->is_ended);
    /* Another stream still has the connection's window. */
    peer_request *other = peer_find(&p, peer_ask(&p, "/other", 1000));
    peer_run(&p);
    cr_assert(other->is_ended);
    http2_session_consume(p.server, r->stream, r->body.bytes);
    p.is_consuming = true;
    peer_run(&p);
    cr_assert(r->is_done && r->answer.bytes == (1 << 20) + 1);
}

Test(http2_session, a_stream_that_is_reset_gives_its_window_back)
{
    p.limits.stream_window_bytes = 100000;
    p.limits.connection_window_bytes = 100000;
    p.is_consuming = false;
    peer_start(&p);
    for (int i = 0; i < 20; i++) {
        int32_t id = peer_ask(&p, "/", 90000);
        peer_run(&p);
        peer_request *r = peer_find(&p, id);
        cr_assert_eq(r->body.bytes, 90000, "round %d: %zu", i, r->body.bytes);
    }
}

Test(http2_session, a_pause_leaves_the_rest_of_the_input)
{
    text_buffer input = {0};
    const uint8_t *data;
    p.is_pausing = true;
    peer_start(&p);
    peer_run(&p);
    p.reads = 0;
    for (int i = 0; i < 20; i++)
        peer_ask(&p, "/v2", i % 2 ? 0 : 500);
    for (ssize_t n; (n = nghttp2_session_mem_send(p.client, &data)) > 0;)
        text_buffer_append(&input, (const char *)data, (size_t)n);
    peer_inject(&p, input.data, input.bytes);
    text_buffer_dispose(&input);
    cr_assert_geq(p.reads, 20, "one request for each call: %d", p.reads);
    peer_run(&p);
    for (int i = 0; i < 20; i++)
        cr_assert(p.requests[i].is_done && p.requests[i].status == 200);
}

Test(http2_session, bytes_one_by_one_are_the_same_request)
{
    peer_start(&p);
    peer_request *r = peer_find(&p, peer_ask(&p, "/slow", 5000));
    for (int i = 0; i < 10; i++) {
        peer_to_server(&p, 1);
        peer_to_client(&p);
    }
    cr_assert(r->is_done && r->status == 200 && r->answer.bytes == 5005);
}

Test(http2_session, an_early_response_ends_the_upload_without_an_error)
{
    p.is_holding = true;
    p.is_consuming = false;
    peer_start(&p);
    peer_request *r = peer_find(&p, peer_ask(&p, "/", 1 << 20));
    peer_to_server(&p, 1 << 16);
    cr_assert_not(r->is_ended);
    peer_respond(&p, r);
    peer_run(&p);
    cr_assert(r->is_done && r->status == 200 && r->error == NGHTTP2_NO_ERROR);
    cr_assert(r->is_closed && r->was_answered);
    peer_request *next = peer_find(&p, peer_ask(&p, "/next", 0));
    p.is_holding = false;
    peer_run(&p);
    cr_assert_eq(next->status, 200);
}

Test(http2_session, trailers_follow_the_body)
{
    p.is_holding = true;
    peer_start(&p);
    peer_request *r = peer_find(&p, peer_ask(&p, "/grpc", 0));
    peer_run(&p);
    http2_field trailer = {"grpc-status", "0", 11, 1};
    http2_piece piece = {"hello", 5};
    cr_assert_eq(http2_session_respond(p.server, r->stream, 200, NULL, 0, &piece, 1, &trailer, 1),
                 STATUS_OK);
    peer_run(&p);
    cr_assert(r->is_done && r->has_trailer && r->answer.bytes == 5 && r->was_answered);
}

Test(http2_session, a_response_in_parts_goes_on_while_the_body_arrives)
{
    static char large[300000];
    http2_field type = {"content-type", "application/grpc", 12, 16},
                status_field = {"grpc-status", "0", 11, 1};
    p.is_holding = p.is_consuming = true;
    peer_start(&p);
    int32_t id = peer_ask(&p, "/parts", 100);
    peer_run(&p);
    peer_request *r = peer_find(&p, id);
    cr_assert_eq(http2_session_begin(p.server, r->stream, 200, &type, 1), STATUS_OK);
    peer_run(&p);
    cr_assert(r->status == 200 && r->answer.bytes == 0 && !r->is_done);
    http2_piece parts[2] = {{"one", 3}, {"", 0}};
    http2_session_send(p.server, r->stream, parts, 2);
    peer_run(&p);
    cr_assert(r->sent_parts == 1 && r->answer.bytes == 3 && !r->is_done);
    http2_piece more = {large, sizeof large};
    http2_session_send(p.server, r->stream, &more, 1);
    peer_run(&p);
    cr_assert(r->sent_parts == 2 && r->answer.bytes == 3 + sizeof large && !r->is_done);
    http2_session_finish(p.server, r->stream, &status_field, 1);
    peer_run(&p);
    cr_assert(r->is_done && r->has_trailer && r->is_closed && r->was_answered && r->error == 0);
}

Test(http2_session, a_response_in_parts_may_end_while_a_part_waits)
{
    static char large[300000];
    http2_field type = {"content-type", "application/grpc", 12, 16},
                status_field = {"grpc-status", "4", 11, 1};
    http2_piece part = {large, sizeof large};
    p.is_holding = true;
    peer_start(&p);
    int32_t id = peer_ask(&p, "/parts", 0);
    peer_run(&p);
    peer_request *r = peer_find(&p, id);
    cr_assert_eq(http2_session_begin(p.server, r->stream, 200, &type, 1), STATUS_OK);
    http2_session_send(p.server, r->stream, &part, 1);
    http2_session_finish(p.server, r->stream, &status_field, 1);
    peer_run(&p);
    cr_assert(r->is_done && r->has_trailer && r->answer.bytes == sizeof large && r->is_closed);
}

Test(http2_session, a_client_that_leaves_is_told_once)
{
    p.is_holding = true;
    peer_start(&p);
    peer_request *r = peer_find(&p, peer_ask(&p, "/", 0));
    peer_run(&p);
    cr_assert_not_null(r->stream);
    nghttp2_submit_rst_stream(p.client, NGHTTP2_FLAG_NONE, r->id, NGHTTP2_CANCEL);
    peer_run(&p);
    cr_assert(r->is_closed && !r->was_answered);
    cr_assert_eq(http2_session_stream_count(p.server), 0);
}

Test(http2_session, a_head_over_the_limit_is_431)
{
    p.limits.head_bytes_max = 4096;
    peer_start(&p);
    char path[3000];
    memset(path, 'a', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    peer_request *small = peer_find(&p, peer_ask(&p, path, 0));
    peer_run(&p);
    cr_assert_eq(small->status, 200);
    p.server->limits.head_bytes_max = 2048;
    peer_request *large = peer_find(&p, peer_ask(&p, path, 0));
    peer_run(&p);
    cr_assert_eq(large->status, 431);
}

/* Three thousand bytes that name 171,000 bytes of fields. */
Test(http2_session, what_is_beyond_the_limit_of_a_head_is_not_held)
{
    uint8_t frame[9 + 6 + 3000] = {0, 0x0b, 0xbe, NGHTTP2_HEADERS, 5, 0, 0, 0, 1};
    memcpy(frame + 9, "\x82\x86\x84\x41\1a", 6); /* GET, http, /, authority: a */
    memset(frame + 9 + 6, 0x80 + 56, 3000);
    p.limits.memory_bytes_max = 60000;
    p.limits.head_bytes_max = 12288;
    p.is_holding = true;
    peer_start(&p);
    peer_run(&p);
    peer_inject(&p, frame, sizeof frame);
    cr_assert_eq(p.failure, STATUS_OK, "%s", status_message());
    cr_assert_lt(http2_session_held_bytes(p.server), 60000);
    cr_assert(peer_find(&p, 1)->is_too_large);
}

/* A value of 4,000 bytes, and 12,000 bytes that each name it again: 48 MB in a frame. */
Test(http2_session, a_head_of_many_times_the_limit_ends_the_connection)
{
    enum { VALUE = 4000, AGAIN = 12000 };
    static uint8_t frame[9 + 12 + VALUE + AGAIN] = {0, 0, 0, NGHTTP2_HEADERS, 5, 0, 0, 0, 1};
    memcpy(frame + 9, "\x82\x86\x84\x41\1a\x40\1x\x7f\xa1\x1e", 12);
    uint8_t *at = memset(frame + 9 + 12, 'v', VALUE);
    memset(at + VALUE, 0xbe, AGAIN);
    size_t payload = 12 + VALUE + AGAIN;
    frame[1] = (uint8_t)(payload >> 8);
    frame[2] = (uint8_t)payload;
    peer_start(&p);
    peer_run(&p);
    peer_inject(&p, frame, 9 + payload);
    cr_assert_eq(p.failure, STATUS_RESOURCE_EXHAUSTED, "%d %s", p.failure, status_message());
    cr_assert_lt(p.server->scan.decoded_bytes, 17 * p.limits.head_bytes_max);
}

Test(http2_session, rapid_resets_end_the_connection)
{
    int resets = 0;
    p.is_holding = true;
    p.limits.streams_max = 1000;
    p.limits.resets_max = 200;
    peer_start(&p);
    for (; resets < 300 && !p.failure; resets++) {
        int32_t id = peer_ask(&p, "/", 0);
        peer_to_server(&p, 1 << 16);
        nghttp2_submit_rst_stream(p.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
        peer_to_server(&p, 1 << 16);
    }
    cr_assert_eq(p.failure, STATUS_RESOURCE_EXHAUSTED);
    cr_assert(resets > 180 && resets < 220, "%d", resets);
    peer_to_client(&p);
    cr_assert_eq(p.goaway_error, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void flood(const uint8_t *frame, size_t bytes, bool is_abuse)
{
    peer_start(&p);
    peer_run(&p);
    for (int i = 0; i < 2000 && !p.failure; i++) {
        peer_inject(&p, frame, bytes);
        text_buffer out = {0};
        status failure = http2_session_write(p.server, &out, 1 << 20);
        cr_assert(!failure);
        text_buffer_dispose(&out);
    }
    cr_assert_eq(p.failure, is_abuse ? STATUS_RESOURCE_EXHAUSTED : STATUS_OK);
}

Test(http2_session, a_flood_of_pings_ends_the_connection)
{
    static const uint8_t ping[17] = {0, 0, 8, 6, 0, 0, 0, 0, 0, 1};
    flood(ping, sizeof ping, true);
}

Test(http2_session, a_flood_of_settings_ends_the_connection)
{
    static const uint8_t settings[9] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    flood(settings, sizeof settings, true);
}

Test(http2_session, a_flood_of_unknown_frames_ends_the_connection)
{
    static const uint8_t unknown[9] = {0, 0, 0, 0xbb, 0, 0, 0, 0, 0};
    flood(unknown, sizeof unknown, true);
}

Test(http2_session, a_ping_a_second_is_no_abuse)
{
    static const uint8_t ping[17] = {0, 0, 8, 6, 0, 0, 0, 0, 0, 1};
    peer_start(&p);
    peer_run(&p);
    for (int i = 0; i < 5000; i++) {
        p.now_ns += 1000000000;
        peer_inject(&p, ping, sizeof ping);
        cr_assert_eq(p.failure, STATUS_OK);
        peer_to_client(&p);
    }
}

/* As Go's client sends them: when it has all of a response, two for each 4096 bytes. */
Test(http2_session, window_updates_for_what_was_sent_are_no_abuse)
{
    static const uint8_t update[13] = {0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const size_t response_bytes = 50000;
    const int updates = 100 * (int)(2 * response_bytes / 4096);
    peer_start(&p);
    p.is_consuming = true;
    for (int i = 0; i < 100; i++)
        peer_ask(&p, "/", response_bytes); /* the response is the body */
    peer_run(&p);
    for (int i = 0; i < updates; i++)
        peer_inject(&p, update, sizeof update);
    cr_assert_eq(p.failure, STATUS_OK);
    for (int i = 0; i < updates + 3000 && !p.failure; i++)
        peer_inject(&p, update, sizeof update);
    cr_assert_eq(p.failure, STATUS_RESOURCE_EXHAUSTED, "and more of them are");
}

Test(http2_session, a_hundred_thousand_answered_requests_are_no_abuse)
{
    peer_start(&p);
    for (int i = 0; i < 100000; i++) {
        p.request_count = 0;
        memset(&p.requests[0], 0, sizeof p.requests[0]);
        peer_ask(&p, "/", i % 2 ? 100 : 0);
        peer_run(&p);
        cr_assert(p.requests[0].is_done && p.requests[0].status == 200, "request %d", i);
        text_buffer_dispose(&p.requests[0].body);
        text_buffer_dispose(&p.requests[0].answer);
    }
    p.request_count = 0;
}

Test(http2_session, memory_over_the_limit_is_refused_and_nothing_aborts)
{
    p.limits.memory_bytes_max = 60000;
    p.limits.streams_max = 10000;
    p.is_holding = true;
    peer_start(&p);
    for (int i = 0; i < 200 && !p.failure; i++) {
        peer_ask(&p, "/", 0);
        peer_to_server(&p, 1 << 16);
    }
    cr_assert_leq(http2_session_held_bytes(p.server), 60000);
}

Test(http2_session, drain_names_the_last_stream_after_a_round_trip)
{
    p.is_holding = true;
    peer_start(&p);
    peer_request *r = peer_find(&p, peer_ask(&p, "/", 0));
    peer_run(&p);
    http2_session_drain(p.server);
    peer_to_client(&p);
    cr_assert_eq(p.goaways, 1);
    cr_assert_eq(p.last_stream, INT32_MAX);
    /* It was on its way: it is served. */
    peer_to_server(&p, 1 << 16);
    peer_to_client(&p);
    cr_assert_eq(p.goaways, 2);
    cr_assert_eq(p.last_stream, r->id);
    cr_assert_not(http2_session_is_finished(p.server));
    peer_respond(&p, r);
    peer_run(&p);
    cr_assert(r->is_done && r->status == 200);
    cr_assert(http2_session_is_finished(p.server));
}

Test(http2_session, settings_of_an_upgrade_are_checked)
{
    peer_start(&p);
    http2_stream *stream;
    cr_assert_eq(http2_session_upgrade(p.server, "AAMAAABkAAQAAP__", 16, false, &stream),
                 STATUS_OK);
    cr_assert_eq(http2_stream_id(stream), 1);
    peer_request *r = peer_find(&p, 1);
    r->stream = stream;
    http2_stream_set_data(stream, r);
    tear_down();
    peer_init(&p);
    peer_start(&p);
    cr_assert_eq(http2_session_upgrade(p.server, "AAM=", 4, false, &stream),
                 STATUS_INVALID_ARGUMENT);
    cr_assert_eq(http2_session_upgrade(p.server, "AAMA", 4, false, &stream),
                 STATUS_INVALID_ARGUMENT);
}
