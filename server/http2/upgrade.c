#include "server/http2/upgrade.h"

#include <h2o/http1.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/http2/connection.h"

/* The request, while the 101 is being written: the library frees its own copy then. */
typedef struct upgrade {
    connection *connection;
    h2o_mem_pool_t pool;
    http2_head head;
    http2_first first;
} upgrade;

static request_text keep(h2o_mem_pool_t *pool, h2o_iovec_t text)
{
    h2o_iovec_t copy = h2o_strdup(pool, text.base, text.len);
    return (request_text){copy.base, copy.len};
}

static http2_field keep_field(h2o_mem_pool_t *pool, h2o_iovec_t name, h2o_iovec_t value)
{
    request_text n = keep(pool, name), v = keep(pool, value);
    return (http2_field){n.data, v.data, n.bytes, v.bytes};
}

static upgrade *keep_request(connection *c, h2o_req_t *stream, h2o_iovec_t settings)
{
    upgrade *u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    h2o_mem_pool_t *pool = &u->pool;
    h2o_mem_init_pool(pool);
    u->connection = c;
    http2_head *head = &u->head;
    h2o_iovec_t none = {NULL, 0};
    head->method = keep_field(pool, none, stream->method);
    head->path = keep_field(pool, none, stream->path);
    head->content_length = stream->entity.base != NULL ? (int64_t)stream->entity.len : -1;
    head->fields = h2o_mem_alloc_pool(pool, (stream->headers.size + 1) * sizeof *head->fields);
    for (size_t i = 0; i < stream->headers.size; i++) {
        const h2o_header_t *h = &stream->headers.entries[i];
        head->fields[head->field_count++] = keep_field(pool, *h->name, h->value);
    }
    u->first =
        (http2_first){.head = head, .settings = keep(pool, settings), .begun_ns = clock_now_ns()};
    if (stream->entity.base != NULL)
        u->first.body = keep(pool, stream->entity);
    return u;
}

static void on_upgraded(void *context, h2o_socket_t *socket, size_t request_bytes)
{
    upgrade *u = context;
    if (socket != NULL) {
        h2o_buffer_consume(&socket->input, request_bytes);
        http2_start_upgraded(u->connection, &u->first);
    }
    h2o_mem_clear_pool(&u->pool);
    free(u);
}

bool http2_upgrade(connection *c, h2o_req_t *stream)
{
    h2o_iovec_t wanted = stream->upgrade;
    if (wanted.base == NULL || stream->version != 0x101 || c->socket->ssl != NULL ||
        !h2o_lcstris(wanted.base, wanted.len, H2O_STRLIT("h2c")))
        return false;
    ssize_t at = h2o_find_header_by_str(&stream->headers, H2O_STRLIT("http2-settings"), SIZE_MAX);
    if (at < 0)
        return false;
    upgrade *u = keep_request(c, stream, stream->headers.entries[at].value);
    if (u == NULL)
        return false;
    stream->res.status = 101;
    stream->res.reason = "Switching Protocols";
    h2o_add_header(&stream->pool, &stream->res.headers, H2O_TOKEN_UPGRADE, NULL, H2O_STRLIT("h2c"));
    h2o_http1_upgrade(stream, NULL, 0, on_upgraded, u);
    return true;
}
