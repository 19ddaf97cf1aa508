#include "server/http1/tls_parts.h"

#include <stdlib.h>
#include <string.h>

#include "server/http1/overrides/socket_write.h"
#include "server/http1/state.h"

struct tls_parts {
    h2o_socket_cb on_written;
    size_t count, at;     /* pieces; the first that is not written */
    h2o_iovec_t pieces[]; /* what is left of them; then as many for the part that is written */
};

/* The pieces of the next part, at `out`; returns how many. */
static size_t cut_part(tls_parts *p, h2o_iovec_t *out, size_t *bytes)
{
    size_t count = 0;
    *bytes = 0;
    while (p->at < p->count && *bytes < TLS_PART_BYTES) {
        h2o_iovec_t *from = &p->pieces[p->at];
        size_t n = TLS_PART_BYTES - *bytes < from->len ? TLS_PART_BYTES - *bytes : from->len;
        out[count++] = h2o_iovec_init(from->base, n);
        *bytes += n;
        from->base += n;
        from->len -= n;
        p->at += from->len == 0;
    }
    while (p->at < p->count && p->pieces[p->at].len == 0)
        p->at++;
    return count;
}

static void on_part_written(h2o_socket_t *socket, const char *error);

static void write_part(connection *c)
{
    http1_state *state = http1_state_of(c);
    tls_parts *p = state->parts;
    size_t bytes, count = cut_part(p, p->pieces + p->count, &bytes);
    bool is_last = p->at == p->count;
    turn_count_written(&c->all->turns, &c->share, bytes);
    socket_write_now(c->socket, p->pieces + p->count, count,
                     is_last ? p->on_written : on_part_written);
    if (is_last) { /* the array is not needed any more: the bytes are encrypted */
        state->parts = NULL;
        free(p);
    }
}

static void go_on(turn_share *share)
{
    connection *c = H2O_STRUCT_FROM_MEMBER(connection, share, share);
    if (turn_may_write(&c->all->turns, &c->share))
        write_part(c);
    else
        connection_wait_turn(c, go_on);
}

static void on_part_written(h2o_socket_t *socket, const char *error)
{
    connection *c = connection_of(socket);
    http1_state *state = http1_state_of(c);
    if (error == NULL) {
        go_on(&c->share);
        return;
    }
    h2o_socket_cb on_written = state->parts->on_written;
    free(state->parts);
    state->parts = NULL;
    on_written(socket, error);
}

/* Encrypted, so much is held besides. */
static void count_held(connection *c, http1_state *state, size_t bytes)
{
    if (state == NULL || !state->is_responding)
        return;
    budget_force(&c->base.held, bytes);
    state->response_held += bytes;
}

bool tls_parts_take_over(h2o_socket_t *socket, const h2o_iovec_t *pieces, size_t count,
                         h2o_socket_cb on_written)
{
    connection *c = connection_of(socket);
    http1_state *state = c != NULL ? http1_state_of(c) : NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += pieces[i].len;
    tls_parts *p = NULL;
    if (state != NULL && bytes > TLS_PART_BYTES)
        p = malloc(sizeof *p + 2 * count * sizeof *pieces);
    count_held(c, state, p != NULL ? TLS_PART_BYTES : bytes);
    if (p == NULL)
        return false;
    *p = (tls_parts){.on_written = on_written, .count = count};
    memcpy(p->pieces, pieces, count * sizeof *pieces);
    state->parts = p;
    go_on(&c->share);
    return true;
}
