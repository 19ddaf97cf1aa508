/* One JSON object a line, gathered per loop and written in one go: at most half a second late. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/http/edge.h"
#include "server/protocol/text/text_write.h"

#define FLUSH_BYTES 65536

void access_log_flush(loop *l)
{
    text_buffer *t = &l->log;
    for (size_t done = 0; done < t->bytes;) {
        ssize_t n = write(l->server->log_fd, t->data + done, t->bytes - done);
        if (n <= 0)
            break; /* a full disk must not stop the server */
        done += (size_t)n;
    }
    text_buffer_reset(t, 4 * FLUSH_BYTES);
}

static void put_peer(text_buffer *out, h2o_req_t *request)
{
    struct sockaddr_storage name;
    char host[NI_MAXHOST];
    socklen_t bytes = request->conn->callbacks->get_peername(request->conn, (void *)&name);
    size_t n = bytes ? h2o_socket_getnumerichost((void *)&name, bytes, host) : 0;
    text_write_json_string(out, host, n == SIZE_MAX ? 0 : n);
}

static void put_span(text_buffer *out, const char *key, uint64_t from_ns, uint64_t to_ns)
{
    if (to_ns > from_ns && from_ns > 0)
        text_buffer_format(out, ",\"%s_us\":%llu", key,
                           (unsigned long long)((to_ns - from_ns) / 1000));
}

void access_log(exchange *e)
{
    loop *l = e->connection->loop;
    if (l->server->log_fd < 0)
        return;
    text_buffer *out = &l->log;
    h2o_req_t *request = e->request;
    uint64_t now_ns = clock_now_ns(), end_ns = e->stage_ns[STAGE_RECORD];
    if (end_ns == 0)
        end_ns = now_ns;
    text_buffer_format(out, "{\"time_ms\":%llu,\"peer\":",
                       (unsigned long long)((clock_wall_ns() - (now_ns - e->begin_ns)) / 1000000));
    put_peer(out, request);
    text_buffer_put(out, ",\"method\":");
    text_write_json_string(out, request->method.base, request->method.len);
    text_buffer_put(out, ",\"path\":");
    text_write_json_string(out, request->path.base,
                           request->path.len < 1024 ? request->path.len : 1024);
    text_buffer_format(
        out, ",\"protocol\":\"%s\",\"code\":%d,\"request_bytes\":%zu,\"answer_bytes\":%zu",
        request->version >= 0x200   ? "h2"
        : request->version == 0x101 ? "http/1.1"
                                    : "http/1.0",
        e->code, request->entity.base ? request->entity.len : 0, e->body_bytes);
    text_buffer_format(out, ",\"total_us\":%llu",
                       (unsigned long long)((end_ns - e->begin_ns) / 1000));
    if (e->is_infer) {
        const uint64_t *at = e->stage_ns;
        put_span(out, "parse", at[STAGE_ACCEPT], at[STAGE_PARSE]);
        put_span(out, "queue", at[STAGE_ADMIT], at[STAGE_QUEUE]);
        put_span(out, "batch", at[STAGE_QUEUE], at[STAGE_PLACE]);
        put_span(out, "execute", at[STAGE_PLACE], at[STAGE_EXECUTE]);
        text_buffer_format(out, ",\"rows\":%lld,\"batch_rows\":%lld", (long long)e->rows,
                           (long long)e->batch_rows);
    }
    ssize_t trace = h2o_find_header_by_str(&request->headers, H2O_STRLIT("traceparent"), SIZE_MAX);
    if (trace >= 0) {
        text_buffer_put(out, ",\"traceparent\":");
        h2o_iovec_t value = request->headers.entries[trace].value;
        text_write_json_string(out, value.base, value.len < 128 ? value.len : 128);
    }
    text_buffer_put(out, "}\n");
    if (out->bytes >= FLUSH_BYTES)
        access_log_flush(l);
}
