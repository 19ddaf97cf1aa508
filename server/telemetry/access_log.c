#include "server/telemetry/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/protocol/text/text_write.h"

#define FLUSH_BYTES 65536
#define PATH_BYTES_MAX 1024
#define METHOD_BYTES_MAX 32
#define TRACE_BYTES_MAX 128

status access_log_open(const char *file, int *fd)
{
    *fd = -1;
    if (file == NULL)
        return STATUS_OK;
    *fd = strcmp(file, "-") == 0 ? dup(STDOUT_FILENO)
                                 : open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (*fd < 0)
        return status_fail(STATUS_IO, "access_log %s: %s", file, strerror(errno));
    return STATUS_OK;
}

void access_log_flush(access_log *log)
{
    text_buffer *t = &log->lines;
    for (size_t done = 0; done < t->bytes;) {
        ssize_t n = write(log->fd, t->data + done, t->bytes - done);
        if (n <= 0)
            break; /* a full disk must not stop the server */
        done += (size_t)n;
    }
    text_buffer_reset(t, 4 * FLUSH_BYTES);
}

void access_log_dispose(access_log *log)
{
    text_buffer_dispose(&log->lines);
}

static void put_text(text_buffer *out, const char *key, access_text text, size_t bytes_max)
{
    text_buffer_put(out, key);
    text_write_json_string(out, text.data, text.bytes < bytes_max ? text.bytes : bytes_max);
}

static void put_span(text_buffer *out, const char *key, uint64_t from_ns, uint64_t to_ns)
{
    if (to_ns > from_ns && from_ns > 0)
        text_buffer_format(out, ",\"%s_us\":%llu", key,
                           (unsigned long long)((to_ns - from_ns) / 1000));
}

static void put_stages(text_buffer *out, const record_sample *s)
{
    const uint64_t *at = s->stage_ns;
    put_span(out, "parse", at[STAGE_ACCEPT], at[STAGE_PARSE]);
    put_span(out, "queue", at[STAGE_ADMIT], at[STAGE_QUEUE]);
    put_span(out, "batch", at[STAGE_QUEUE], at[STAGE_PLACE]);
    put_span(out, "execute", at[STAGE_PLACE], at[STAGE_EXECUTE]);
    text_buffer_format(out, ",\"rows\":%lld,\"batch_rows\":%lld", (long long)s->rows,
                       (long long)s->batch_rows);
}

void access_log_add(access_log *log, const access_entry *e, uint64_t now_ns)
{
    text_buffer *out = &log->lines;
    const record_sample *s = e->sample;
    uint64_t end_ns = s->stage_ns[STAGE_RESPOND] ? s->stage_ns[STAGE_RESPOND] : now_ns;
    uint64_t began_ms = (clock_wall_ns() - (now_ns - s->begin_ns)) / 1000000;
    text_buffer_format(out, "{\"time_ms\":%llu", (unsigned long long)began_ms);
    put_text(out, ",\"peer\":", e->peer, e->peer.bytes);
    put_text(out, ",\"method\":", e->method, METHOD_BYTES_MAX);
    put_text(out, ",\"path\":", e->path, PATH_BYTES_MAX);
    text_buffer_format(
        out, ",\"protocol\":\"%s\",\"code\":%d,\"request_bytes\":%zu,\"answer_bytes\":%zu",
        e->protocol, e->code, e->request_bytes, e->response_bytes);
    text_buffer_format(out, ",\"total_us\":%llu",
                       (unsigned long long)((end_ns - s->begin_ns) / 1000));
    if (e->is_inference)
        put_stages(out, s);
    if (e->trace.data != NULL)
        put_text(out, ",\"traceparent\":", e->trace, TRACE_BYTES_MAX);
    text_buffer_put(out, "}\n");
    if (out->bytes >= FLUSH_BYTES)
        access_log_flush(log);
}
