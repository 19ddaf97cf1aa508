/* The time limits of an HTTP/2 connection. */
#include "base/clock.h"
#include "server/connection/peer.h"
#include "server/http2/internal.h"
#include "server/request/respond.h"

#define MS UINT64_C(1000000)
#define LINGER_NS (1000 * MS)

static void respond_late(request *r)
{
    respond_error(r, 408, "the request did not arrive in time");
}

/* A body that arrives, or a response that waits for the stream's window: PINGs and other streams do
 * not count. */
static void check_exchange(http2_exchange *x, const server_options *o, uint64_t now_ns)
{
    rate_limit body = {o->timeouts.body_rate_ms * MS, (uint64_t)o->limits.body_bytes_per_s_min};
    rate_limit response = {o->timeouts.response_ms * MS,
                           (uint64_t)o->limits.response_bytes_per_s_min};
    http2_wait why;
    if (x->is_arriving) {
        if (now_ns - x->begun_ns > o->timeouts.request_ms * MS ||
            rate_window_is_slow(&x->rate, x->body_bytes, now_ns, &body))
            http2_connection_respond_early(x, respond_late);
        return;
    }
    if (x->call != NULL)
        http2_call_check(x);
    size_t unsent = http2_stream_unsent_bytes(x->stream, &why);
    if (why != HTTP2_WAIT_STREAM)
        rate_window_end(&x->rate);
    else if (rate_window_is_slow(&x->rate, x->response_bytes - unsent, now_ns, &response))
        http2_session_reset(x->on->session, x->stream, HTTP2_CANCEL);
}

/* Whether any response waits for the connection's window. */
static bool check_exchanges(http2_connection *h, const server_options *o, uint64_t now_ns)
{
    bool is_waiting = false;
    http2_wait why;
    for (http2_stream *s = http2_session_next_stream(h->session, NULL), *next; s != NULL;
         s = next) {
        next = http2_session_next_stream(h->session, s);
        http2_exchange *x = http2_stream_data(s);
        if (x != NULL)
            check_exchange(x, o, now_ns);
        (void)http2_stream_unsent_bytes(s, &why);
        is_waiting |= why == HTTP2_WAIT_CONNECTION;
    }
    return is_waiting;
}

void http2_connection_check(connection *c, uint64_t now_ns)
{
    http2_connection *h = c->state;
    if (h == NULL) { /* being closed: TLS may still have something to send */
        c->ended_ns = now_ns;
        return;
    }
    if (h->linger_ns != 0) {
        if (now_ns - h->linger_ns > LINGER_NS)
            c->protocol->abort(c, CLOSURE_IDLE);
        return;
    }
    h->now_ns = now_ns;
    http2_connection_count(h, h->is_writing ? h->out.capacity : 0);
    connection_note_moved(c, h->received_bytes + http2_session_sent_bytes(h->session), now_ns);
    const server_options *o = c->base.loop->service->options;
    rate_limit response = {o->timeouts.response_ms * MS,
                           (uint64_t)o->limits.response_bytes_per_s_min};
    bool waits_for_window = check_exchanges(h, o, now_ns);
    if (h->is_writing) {
        if (rate_window_is_slow(&h->write_rate, peer_acknowledged_bytes(c->fd), now_ns, &response))
            connection_end(c, CLOSURE_RESPONSE, now_ns);
        return;
    }
    if (!waits_for_window)
        rate_window_end(&h->window_rate);
    else if (rate_window_is_slow(&h->window_rate, http2_session_sent_bytes(h->session), now_ns,
                                 &response)) {
        connection_end(c, CLOSURE_RESPONSE, now_ns);
        return;
    }
    uint64_t head_since_ns = http2_session_head_since_ns(h->session);
    if (head_since_ns != 0 && now_ns - head_since_ns > o->timeouts.head_ms * MS) {
        connection_end(c, CLOSURE_HEAD, now_ns);
        return;
    }
    if (h->is_draining)
        http2_session_drain(h->session);
    else if (http2_session_stream_count(h->session) == 0 &&
             now_ns - h->busy_ns > o->timeouts.idle_ms * MS) {
        connection_count_closure(c, CLOSURE_IDLE);
        c->protocol->drain(c);
    }
    if (http2_session_wants_write(h->session))
        http2_connection_flush_later(h);
}
