#include "server/protocol/head_check.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#define PORT_MAX 65535

typedef struct head_scan {
    head_facts *facts;
    int hosts, lengths, encodings;
} head_scan;

bool head_is_token_byte(unsigned char c) /* a bit for each */
{
    static const uint32_t bits[8] = {0x00000000, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff};
    return (bits[c / 32] >> (c % 32) & 1) != 0;
}

/* RFC 3986, section 3.2.2: what a name or an IPv4 address may have, '%' among it. */
static bool is_host_byte(unsigned char c)
{
    static const uint32_t bits[8] = {0x00000000, 0x2bff7ff2, 0x87fffffe, 0x47fffffe};
    return (bits[c / 32] >> (c % 32) & 1) != 0;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

#define EIGHT(byte) ((byte)*0x0101010101010101ull)

static bool is_control(unsigned char c)
{
    return (c < 0x20 && c != '\t') || c == 0x7f;
}

/* Control bytes other than tabs, eight at a time. */
static bool has_control(const char *at, size_t bytes)
{
    size_t i = 0;
    for (uint64_t v; bytes - i >= 8; i += 8) {
        memcpy(&v, at + i, 8);
        uint64_t deletes = v ^ EIGHT(0x7f);
        if ((((v - EIGHT(0x20)) & ~v) | ((deletes - EIGHT(1)) & ~deletes)) & EIGHT(0x80))
            for (size_t k = i; k < i + 8; k++)
                if (is_control((unsigned char)at[k]))
                    return true;
    }
    for (; i < bytes; i++)
        if (is_control((unsigned char)at[i]))
            return true;
    return false;
}

static bool is_ascii(const char *at, size_t bytes)
{
    uint64_t all = 0, v;
    size_t i = 0;
    for (; bytes - i >= 8; i += 8) {
        memcpy(&v, at + i, 8);
        all |= v;
    }
    for (; i < bytes; i++)
        all |= (unsigned char)at[i];
    return (all & EIGHT(0x80)) == 0;
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

static void trim(const char **at, size_t *bytes)
{
    while (*bytes > 0 && (**at == ' ' || **at == '\t'))
        (*at)++, (*bytes)--;
    while (*bytes > 0 && ((*at)[*bytes - 1] == ' ' || (*at)[*bytes - 1] == '\t'))
        (*bytes)--;
}

/* "[...]": how many bytes; 0: it is none. Which address it is does not matter here. */
static size_t ip_literal_bytes(const char *at, size_t bytes)
{
    size_t n = 1;
    while (n < bytes && (is_hex(at[n]) || at[n] == ':' || at[n] == '.'))
        n++;
    return n > 1 && n < bytes && at[n] == ']' ? n + 1 : 0;
}

static bool is_port(const char *at, size_t bytes)
{
    uint32_t port = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] < '0' || at[i] > '9' || port > PORT_MAX)
            return false;
        port = port * 10 + (uint32_t)(at[i] - '0');
    }
    return port <= PORT_MAX;
}

bool head_is_authority(const char *at, size_t bytes)
{
    size_t n = 0;
    if (bytes > 0 && at[0] == '[') {
        n = ip_literal_bytes(at, bytes);
    } else {
        for (; n < bytes && is_host_byte((unsigned char)at[n]); n++) {
            if (at[n] == '%' && (bytes - n < 3 || !is_hex(at[n + 1]) || !is_hex(at[n + 2])))
                return false;
        }
    }
    return n > 0 && (n == bytes || (at[n] == ':' && is_port(at + n + 1, bytes - n - 1)));
}

static bool lists(const char *at, size_t bytes, const char *word)
{
    for (const char *end = at + bytes; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *next = comma != NULL ? comma : end, *name = at;
        size_t n = (size_t)(next - at);
        trim(&name, &n);
        if (name_is(name, n, word))
            return true;
        at = next + 1;
    }
    return false;
}

static status check_length(const char *value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (value[i] < '0' || value[i] > '9')
            return refuse("Content-Length is not a number");
    }
    return bytes > 0 && bytes <= 19 ? STATUS_OK : refuse("Content-Length is not a number");
}

