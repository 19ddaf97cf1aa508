#include <stdio.h>

#include "base/clock.h"
#include "server/http1/overrides/decode_chunked.h"
#include "server/http1/overrides/parse_request.h"
#include "server/http1/overrides/socket_close.h"
#include "server/http1/overrides/socket_write.h"
#include "server/http1/state.h"
#include "server/request/request.h"

#define LATE_BODY "{\"error\":\"the request did not arrive in time\"}"
#define LATE_BODY_BYTES 46
_Static_assert(sizeof(LATE_BODY) - 1 == LATE_BODY_BYTES, "Content-Length of the late response");

/* picohttpparser gets bytes and nothing else, so the connection is the one whose input they are. It
 * is searched for only when a head or body is refused, which ends that connection. */
static bool has_input(const connection *c, const void *bytes)
{
    const h2o_buffer_t *input = c->socket->input;
    return http1_state_of(c) != NULL && (const char *)bytes >= input->bytes &&
           (const char *)bytes < input->bytes + input->size;
}

static connection *find_by_input(const char *bytes)
{
    return connections_find(connections_of_this_thread(), has_input, bytes);
}

static bool on_refused_head(const char *head, int code, const char *why)
{
    connection *c = find_by_input(head);
    if (c == NULL)
        return false;
    http1_state *state = http1_state_of(c);
    state->refusal_code = code;
    snprintf(state->refusal, sizeof(state->refusal), "%s", why);
    return true;
}

static void on_refused_body(const char *body, int code)
{
    connection *c = find_by_input(body);
    if (c != NULL)
        http1_state_of(c)->body_code = code;
}

static void on_late_written(h2o_socket_t *socket, const char *error)
{
    (void)error;
    socket_close_now(socket);
}

/* The library closes a connection whose request did not arrive in time (check.c): say so first. */
static bool before_close(h2o_socket_t *socket)
{
    static const char response[] =
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 46\r\n\r\n" LATE_BODY;
    connection *c = connection_of(socket);
    http1_state *state = c != NULL ? http1_state_of(c) : NULL;
    if (state == NULL || !state->is_late || h2o_socket_is_writing(socket))
        return false;
    state->is_late = false;
    state->is_final = true;
    request_loop *l = c->base.loop;
    record_sample sample = {.begin_ns = clock_now_ns(), .code = 408, .bucket_index = -1};
    record_request(l->service->recorder, NULL, l->index, &sample, sample.begin_ns);
    h2o_iovec_t piece = h2o_iovec_init(response, sizeof(response) - 1);
    h2o_socket_read_stop(socket);
    h2o_socket_write(socket, &piece, 1, on_late_written);
    return true;
}

void http1_install_hooks(size_t body_bytes_max)
{
    decode_chunked_install(body_bytes_max, on_refused_body);
    parse_request_install(on_refused_head);
    socket_close_install(before_close);
    socket_write_install(half_close_bytes_sent);
}
