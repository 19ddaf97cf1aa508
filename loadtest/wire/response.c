#include "loadtest/wire/response.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void response_reset(response *a)
{
    a->code = 0;
    a->body_bytes = a->header_json_bytes = 0;
    a->compressed = false;
    a->timing_bytes = 0;
    text_buffer_clear(&a->body);
}

bool response_number(const char *text, size_t bytes, uint64_t *value)
{
    if (bytes == 0 || bytes > 18)
        return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        sum = sum * 10 + (uint64_t)(text[i] - '0');
    }
    *value = sum;
    return true;
}

static bool is(const char *name, size_t name_bytes, const char *wanted, size_t wanted_bytes)
{
    return name_bytes == wanted_bytes && strncasecmp(name, wanted, wanted_bytes) == 0;
}
#define IS(wanted) is(name, name_bytes, wanted, sizeof(wanted) - 1)

void response_header(response *a, const char *name, size_t name_bytes, const char *value,
                     size_t value_bytes)
{
    if (IS("server-timing")) {
        size_t room = sizeof a->timing - a->timing_bytes;
        if (a->timing_bytes != 0 && room > 1) {
            a->timing[a->timing_bytes++] = ',';
            room--;
        }
        size_t bytes = value_bytes < room ? value_bytes : room;
        memcpy(a->timing + a->timing_bytes, value, bytes);
        a->timing_bytes = (uint16_t)(a->timing_bytes + bytes);
    } else if (IS("inference-header-content-length")) {
        response_number(value, value_bytes, &a->header_json_bytes);
    } else if (IS("content-encoding")) {
        a->compressed = !is(value, value_bytes, "identity", 8);
    }
}

void response_body(response *a, const void *data, size_t bytes)
{
    a->body_bytes += bytes;
    if (a->keep_body) {
        text_buffer_append(&a->body, data, bytes);
    } else if (a->code >= 300 && a->body.bytes < RESPONSE_ERROR_BYTES_MAX) {
        size_t room = RESPONSE_ERROR_BYTES_MAX - a->body.bytes;
        text_buffer_append(&a->body, data, bytes < room ? bytes : room);
    }
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

/* A token of RFC 9110, as far as names in Server-Timing go. */
static const char *token_end(const char *at, const char *end)
{
    while (at<end && * at> ' ' && strchr(",;=\"", *at) == NULL)
        at++;
    return at;
}

/* A non-negative decimal number of milliseconds. */
static bool milliseconds(const char *at, const char *end, uint64_t *ns)
{
    char copy[32];
    size_t bytes = (size_t)(end - at);
    if (bytes == 0 || bytes >= sizeof copy)
        return false;
    memcpy(copy, at, bytes);
    copy[bytes] = 0;
    char *stop;
    double value = strtod(copy, &stop);
    if (*stop != 0 || !(value >= 0) || value > 1e9)
        return false;
    *ns = (uint64_t)(value * 1e6 + 0.5);
    return true;
}

void server_timing_parse(const char *text, size_t bytes, server_timing_each *each, void *context)
{
    const char *at = text, *end = text + bytes;
    while (at < end) {
        at = skip_space(at, end);
        const char *stop = token_end(at, end);
        char name[SERVER_TIMING_NAME_BYTES_MAX];
        size_t name_bytes = (size_t)(stop - at);
        if (name_bytes >= sizeof name)
            name_bytes = sizeof name - 1;
        memcpy(name, at, name_bytes);
        name[name_bytes] = 0;
        bool found = false;
        uint64_t duration_ns = 0;
        at = skip_space(stop, end);
        while (at < end && *at == ';') {
            const char *key = skip_space(at + 1, end);
            stop = token_end(key, end);
            bool is_duration = is(key, (size_t)(stop - key), "dur", 3);
            at = skip_space(stop, end);
            if (at == end || *at != '=')
                continue;
            const char *value = skip_space(at + 1, end), *value_end;
            if (value < end && *value == '"') {
                value++;
                for (value_end = value; value_end < end && *value_end != '"'; value_end++)
                    if (*value_end == '\\' && value_end + 1 < end)
                        value_end++;
                at = value_end < end ? value_end + 1 : end;
            } else {
                at = value_end = token_end(value, end);
            }
            if (is_duration && !found) /* the first of equal names counts */
                found = milliseconds(value, value_end, &duration_ns);
            at = skip_space(at, end);
        }
        if (found && name_bytes != 0)
            each(context, name, duration_ns);
        while (at < end && *at != ',') /* whatever is malformed, up to the next metric */
            at++;
        at += at < end;
    }
}
