#include "loadtest/wire/http1_parse.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

void http1_parser_reset(http1_parser *p)
{
    p->stage = HTTP1_HEAD;
    p->keep_alive = true;
    p->started = false;
    p->left = 0;
    text_buffer_clear(&p->line);
}

void http1_parser_dispose(http1_parser *p)
{
    text_buffer_dispose(&p->line);
}

static bool value_is(const char *value, size_t bytes, const char *wanted)
{
    return bytes == strlen(wanted) && strncasecmp(value, wanted, bytes) == 0;
}

/* Whether a comma-separated list has `wanted` as one of its members. */
static bool list_has(const char *value, size_t bytes, const char *wanted)
{
    const char *end = value + bytes;
    while (value < end) {
        const char *comma = memchr(value, ',', (size_t)(end - value));
        const char *stop = comma ? comma : end, *from = value;
        while (from < stop && (*from == ' ' || *from == '\t'))
            from++;
        while (stop > from && (stop[-1] == ' ' || stop[-1] == '\t'))
            stop--;
        if (value_is(from, (size_t)(stop - from), wanted))
            return true;
        value = comma ? comma + 1 : end;
    }
    return false;
}

typedef struct framing {
    bool has_length, chunked, coded;
    uint64_t length;
} framing;

static status read_status_line(http1_parser *p, response *a, const char *line, size_t bytes)
{
    if (bytes < 12 || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' ||
        (bytes > 12 && line[12] != ' '))
        return status_fail(STATUS_CORRUPT, "not an HTTP/1.1 response: \"%.*s\"",
                           (int)(bytes < 40 ? bytes : 40), line);
    uint64_t code;
    if (!response_number(line + 9, 3, &code) || code < 100)
        return status_fail(STATUS_CORRUPT, "malformed HTTP status");
    a->code = (int)code;
    p->keep_alive = line[7] == '1';
    return STATUS_OK;
}

static status read_field(http1_parser *p, response *a, framing *f, const char *line, size_t bytes)
{
    const char *colon = memchr(line, ':', bytes);
    if (colon == NULL || colon == line)
        return status_fail(STATUS_CORRUPT, "header line without a name: \"%.*s\"",
                           (int)(bytes < 40 ? bytes : 40), line);
    size_t name_bytes = (size_t)(colon - line);
    const char *value = colon + 1, *end = line + bytes;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    size_t value_bytes = (size_t)(end - value);
    if (value_is(line, name_bytes, "content-length")) {
        uint64_t length;
        if (!response_number(value, value_bytes, &length) || (f->has_length && f->length != length))
            return status_fail(STATUS_CORRUPT, "malformed Content-Length");
        f->has_length = true;
        f->length = length;
    } else if (value_is(line, name_bytes, "transfer-encoding")) {
        f->coded = true;
        f->chunked = list_has(value, value_bytes, "chunked");
    } else if (value_is(line, name_bytes, "connection")) {
        if (list_has(value, value_bytes, "close"))
            p->keep_alive = false;
        else if (list_has(value, value_bytes, "keep-alive"))
            p->keep_alive = true;
    } else {
        response_header(a, line, name_bytes, value, value_bytes);
    }
    return STATUS_OK;
}

/* `head` ends with an empty line. */
static status read_head(http1_parser *p, response *a, const char *head, size_t bytes)
{
    framing f = {0};
    const char *at = head, *end = head + bytes;
    for (bool first = true; at < end; first = false) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        assert(newline != NULL);
        size_t line_bytes = (size_t)(newline - at);
        if (line_bytes != 0 && at[line_bytes - 1] == '\r')
            line_bytes--;
        if (line_bytes == 0)
            break;
        status s =
            first ? read_status_line(p, a, at, line_bytes) : read_field(p, a, &f, at, line_bytes);
        if (s)
            return s;
        at = newline + 1;
    }
    if (a->code == 0)
        return status_fail(STATUS_CORRUPT, "an empty line where the HTTP status belongs");
    if (a->code == 101)
        return status_fail(STATUS_CORRUPT, "the server switched protocols without being asked");
    if (a->code < 200) { /* 100 Continue and its kind: the real one follows */
        response_reset(a);
        p->stage = HTTP1_HEAD;
    } else if (p->no_body || a->code == 204 || a->code == 304) {
        p->stage = HTTP1_DONE;
    } else if (f.chunked) {
        p->stage = HTTP1_CHUNK_SIZE;
    } else if (f.coded || !f.has_length) {
        p->stage = HTTP1_BODY_TO_END;
        p->keep_alive = false;
    } else {
        p->left = f.length;
        p->stage = f.length != 0 ? HTTP1_BODY : HTTP1_DONE;
    }
    return STATUS_OK;
}

/* The bytes up to and with the empty line that ends a head, or 0 if it is not there. Looks from
 * `from` on, which is a line's start or inside a line. */
static size_t head_bytes(const char *data, size_t bytes, size_t from)
{
    const char *at = data + from, *end = data + bytes;
    while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at++;
        if (at < end && *at == '\n')
            return (size_t)(at + 1 - data);
        if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
            return (size_t)(at + 2 - data);
    }
    return 0;
}

