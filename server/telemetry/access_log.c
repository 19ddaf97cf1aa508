#include "server/telemetry/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/protocol/text/text_write.h"

#define FLUSH_BYTES 65536
#define PATH_BYTES_MAX 1024
#define METHOD_BYTES_MAX 32
#define TRACE_BYTES_MAX 128
#define ID_BYTES_MAX 256
/* Of a traceparent (W3C Trace Context, section 3.2): after the version, so many hex digits. */
#define TRACE_ID_FROM 3
#define TRACE_ID_BYTES 32

static bool has_slow_reader(int fd)
{
    struct stat about;
    return fstat(fd, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode));
}

static bool is_socket(int fd)
{
    struct stat about;
    return fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode);
}

/* O_NONBLOCK belongs to what was opened, and others write to the same standard output: of a pipe it
 * is opened once more. A socket, such as the journal's, is sent to without waiting. */
static int open_standard_output(void)
{
    int fd = has_slow_reader(STDOUT_FILENO)
                 ? open("/proc/self/fd/1", O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC)
                 : -1;
    return fd >= 0 ? fd : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
}

static int open_file(const char *file)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd >= 0 && has_slow_reader(fd))
        fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK);
    return fd;
}

status access_log_open(const char *file, int *fd)
{
    *fd = -1;
    if (file == NULL)
        return STATUS_OK;
    *fd = strcmp(file, "-") == 0 ? open_standard_output() : open_file(file);
    if (*fd < 0)
        return status_fail(STATUS_IO, "access_log %s: %s", file, strerror(errno));
    return STATUS_OK;
}

void access_log_init(access_log *log, int fd, _Atomic uint64_t *dropped)
{
    *log = (access_log){.fd = fd,
                        .is_pipe = fd >= 0 && has_slow_reader(fd),
                        .is_socket = fd >= 0 && is_socket(fd),
                        .is_terminal = fd >= 0 && isatty(fd),
                        .flush_bytes = FLUSH_BYTES,
                        .dropped = dropped};
}

static void count_dropped(access_log *log, uint64_t lines)
{
    if (log->dropped != NULL && lines > 0)
        atomic_fetch_add_explicit(log->dropped, lines, memory_order_relaxed);
}