static status check_value(head_scan *s, const char *name, size_t name_bytes, const char *value,
                          size_t value_bytes)
{
    if (has_control(value, value_bytes))
        return refuse("a header has a control byte");
    trim(&value, &value_bytes);
    if (name_is(name, name_bytes, "host")) {
        if (s->hosts++ > 0)
            return refuse("it has Host twice");
        if (value_bytes > 0 && !head_is_authority(value, value_bytes))
            return refuse("Host is not a host");
    } else if (name_is(name, name_bytes, "content-length")) {
        if (s->lengths++ > 0)
            return refuse("it has Content-Length twice");
        s->facts->has_body = true;
        return check_length(value, value_bytes);
    } else if (name_is(name, name_bytes, "transfer-encoding")) {
        if (s->encodings++ > 0)
            return refuse("it has Transfer-Encoding twice");
        if (!name_is(value, value_bytes, "chunked"))
            return refuse("Transfer-Encoding is not chunked");
        s->facts->has_body = true;
    } else if (name_is(name, name_bytes, "expect")) {
        s->facts->has_expect = true;
    } else if (name_is(name, name_bytes, "connection")) {
        s->facts->has_close |= lists(value, value_bytes, "close");
    }
    return STATUS_OK;
}

/* RFC 9112, section 3.2. */
static status check_target(head_facts *facts, const char *method, size_t method_bytes,
                           const char *target, size_t bytes)
{
    if (name_is(method, method_bytes, "connect"))
        return status_fail(STATUS_UNSUPPORTED, "CONNECT: this is no proxy");
    if (!is_ascii(target, bytes) || memchr(target, '#', bytes) != NULL)
        return refuse("its target");
    if (bytes == 0 || target[0] == '/')
        return STATUS_OK; /* an empty one is answered like any other path */
    if (bytes == 1 && target[0] == '*' && name_is(method, method_bytes, "options"))
        return STATUS_OK;
    size_t scheme = bytes > 7 && strncasecmp(target, "http://", 7) == 0    ? 7
                    : bytes > 8 && strncasecmp(target, "https://", 8) == 0 ? 8
                                                                           : 0;
    size_t n = scheme;
    while (n < bytes && target[n] != '/' && target[n] != '?')
        n++;
    if (scheme == 0 || !head_is_authority(target + scheme, n - scheme))
        return refuse("its target");
    facts->authority_bytes = n;
    return STATUS_OK;
}

static status check_request_line(head_facts *facts, const char *line, size_t bytes)
{
    if (has_control(line, bytes) || memchr(line, '\t', bytes) != NULL)
        return refuse("the request line has a control byte");
    if (bytes < 8)
        return refuse("its request line");
    const char *version = line + bytes - 8;
    if (memcmp(version, "HTTP/1.", 7) != 0 || (version[7] != '0' && version[7] != '1'))
        return refuse("its version");
    facts->is_old = version[7] == '0';
    size_t method = 0;
    while (head_is_token_byte((unsigned char)line[method]))
        method++;
    if (method == 0 || line[method] != ' ' || line + method + 1 >= version || version[-1] != ' ')
        return refuse("its request line");
    const char *target = line + method + 1;
    size_t target_bytes = (size_t)(version - 1 - target);
    if (memchr(target, ' ', target_bytes) != NULL)
        return refuse("its request line");
    return check_target(facts, line, method, target, target_bytes);
}

static status check_header(head_scan *s, const char *line, size_t bytes)
{
    if (line[0] == ' ' || line[0] == '\t')
        return refuse("a header is folded");
    size_t n = 0;
    while (n < bytes && head_is_token_byte((unsigned char)line[n]))
        n++;
    if (n == 0 || n == bytes || line[n] != ':')
        return refuse("a header name is not a token");
    return check_value(s, line, n, line + n + 1, bytes - n - 1);
}

status head_check(const char *head, size_t bytes, head_facts *facts)
{
    head_scan scan = {.facts = facts};
    const char *at = head, *end = head + bytes;
    *facts = (head_facts){0};
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
        status failure = line == 0 ? check_request_line(facts, at, n) : check_header(&scan, at, n);
        if (failure)
            return failure;
        at = newline + 1;
    }
    if (scan.encodings > 0 && scan.lengths > 0)
        return refuse("it has Content-Length and Transfer-Encoding");
    if (scan.encodings > 0 && facts->is_old)
        return refuse("HTTP/1.0 has no Transfer-Encoding");
    if (scan.hosts == 0 && !facts->is_old)
        return refuse("it has no Host");
    return STATUS_OK;
}
