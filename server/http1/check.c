/* The time limits of an HTTP/1 connection. The library has one for idle, head and body together,
 * which is longer. */
#include <string.h>

#include "server/connection/peer.h"
#include "server/http1/overrides/input_buffer.h"
#include "server/http1/state.h"

#define MS UINT64_C(1000000)
/* A connection over its age waits this long for a request that it can tell so. */
#define OLD_IDLE_NS UINT64_C(5000000000)

#define HEAD_BYTES_MAX 65536 /* and what is longer is refused */

static bool ends_head(const h2o_buffer_t *input)
{
    size_t bytes = input->size < HEAD_BYTES_MAX ? input->size : HEAD_BYTES_MAX;
    return memmem(input->bytes, bytes, "\r\n\r\n", 4) != NULL ||
           memmem(input->bytes, bytes, "\n\n", 2) != NULL;
}

/* A request has begun to arrive and is not complete. */
static void check_arriving(connection *c, http1_state *state, const server_options *o,
                           uint64_t now_ns)
{
    const h2o_buffer_t *input = c->socket->input;
    rate_limit body = {o->timeouts.body_rate_ms * MS, (uint64_t)o->limits.body_bytes_per_s_min};
    if (c->reading_ns == 0) {
        c->reading_ns = now_ns;
        state->is_head_complete = false;
    }
    if (!state->is_head_complete && ends_head(input)) {
        state->is_head_complete = true;
        state->rate = (rate_window){0};
    }
    connection_note_moved(c, input->size, now_ns);
    uint64_t age_ns = now_ns - c->reading_ns;
    if (!state->is_head_complete && age_ns > o->timeouts.head_ms * MS)
        connection_end(c, CLOSURE_HEAD, now_ns);
    else if (age_ns > o->timeouts.request_ms * MS)
        connection_end(c, state->is_head_complete ? CLOSURE_BODY : CLOSURE_HEAD, now_ns);
    else if (state->is_head_complete &&
             rate_window_is_slow(&state->rate, input->size, now_ns, &body))
        connection_end(c, CLOSURE_BODY, now_ns);
}

/* Input up to INPUT_BUFFER_LIBRARY_BYTES is not counted as it grows, because most is gone at once:
 * what stays is counted here. */
static void count_input(connection *c, http1_state *state)
{
    const h2o_buffer_t *input = c->socket->input;
    size_t held = input->size > 0 && !input_buffer_is_counted(input) ? input->capacity : 0;
    if (held > state->input_held)
        budget_force(&c->base.held, held - state->input_held);
    else
        budget_subtract(&c->base.held, state->input_held - held);
    state->input_held = held;
}

void http1_check(connection *c, uint64_t now_ns)
{
    http1_state *state = http1_state_of(c);
    count_input(c, state);
    const server_options *o = c->base.loop->service->options;
    rate_limit response = {o->timeouts.response_ms * MS,
                           (uint64_t)o->limits.response_bytes_per_s_min};
    if (state->is_final && c->base.requests == 0) { /* being closed */
        c->ended_ns = now_ns;
    } else if (state->is_responding ||
               (c->base.requests == 0 && h2o_socket_is_writing(c->socket))) {
        uint64_t taken = peer_acknowledged_bytes(c->fd);
        connection_note_moved(c, taken, now_ns);
        if (rate_window_is_slow(&state->rate, taken, now_ns, &response))
            connection_end(c, CLOSURE_RESPONSE, now_ns);
    } else if (c->base.requests > 0 || state->waiting != NULL) {
        rate_window_end(&state->rate);
    } else if (c->socket->input->size > 0) {
        check_arriving(c, state, o, now_ns);
    } else {
        c->reading_ns = 0;
        uint64_t idle_ns = now_ns - c->progress_ns;
        if (idle_ns > o->timeouts.idle_ms * MS || (c->is_old && idle_ns > OLD_IDLE_NS))
            connection_end(c, CLOSURE_IDLE, now_ns);
    }
}
