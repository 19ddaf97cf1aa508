/* The edge of HTTP/1: heads as libh2o reads them through our function, and the chunked coding. */
#include <stdlib.h>
#include <string.h>

#include "server/http1/overrides/decode_chunked.h"
#include "server/http1/overrides/parse_request.h"
#include "server/protocol/head_check.h"
#include "tests/fuzz/fuzz.h"

#define HEADERS_MAX 100
#define BODY_BYTES_MAX (1 << 20)

static bool on_refused(const char *head, int code, const char *why)
{
    (void)head;
    assert((code == 400 || code == 431 || code == 501) && why[0] != 0);
    return false;
}

/* Within the head, or the constant that stands for what it says in another form. */
static bool is_found(const char *text, size_t bytes, const char *head, size_t head_bytes,
                     const char *constant)
{
    bool is_constant = bytes == strlen(constant) && memcmp(text, constant, bytes) == 0;
    return bytes == 0 || is_constant || (text >= head && text + bytes <= head + head_bytes);
}

static int on_body(const char *head, const parse_request_header *headers, size_t count)
{
    (void)head;
    (void)headers;
    assert(count > 0);
    return 0;
}

/* Our function on the first `bytes` bytes of a head, which it may change. */
static int parse(char *head, size_t bytes, const uint8_t *data)
{
    const char *method, *path;
    size_t method_bytes, path_bytes, count = HEADERS_MAX;
    int version;
    parse_request_header headers[HEADERS_MAX];
    memcpy(head, data, bytes);
    int n = phr_parse_request(head, bytes, &method, &method_bytes, &path, &path_bytes, &version,
                              headers, &count, 0);
    assert(n == -1 || n == -2 || (n > 0 && (size_t)n <= bytes));
    if (n <= 0)
        return n;
    assert(is_found(method, method_bytes, head, bytes, ""));
    assert(is_found(path, path_bytes, head, bytes, "/")); /* an empty one gets 400 later */
    for (size_t i = 0; i < count; i++) {
        assert(headers[i].name != NULL && headers[i].name_bytes > 0); /* no obs-fold */
        assert(is_found(headers[i].name, headers[i].name_bytes, head, bytes, ""));
        assert(is_found(headers[i].value, headers[i].value_bytes, head, bytes, "close"));
    }
    return n;
}

/* A head that is accepted is sound, lies within the input, and is not accepted before its end. */
void fuzz_http1_head(const uint8_t *data, size_t bytes)
{
    static bool is_installed;
    head_facts facts;
    if (!is_installed)
        parse_request_install(on_refused, on_body);
    is_installed = true;
    char *head = malloc(bytes ? bytes : 1);
    int n = parse(head, bytes, data);
    if (n > 0) {
        assert(head_check((const char *)data, (size_t)n, &facts) == STATUS_OK);
        assert(parse(head, (size_t)n - 1, data) == -2);
    }
    free(head);
}

static void ignore_refusal(const char *body, int code)
{
    (void)body;
    assert(code == 400 || code == 413);
}

/* Decodes in pieces of `step` bytes, as a socket would bring them. */
static ssize_t decode(const uint8_t *data, size_t bytes, size_t step, char *out, size_t *out_bytes)
{
    struct phr_chunked_decoder d = {.consume_trailer = 1};
    size_t used = 0, at = 0;
    ssize_t result = -2;
    while (at < bytes && result == -2) {
        size_t n = bytes - at < step ? bytes - at : step, left = n;
        memcpy(out + used, data + at, n);
        at += n;
        result = phr_decode_chunked(&d, out + used, &left);
        assert(left <= n);
        used += left;
    }
    *out_bytes = used;
    return result >= 0 ? result + (ssize_t)(bytes - at) : result;
}

/* However the bytes arrive, the body and its end are the same. */
void fuzz_http1_chunked(const uint8_t *data, size_t bytes)
{
    static bool is_installed;
    fuzz_input in = {data, bytes};
    size_t step = 1 + fuzz_take_byte(&in), once_bytes, pieces_bytes;
    if (!is_installed)
        decode_chunked_install(BODY_BYTES_MAX, ignore_refusal);
    is_installed = true;
    char *once = malloc(in.bytes + 1), *pieces = malloc(in.bytes + 1);
    ssize_t end = decode(in.data, in.bytes, in.bytes + 1, once, &once_bytes);
    ssize_t other = decode(in.data, in.bytes, step, pieces, &pieces_bytes);
    assert(end == other && (end == -1 || once_bytes == pieces_bytes));
    assert(end == -1 || memcmp(once, pieces, once_bytes) == 0);
    assert(end < 0 || (size_t)end <= in.bytes);
    free(once);
    free(pieces);
}
