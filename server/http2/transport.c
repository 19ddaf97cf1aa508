#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/http2/internal.h"
#include "server/offload/pool.h"
#include "server/protocol/text/number_write.h"
#include "server/request/request.h"

#define TEXT(literal) ((request_text){literal, sizeof(literal) - 1})

static request_text header(const request *r, const char *name, size_t bytes)
{
    const http2_exchange *x = r->stream;
    for (int i = 0; i < x->head->field_count; i++) {
        const http2_field *f = &x->head->fields[i];
        if (f->name_bytes == bytes && memcmp(f->name, name, bytes) == 0)
            return (request_text){f->value, f->value_bytes};
    }
    return (request_text){NULL, 0};
}

static int header_count(const request *r, const char *name, size_t bytes)
{
    const http2_exchange *x = r->stream;
    int count = 0;
    for (int i = 0; i < x->head->field_count; i++) {
        const http2_field *f = &x->head->fields[i];
        count += f->name_bytes == bytes && memcmp(f->name, name, bytes) == 0;
    }
    return count;
}

static void *allocate(request *r, size_t bytes)
{
    http2_exchange *x = r->stream;
    return arena_allocate(&x->memory, bytes);
}

static void add_header(request *r, request_text name, request_text value)
{
    http2_exchange *x = r->stream;
    assert(x->field_count < HTTP2_FIELDS_MAX - 1);
    x->fields[x->field_count++] = (http2_field){name.data, value.data, name.bytes, value.bytes};
}

static void add_trailer(request *r, request_text name, request_text value)
{
    http2_exchange *x = r->stream;
    assert(x->trailer_count < HTTP2_TRAILERS_MAX);
    x->trailers[x->trailer_count++] = (http2_field){name.data, value.data, name.bytes, value.bytes};
}

static void drop_headers(request *r)
{
    http2_exchange *x = r->stream;
    x->field_count = x->trailer_count = 0;
}

static void send_response(request *r, int code, const char *reason, const request_text *pieces,
                          int count)
{
    http2_exchange *x = r->stream;
    char digits[NUMBER_INTEGER_CHARS];
    http2_piece out[HTTP2_PIECES_MAX];
    (void)reason;
    assert(count <= HTTP2_PIECES_MAX);
    for (int i = 0; i < count; i++)
        out[i] = (http2_piece){pieces[i].data, pieces[i].bytes};
    if (x->parent != NULL) {
        http2_call_respond(x, out, count);
        return;
    }
    size_t n = (size_t)(number_write_u64(digits, r->response_bytes) - digits);
    /* RFC 9110, section 8.6; gRPC's messages say how long they are. */
    if (code != 204 && r->route.dialect != ROUTE_GRPC)
        add_header(r, TEXT("content-length"), (request_text){digits, n});
    h2o_context_t *context = x->on->shared->context;
    h2o_get_timestamp(context, NULL, NULL);
    const char *now = context->_timestamp_cache.value->rfc1123;
    add_header(r, TEXT("date"), (request_text){now, H2O_TIMESTR_RFC1123_LEN});
    add_header(r, TEXT("server"), TEXT("penstock"));
    http2_connection_respond(x, code, out, count);
}

/* The library tells when the stream is closed. */
static void watch(request *r)
{
    (void)r;
}

static void keep_body(request *r)
{
    http2_exchange *x = r->stream;
    r->kept_body = x->body;
    r->kept_body_capacity = x->body_capacity;
    r->kept_body_bytes = x->body_held;
    r->connection->worked_bytes += r->kept_body_bytes; /* the end of the stream does not free it */
    x->body_held = 0;
    x->body = NULL;
    x->body_capacity = 0;
}

static void drop_body(request *r)
{
    offload_pool_free(request_service(r)->helpers, r->kept_body, r->kept_body_capacity);
    r->kept_body = NULL;
    r->connection->worked_bytes -= r->kept_body_bytes;
    budget_subtract(&r->connection->held, r->kept_body_bytes);
}

const request_transport *http2_transport(void)
{
    static const request_transport transport = {
        .header = header,
        .header_count = header_count,
        .allocate = allocate,
        .add_header = add_header,
        .add_trailer = add_trailer,
        .drop_headers = drop_headers,
        .send = send_response,
        .watch = watch,
        .keep_body = keep_body,
        .drop_body = drop_body,
        .close = connection_close_for_abuse,
    };
    return &transport;
}
