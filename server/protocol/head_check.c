#include "server/protocol/head_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

typedef struct head_facts {
    int hosts, lengths, encodings;
    bool is_old; /* HTTP/1.0 */
} head_facts;

/* RFC 9110, section 5.6.2: tchar, a bit for each byte. */
static bool is_token_byte(unsigned char c)
{
    static const uint32_t bits[8] = {0x00000000, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff};
    return (bits[c / 32] >> (c % 32) & 1) != 0;
}

static status refuse(const char *why)
{
    return status_fail(STATUS_INVALID_ARGUMENT, "malformed request head: %s", why);
}

/* `name` is a literal. */
static inline bool name_is(const char *at, size_t bytes, const char *name)
{
    return bytes == strlen(name) && strncasecmp(at, name, bytes) == 0;
}

static status check_value(head_facts *facts, const char *name, size_t name_bytes, const char *value,
                          size_t value_bytes)
{
    for (size_t i = 0; i < value_bytes; i++) {
        unsigned char c = (unsigned char)value[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return refuse("a header has a control byte");
    }
    while (value_bytes > 0 && (*value == ' ' || *value == '\t'))
        value++, value_bytes--;
    while (value_bytes > 0 && (value[value_bytes - 1] == ' ' || value[value_bytes - 1] == '\t'))
        value_bytes--;
    if (name_is(name, name_bytes, "host")) {
        if (facts->hosts++ > 0)
            return refuse("it has Host twice");
    } else if (name_is(name, name_bytes, "content-length")) {
        if (facts->lengths++ > 0)
            return refuse("it has Content-Length twice");
        for (size_t i = 0; i < value_bytes; i++) {
            if (value[i] < '0' || value[i] > '9')
                return refuse("Content-Length is not a number");
        }
        if (value_bytes == 0 || value_bytes > 19)
            return refuse("Content-Length is not a number");
    } else if (name_is(name, name_bytes, "transfer-encoding")) {
        if (facts->encodings++ > 0)
            return refuse("it has Transfer-Encoding twice");
        if (!name_is(value, value_bytes, "chunked"))
            return refuse("Transfer-Encoding is not chunked");
    }
    return STATUS_OK;
}

static status check_request_line(head_facts *facts, const char *line, size_t bytes)
{
    int spaces = 0;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)line[i];
        if (c < 0x20 || c == 0x7f)
            return refuse("the request line has a control byte");
        spaces += c == ' ';
    }
    if (spaces != 2 || bytes < 8)
        return refuse("its request line");
    const char *version = line + bytes - 8;
    if (memcmp(version, "HTTP/1.", 7) != 0 || (version[7] != '0' && version[7] != '1'))
        return refuse("its version");
    facts->is_old = version[7] == '0';
    return STATUS_OK;
}

static status check_header(head_facts *facts, const char *line, size_t bytes)
{
    if (line[0] == ' ' || line[0] == '\t')
        return refuse("a header is folded");
    size_t n = 0;
    while (n < bytes && is_token_byte((unsigned char)line[n]))
        n++;
    if (n == 0 || n == bytes || line[n] != ':')
        return refuse("a header name is not a token");
    return check_value(facts, line, n, line + n + 1, bytes - n - 1);
}

status head_check(const char *head, size_t bytes)
{
    head_facts facts = {0};
    const char *at = head, *end = head + bytes;
    /* RFC 9112, section 2.2: empty lines before the request line are to be skipped. */
    while (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
        at += 2;
    for (int line = 0;; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL)
            return refuse("it does not end");
        if (newline == at || newline[-1] != '\r')
            return refuse("a line ends in LF alone");
        size_t n = (size_t)(newline - 1 - at);
        if (n == 0)
            break;
        status failure =
            line == 0 ? check_request_line(&facts, at, n) : check_header(&facts, at, n);
        if (failure)
            return failure;
        at = newline + 1;
    }
    if (facts.encodings > 0 && facts.lengths > 0)
        return refuse("it has Content-Length and Transfer-Encoding");
    if (facts.encodings > 0 && facts.is_old)
        return refuse("HTTP/1.0 has no Transfer-Encoding");
    if (facts.hosts == 0 && !facts.is_old)
        return refuse("it has no Host");
    return STATUS_OK;
}
