#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "server/connection/accept.h"
#include "server/connection/relief.h"
#include "server/http1/overrides/decode_chunked.h"
#include "server/http1/overrides/input_buffer.h"
#include "server/http1/overrides/media_types.h"
#include "server/http1/overrides/parse_request.h"
#include "server/http1/overrides/socket_close.h"
#include "server/http1/overrides/socket_write.h"
#include "server/http1/state.h"
#include "server/http1/tls_parts.h"
#include "server/request/authorize.h"

#define OTHERS_INPUT_BYTES_MAX ((size_t)16 << 20)
#define DISCARDED_BYTES_MAX ((size_t)4 << 20)

/* Responses to requests that are not complete, by a connection that then ends. */
#define FINAL(code, reason, more, error)                                                           \
    "HTTP/1.1 " #code " " reason "\r\nConnection: close\r\n" more                                  \
    "Content-Type: application/json\r\n\r\n{\"error\":\"" error "\"}"
static const char late[] = FINAL(408, "Request Timeout", "", "the request did not arrive in time");
static const char short_of_bytes[] =
    FINAL(503, "Service Unavailable", "Retry-After: 1\r\n", "there is no room for the body now");

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

static bool is_named(const parse_request_header *h, const char *name)
{
    return h->name_bytes == strlen(name) && strncasecmp(h->name, name, h->name_bytes) == 0;
}

static bool is_larger(const parse_request_header *h)
{
    unsigned long long bytes = 0; /* the head has been checked: digits, and not too many */
    for (size_t i = 0; i < h->value_bytes && bytes <= UNAUTHENTICATED_BODY_BYTES_MAX; i++)
        bytes = bytes * 10 + (unsigned)(h->value[i] - '0');
    return bytes > UNAUTHENTICATED_BODY_BYTES_MAX;
}

/* A body that is large, or whose length is not said, comes from who is known, or not at all. */
static int on_body_ahead(const char *head, const parse_request_header *headers, size_t count)
{
    connections *all = connections_of_this_thread();
    if (all == NULL || !all->loop->access->is_enforced)
        return 0;
    authorize_claim claim = {0};
    bool is_large = false;
    for (size_t i = 0; i < count; i++) {
        const parse_request_header *h = &headers[i];
        request_text *to = is_named(h, "x-api-key")       ? &claim.api_key
                           : is_named(h, "authorization") ? &claim.authorization
                                                          : NULL;
        is_large |=
            is_named(h, "transfer-encoding") || (is_named(h, "content-length") && is_larger(h));
        if (to == NULL)
            continue;
        claim.is_ambiguous |= to->data != NULL;
        *to = (request_text){h->value, h->value_bytes};
    }
    connection *c = is_large ? find_by_input(head) : NULL;
    if (c == NULL || authorize_body(all->loop, &c->base, &claim))
        return 0;
    http1_state *state = http1_state_of(c);
    state->refusal_code = 401;
    state->is_unauthenticated = true;
    state->has_key = authorize_has_key(&claim);
    return 401;
}

static void on_refused_body(const char *body, int code)
{
    connection *c = find_by_input(body);
    if (c != NULL)
        http1_state_of(c)->body_code = code;
}

static void on_discard(h2o_socket_t *socket, const char *error)
{
    http1_state *state = http1_state_of(connection_of(socket));
    state->discarded_bytes += socket->input->size;
    if (error != NULL || state->discarded_bytes > DISCARDED_BYTES_MAX)
        socket_close_now(socket);
    else
        h2o_buffer_consume(&socket->input, socket->input->size);
}

/* A peer that still sends would get a reset instead of the response: the rest is read, until the
 * peer closes, has sent too much, or connection.c ends it. */
static void on_final_written(h2o_socket_t *socket, const char *error)
{
    if (error != NULL || socket->ssl != NULL) {
        socket_close_now(socket);
        return;
    }
    shutdown(h2o_socket_get_fd(socket), SHUT_WR);
    h2o_buffer_consume(&socket->input, socket->input->size);
    h2o_socket_read_start(socket, on_discard);
}

/* The library closes a connection whose request did not arrive in time (check.c), or has no room:
 * say so first. A stranger's body is on its way: its sender shall see the response. */
static bool before_close(h2o_socket_t *socket)
{
    connection *c = connection_of(socket);
    http1_state *state = c != NULL ? http1_state_of(c) : NULL;
    if (state == NULL || h2o_socket_is_writing(socket))
        return false;
    if (state->is_unauthenticated && socket->ssl == NULL) {
        state->is_unauthenticated = false;
        state->is_final = true;
        on_final_written(socket, NULL);
        return true;
    }
    if (state->closing_code == 0)
        return false;
    int code = state->closing_code;
    state->closing_code = 0;
    state->is_final = true;
    request_loop *l = c->base.loop;
    record_refused(l->service->recorder, l->index, code,
                   code == 408 ? RECORD_TOO_SLOW : RECORD_OVERLOADED, RECORD_PROTOCOLS - 1,
                   clock_now_ns());
    h2o_iovec_t piece = code == 408 ? h2o_iovec_init(late, sizeof late - 1)
                                    : h2o_iovec_init(short_of_bytes, sizeof short_of_bytes - 1);
    h2o_socket_read_stop(socket);
    h2o_socket_write(socket, &piece, 1, on_final_written);
    return true;
}

static bool has_buffer(const connection *c, const void *slot)
{
    return &c->socket->input == slot && (c->protocol == NULL || http1_state_of(c) != NULL);
}

/* Of HTTP/1, or not known yet: what others read is consumed at once. */
static void *find_owner(h2o_buffer_t **slot)
{
    return connections_find(connections_of_this_thread(), has_buffer, slot);
}

static bool may_grow(void *owner, size_t bytes)
{
    connection *c = owner;
    if (c == NULL)
        return bytes <= OTHERS_INPUT_BYTES_MAX;
    if (budget_add(&c->base.held, bytes) == BUDGET_GRANTED)
        return true;
    if (http1_state_of(c) != NULL)
        http1_state_of(c)->closing_code = 503;
    connections_relieve_soon(c, bytes);
    return false;
}

static bool is_short(void)
{
    connections *all = connections_of_this_thread();
    return all != NULL && reserve_is_exhausted(&all->reserve) && !reserve_fill(&all->reserve);
}

static void shrink(void *owner, size_t bytes)
{
    connection *c = owner;
    if (c != NULL)
        budget_subtract(&c->base.held, bytes);
}

void http1_install_hooks(size_t body_bytes_max)
{
    input_buffer_install(&(input_buffer_hooks){find_owner, may_grow, is_short, shrink});
    decode_chunked_install(body_bytes_max, on_refused_body);
    parse_request_install(on_refused_head, on_body_ahead);
    socket_close_install(before_close);
    media_types_install();
    socket_write_install(&(socket_write_hooks){half_close_bytes_sent, tls_parts_take_over});
}