static uint64_t count_lines(const char *data, size_t bytes)
{
    uint64_t count = 0;
    for (const char *at = data, *end = data + bytes;
         (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

/* What is written at once: to a pipe whole lines, which do not mix with those of other loops. */
static size_t piece_bytes(const access_log *log, const char *data, size_t bytes)
{
    if (!log->is_pipe || bytes <= PIPE_BUF)
        return bytes;
    const char *end = memrchr(data, '\n', PIPE_BUF);
    if (end == NULL)
        end = memchr(data, '\n', bytes);
    return end != NULL ? (size_t)(end - data) + 1 : bytes;
}

void access_log_flush(access_log *log)
{
    text_buffer *t = &log->lines;
    size_t done = 0;
    ssize_t n = 0;
    while (done < t->bytes) {
        const char *piece = t->data + done;
        size_t bytes = piece_bytes(log, piece, t->bytes - done);
        n = log->is_socket ? send(log->fd, piece, bytes, MSG_DONTWAIT | MSG_NOSIGNAL)
                           : write(log->fd, piece, bytes);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    size_t left = t->bytes - done;
    if (left > 0 && !(n < 0 && (errno == EAGAIN || errno == EINTR))) {
        count_dropped(log,
                      count_lines(t->data + done, left)); /* a full disk, a reader that is gone */
        left = 0;
    }
    if (left > 0)
        memmove(t->data, t->data + done, left);
    else
        text_buffer_reset(t, 4 * FLUSH_BYTES);
    t->bytes = left;
    log->flush_bytes = left + FLUSH_BYTES;
}

void access_log_dispose(access_log *log)
{
    text_buffer_dispose(&log->lines);
}

static bool is_hex(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((text[i] < '0' || text[i] > '9') && (text[i] < 'a' || text[i] > 'f'))
            return false;
    return true;
}

/* The id of the trace that the request belongs to, or nothing. */
static access_text trace_id_of(access_text trace)
{
    size_t end = TRACE_ID_FROM + TRACE_ID_BYTES;
    if (trace.data == NULL || trace.bytes <= end || trace.data[TRACE_ID_FROM - 1] != '-' ||
        trace.data[end] != '-' || !is_hex(trace.data + TRACE_ID_FROM, TRACE_ID_BYTES))
        return (access_text){NULL, 0};
    return (access_text){trace.data + TRACE_ID_FROM, TRACE_ID_BYTES};
}

/* What a request spent its time with, in the order of the line. */
typedef struct span {
    const char *name;
    uint64_t from_ns, to_ns;
} span;
#define SPANS 5

static void find_spans(const record_sample *s, span out[SPANS])
{
    const uint64_t *at = s->stage_ns;
    out[0] = (span){"parse", at[STAGE_ACCEPT], at[STAGE_PARSE]};
    out[1] = (span){"tokenize", at[STAGE_TOKENIZE] > 0 ? at[STAGE_PARSE] : 0, at[STAGE_TOKENIZE]};
    out[2] = (span){"queue", at[STAGE_ADMIT], at[STAGE_QUEUE]};
    out[3] = (span){"batch", at[STAGE_QUEUE], at[STAGE_PLACE]};
    out[4] = (span){"execute", at[STAGE_PLACE], at[STAGE_EXECUTE]};
}

static void put_text(text_buffer *out, const char *key, access_text text, size_t bytes_max)
{
    if (text.data == NULL)
        return;
    text_buffer_format(out, ",\"%s\":", key);
    text_write_json_string(out, text.data, text.bytes < bytes_max ? text.bytes : bytes_max);
}

static void put_inference(text_buffer *out, const record_sample *s)
{
    span spans[SPANS];
    find_spans(s, spans);
    for (int i = 0; i < SPANS; i++)
        if (spans[i].to_ns > spans[i].from_ns && spans[i].from_ns > 0)
            text_buffer_format(out, ",\"%s_us\":%llu", spans[i].name,
                               (unsigned long long)((spans[i].to_ns - spans[i].from_ns) / 1000));
    text_buffer_format(out, ",\"rows\":%lld,\"tokens\":%lld,\"batch_rows\":%lld",
                       (long long)s->rows, (long long)s->tokens, (long long)s->batch_rows);
}

static access_text text_of(const char *string)
{
    return (access_text){string, string != NULL ? strlen(string) : 0};
}

static const char *reason_of(const access_entry *e)
{
    const char *reason = record_reason_name(record_reason_of(e->sample, e->is_inference));
    return e->sample->code >= 400 && reason[0] != 0 ? reason : NULL;
}

static void write_json(text_buffer *out, const access_entry *e, uint64_t began_ms,
                       uint64_t total_us)
{
    text_buffer_format(out, "{\"time_ms\":%llu", (unsigned long long)began_ms);
    put_text(out, "peer", e->peer, e->peer.bytes);
    put_text(out, "method", e->method, METHOD_BYTES_MAX);
    put_text(out, "path", e->path, PATH_BYTES_MAX);
    text_buffer_format(
        out, ",\"protocol\":\"%s\",\"code\":%d,\"request_bytes\":%zu,\"answer_bytes\":%zu",
        e->protocol, e->code, e->request_bytes, e->response_bytes);
    text_buffer_format(out, ",\"total_us\":%llu", (unsigned long long)total_us);
    put_text(out, "reason", text_of(reason_of(e)), SIZE_MAX);
    put_text(out, "model", e->model, e->model.bytes);
    if (e->model.data != NULL)
        text_buffer_format(out, ",\"version\":%lld", (long long)e->version);
    put_text(out, "tenant", text_of(e->tenant), SIZE_MAX);
    put_text(out, "id", e->id, ID_BYTES_MAX);
    if (e->is_inference)
        put_inference(out, e->sample);
    put_text(out, "trace_id", trace_id_of(e->trace), SIZE_MAX);
    put_text(out, "traceparent", e->trace, TRACE_BYTES_MAX);
    text_buffer_put(out, "}\n");
}

/* For a terminal: what would move its cursor, or is not ASCII, is a question mark. */
static void put_plain(text_buffer *out, const char *before, access_text text, size_t bytes_max)
{
    if (text.data == NULL)
        return;
    text_buffer_put(out, before);
    size_t bytes = text.bytes < bytes_max ? text.bytes : bytes_max;
    char *to = text_buffer_reserve(out, bytes);
    for (size_t i = 0; to != NULL && i < bytes; i++)
        to[i] = (char)(text.data[i] > ' ' && text.data[i] < 127 ? text.data[i] : '?');
    out->bytes += to != NULL ? bytes : 0;
}

static void write_plain(text_buffer *out, const access_entry *e, uint64_t began_ms,
                        uint64_t total_us)
{
    time_t seconds = (time_t)(began_ms / 1000);
    struct tm at;
    char date[32];
    strftime(date, sizeof date, "%H:%M:%S", gmtime_r(&seconds, &at));
    text_buffer_format(out, "%s.%03d %d", date, (int)(began_ms % 1000), e->code);
    put_plain(out, " ", e->method, METHOD_BYTES_MAX);
    put_plain(out, " ", e->path, PATH_BYTES_MAX);
    text_buffer_format(out, " %.3f ms", (double)total_us / 1000);
    put_plain(out, " ", text_of(reason_of(e)), SIZE_MAX);
    put_plain(out, " model=", e->model, e->model.bytes);
    if (e->model.data != NULL)
        text_buffer_format(out, "/%lld", (long long)e->version);
    if (e->is_inference) {
        span spans[SPANS];
        find_spans(e->sample, spans);
        text_buffer_format(out, " rows=%lld", (long long)e->sample->rows);
        if (e->sample->tokens > 0)
            text_buffer_format(out, " tokens=%lld", (long long)e->sample->tokens);
        for (int i = 0; i < SPANS; i++)
            if (spans[i].to_ns > spans[i].from_ns && spans[i].from_ns > 0)
                text_buffer_format(out, " %s=%.3f", spans[i].name,
                                   (double)(spans[i].to_ns - spans[i].from_ns) / 1e6);
    }
    put_plain(out, " tenant=", text_of(e->tenant), SIZE_MAX);
    put_plain(out, " id=", e->id, ID_BYTES_MAX);
    put_plain(out, " trace=", trace_id_of(e->trace), SIZE_MAX);
    put_plain(out, " from ", e->peer, e->peer.bytes);
    text_buffer_format(out, " %s\n", e->protocol);
}

void access_log_add(access_log *log, const access_entry *e, uint64_t now_ns)
{
    text_buffer *out = &log->lines;
    const record_sample *s = e->sample;
    size_t before = out->bytes;
    if (before > ACCESS_LOG_BYTES_MAX) {
        count_dropped(log, 1);
        return;
    }
    uint64_t end_ns = s->stage_ns[STAGE_RESPOND] ? s->stage_ns[STAGE_RESPOND] : now_ns;
    uint64_t began_ms = (clock_wall_ns() - (now_ns - s->begin_ns)) / 1000000;
    uint64_t total_us = (end_ns - s->begin_ns) / 1000;
    (log->is_terminal ? write_plain : write_json)(out, e, began_ms, total_us);
    if (out->is_broken) {
        out->bytes = before;
        out->is_broken = false;
        count_dropped(log, 1);
    }
    if (out->bytes >= log->flush_bytes)
        access_log_flush(log);
}
