#include "server/protocol/rows/lines.h"

#include <string.h>

typedef struct csv {
    const char *at, *end;
    char *out;
    int line; /* from 1 */
} csv;

static char *put(char *out, const char *text)
{
    size_t n = strlen(text);
    memcpy(out, text, n);
    return out + n;
}

static bool ends_line(const csv *c)
{
    return c->at == c->end || *c->at == '\n' ||
           (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n');
}

static status put_character(csv *c, char character)
{
    if ((unsigned char)character < ' ')
        return status_fail(STATUS_INVALID_ARGUMENT, "CSV line %d: a control character in a string",
                           c->line);
    if (character == '"' || character == '\\')
        *c->out++ = '\\';
    *c->out++ = character;
    return STATUS_OK;
}

/* "a ""quoted"" field" */
static status read_quoted(csv *c)
{
    status failure = STATUS_OK;
    c->at++;
    *c->out++ = '"';
    while (!failure && c->at < c->end) {
        if (*c->at == '"' && (c->at + 1 == c->end || c->at[1] != '"'))
            break;
        c->at += *c->at == '"';
        failure = put_character(c, *c->at++);
    }
    if (!failure && c->at == c->end)
        return status_fail(STATUS_INVALID_ARGUMENT, "CSV line %d: a quoted field does not end",
                           c->line);
    c->at++;
    *c->out++ = '"';
    return failure;
}

static status read_plain(csv *c, bool is_string)
{
    status failure = STATUS_OK;
    if (is_string)
        *c->out++ = '"';
    for (; !failure && !ends_line(c) && *c->at != ','; c->at++) {
        if (is_string)
            failure = put_character(c, *c->at);
        else
            *c->out++ = *c->at;
    }
    if (is_string)
        *c->out++ = '"';
    return failure;
}

static status read_field(csv *c, bool *is_string)
{
    while (c->at < c->end && *c->at == ' ')
        c->at++;
    char first = ends_line(c) ? ',' : *c->at;
    *is_string = first != '-' && first != ',' && (first < '0' || first > '9');
    return first == '"' ? read_quoted(c) : read_plain(c, *is_string);
}

static status read_line(csv *c)
{
    char *from = c->out++; /* the bracket, if it is an array */
    int fields = 0;
    bool is_string;
    for (;;) {
        status failure = read_field(c, &is_string);
        if (failure)
            return failure;
        fields++;
        while (c->at < c->end && *c->at == ' ')
            c->at++;
        if (ends_line(c))
            break;
        if (*c->at != ',')
            return status_fail(STATUS_INVALID_ARGUMENT, "CSV line %d: expected a comma", c->line);
        c->at++;
        *c->out++ = ',';
    }
    bool is_array = fields > 1 || !is_string;
    *from = is_array ? '[' : ' ';
    if (is_array)
        *c->out++ = ']';
    return STATUS_OK;
}

static void end_line(csv *c)
{
    c->at += c->at < c->end && *c->at == '\r';
    c->at += c->at < c->end;
    c->line++;
}

static status read_csv(csv *c)
{
    status failure = STATUS_OK;
    bool is_first = true;
    for (; !failure && c->at < c->end; end_line(c)) {
        if (ends_line(c))
            continue;
        if (!is_first)
            *c->out++ = ',';
        is_first = false;
        failure = read_line(c);
    }
    return failure;
}

static void read_json(csv *c)
{
    bool is_first = true;
    while (c->at < c->end) {
        const char *line = c->at, *stop = memchr(line, '\n', (size_t)(c->end - line));
        size_t bytes = (size_t)((stop != NULL ? stop : c->end) - line);
        c->at = stop != NULL ? stop + 1 : c->end;
        while (bytes > 0 && (line[bytes - 1] == '\r' || line[bytes - 1] == ' '))
            bytes--;
        if (bytes == 0)
            continue;
        if (!is_first)
            *c->out++ = ',';
        is_first = false;
        memcpy(c->out, line, bytes);
        c->out += bytes;
    }
}

status lines_to_instances(bool is_csv, const char *text, size_t bytes, char *out, size_t *out_bytes)
{
    csv c = {.at = text, .end = text + bytes, .out = put(out, "{\"instances\":["), .line = 1};
    status failure = STATUS_OK;
    if (is_csv)
        failure = read_csv(&c);
    else
        read_json(&c);
    if (!failure)
        *out_bytes = (size_t)(put(c.out, "]}") - out);
    return failure;
}
