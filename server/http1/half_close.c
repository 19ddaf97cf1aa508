#include "server/http1/half_close.h"

#include <assert.h>
#include <string.h>

#include "server/http1/overrides/socket_write.h"
#include "server/http1/state.h"

#define BEGINNING "HTTP/1.1 " /* also of a response to HTTP/1.0 */

/* An error is noticed by connection_watch(), and by the next write. */
static void on_begun(h2o_socket_t *socket, const char *error)
{
    half_close *h = &http1_state_of(connection_of(socket))->half_close;
    h2o_req_t *stream = h->stream;
    (void)error;
    assert(h->is_beginning);
    h->is_beginning = false;
    h->has_begun = true;
    h->stream = NULL;
    if (stream != NULL)
        h->send(stream, h->pieces, h->count);
}

void half_close_begin(connection *c)
{
    half_close *h = &http1_state_of(c)->half_close;
    if (h->is_beginning || h->has_begun)
        return;
    h2o_iovec_t beginning = h2o_iovec_init(BEGINNING, sizeof(BEGINNING) - 1);
    h->is_beginning = true;
    socket_write_now(c->socket, &beginning, 1, on_begun);
}

bool half_close_postpones(connection *c, h2o_req_t *stream, const h2o_iovec_t *pieces, size_t count,
                          half_close_send *send)
{
    half_close *h = &http1_state_of(c)->half_close;
    if (!h->is_beginning)
        return false;
    h->pieces = h2o_mem_alloc_pool(&stream->pool, (count + 1) * sizeof(*pieces));
    memcpy(h->pieces, pieces, count * sizeof(*pieces));
    h->stream = stream;
    h->count = count;
    h->send = send;
    return true;
}

size_t half_close_bytes_sent(const h2o_socket_t *socket)
{
    connection *c = connection_of(socket);
    http1_state *state = c != NULL ? http1_state_of(c) : NULL;
    if (state == NULL || !state->half_close.has_begun)
        return 0;
    state->half_close.has_begun = false;
    return sizeof(BEGINNING) - 1;
}