static status take_head(http1_parser *p, response *a, const char *data, size_t bytes, size_t *used)
{
    if (p->line.bytes == 0) {
        /* The usual case: a whole head in one piece, read where it lies. */
        size_t whole = head_bytes(data, bytes, 0);
        if (whole != 0) {
            *used = whole;
            return read_head(p, a, data, whole);
        }
    }
    size_t before = p->line.bytes;
    text_buffer_append(&p->line, data, bytes);
    size_t from = before > 3 ? before - 3 : 0;
    size_t whole = head_bytes(p->line.data, p->line.bytes, from);
    if (whole == 0) {
        if (p->line.bytes > HTTP1_HEAD_BYTES_MAX)
            return status_fail(STATUS_CORRUPT, "a response head of over %d bytes",
                               HTTP1_HEAD_BYTES_MAX);
        *used = bytes;
        return STATUS_OK;
    }
    *used = whole - before;
    status s = read_head(p, a, p->line.data, whole);
    text_buffer_clear(&p->line);
    return s;
}

/* A line of chunk framing. `*complete` with the line in p->line, without its end. */
static status take_line(http1_parser *p, const char *data, size_t bytes, size_t *used,
                        bool *complete)
{
    const char *newline = memchr(data, '\n', bytes);
    size_t part = newline ? (size_t)(newline - data) + 1 : bytes;
    if (p->line.bytes + part > HTTP1_HEAD_BYTES_MAX)
        return status_fail(STATUS_CORRUPT, "a chunk line of over %d bytes", HTTP1_HEAD_BYTES_MAX);
    text_buffer_append(&p->line, data, part);
    *used = part;
    *complete = newline != NULL;
    if (newline != NULL) {
        p->line.bytes--;
        if (p->line.bytes != 0 && p->line.data[p->line.bytes - 1] == '\r')
            p->line.bytes--;
    }
    return STATUS_OK;
}

static status read_chunk_size(http1_parser *p)
{
    uint64_t size = 0;
    size_t i = 0;
    for (; i < p->line.bytes; i++) {
        char c = p->line.data[i];
        int digit = c >= '0' && c <= '9'                 ? c - '0'
                    : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                         : -1;
        if (digit < 0)
            break;
        if (size >> 48)
            return status_fail(STATUS_CORRUPT, "a chunk size that is too large");
        size = size << 4 | (uint64_t)digit;
    }
    if (i == 0 || (i < p->line.bytes && strchr("; \t", p->line.data[i]) == NULL))
        return status_fail(STATUS_CORRUPT, "malformed chunk size");
    p->left = size;
    p->stage = size != 0 ? HTTP1_CHUNK_DATA : HTTP1_TRAILER;
    return STATUS_OK;
}

static status take_chunk_line(http1_parser *p, const char *data, size_t bytes, size_t *used)
{
    bool complete = false;
    status s = take_line(p, data, bytes, used, &complete);
    if (s || !complete)
        return s;
    if (p->stage == HTTP1_CHUNK_SIZE)
        s = read_chunk_size(p);
    else if (p->stage == HTTP1_TRAILER)
        p->stage = p->line.bytes == 0 ? HTTP1_DONE : HTTP1_TRAILER;
    else if (p->line.bytes != 0)
        s = status_fail(STATUS_CORRUPT, "a chunk is longer than its size");
    else
        p->stage = HTTP1_CHUNK_SIZE;
    text_buffer_clear(&p->line);
    return s;
}

status http1_parse(http1_parser *p, response *a, const char *data, size_t bytes, size_t *used)
{
    size_t total = 0;
    if (bytes != 0)
        p->started = true;
    while (total < bytes && p->stage != HTTP1_DONE) {
        const char *at = data + total;
        size_t rest = bytes - total, part = 0;
        status s = STATUS_OK;
        switch (p->stage) {
        case HTTP1_HEAD:
            s = take_head(p, a, at, rest, &part);
            break;
        case HTTP1_BODY:
        case HTTP1_CHUNK_DATA:
            part = rest < p->left ? rest : (size_t)p->left;
            response_body(a, at, part);
            p->left -= part;
            if (p->left == 0)
                p->stage = p->stage == HTTP1_BODY ? HTTP1_DONE : HTTP1_CHUNK_END;
            break;
        case HTTP1_BODY_TO_END:
            part = rest;
            response_body(a, at, part);
            break;
        default:
            s = take_chunk_line(p, at, rest, &part);
        }
        if (s)
            return s;
        total += part;
    }
    *used = total;
    return STATUS_OK;
}

status http1_parse_end(http1_parser *p)
{
    if (p->stage == HTTP1_BODY_TO_END || p->stage == HTTP1_DONE) {
        p->stage = HTTP1_DONE;
        return STATUS_OK;
    }
    return status_fail(STATUS_CORRUPT, p->started ? "the connection closed during a response"
                                                  : "the connection closed before a response");
}
