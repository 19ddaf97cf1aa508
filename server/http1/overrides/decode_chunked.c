#include "server/http1/overrides/decode_chunked.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "server/protocol/head_check.h"

#define DIGITS_MAX 15 /* 60 bits of size: no sum overflows */
#define EXTENSION_BYTES_MAX 100
#define TRAILER_BYTES_MAX 8192

enum {
    IN_SIZE,
    IN_EXTENSION,
    SIZE_LF,
    IN_DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_LINE_START,
    IN_TRAILER_NAME,
    IN_TRAILER_VALUE,
    TRAILER_LF,
    END_LF
};

/* Constant once loops run. */
static size_t body_bytes_max = SIZE_MAX;
static decode_chunked_on_refused *on_refused_body;

void decode_chunked_install(size_t limit, decode_chunked_on_refused *on_refused)
{
    body_bytes_max = limit;
    on_refused_body = on_refused;
    assert(dlsym(RTLD_DEFAULT, "phr_decode_chunked") == (void *)phr_decode_chunked);
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool is_text(char c)
{
    return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f);
}

/* One byte of the size line; false: broken. */
static bool step_size(struct phr_chunked_decoder *d, char c)
{
    int digit = hex(c);
    if (d->state == IN_SIZE && digit >= 0) {
        if (d->digits++ == DIGITS_MAX)
            return false;
        d->bytes_left = d->bytes_left * 16 + (size_t)digit;
        return true;
    }
    if (d->state == IN_SIZE && d->digits == 0)
        return false;
    if (d->state == SIZE_LF) {
        if (c != '\n')
            return false;
        d->state = d->bytes_left > 0 ? IN_DATA : TRAILER_LINE_START;
        d->digits = 0;
        return true;
    }
    if (c == '\r') {
        d->state = SIZE_LF;
        return true;
    }
    if (d->state == IN_SIZE) { /* ';' begins an extension, and nothing else follows a size */
        d->state = IN_EXTENSION;
        d->digits = 0;
        return c == ';';
    }
    return is_text(c) && d->digits++ < EXTENSION_BYTES_MAX;
}

/* One byte of the trailer section, which is checked and dropped; false: broken. */
static bool step_trailer(struct phr_chunked_decoder *d, char c, bool *is_end)
{
    if (++d->bytes_left > TRAILER_BYTES_MAX)
        return false;
    switch (d->state) {
    case TRAILER_LINE_START:
        d->state = c == '\r' ? END_LF : IN_TRAILER_NAME;
        return c == '\r' || head_is_token_byte((unsigned char)c);
    case IN_TRAILER_NAME:
        if (c == ':')
            d->state = IN_TRAILER_VALUE;
        return c == ':' || head_is_token_byte((unsigned char)c);
    case IN_TRAILER_VALUE:
        if (c == '\r')
            d->state = TRAILER_LF;
        return c == '\r' || is_text(c);
    case TRAILER_LF:
        d->state = TRAILER_LINE_START;
        return c == '\n';
    default: /* END_LF */
        *is_end = c == '\n';
        return *is_end;
    }
}

/* One byte that is no data; false: broken. */
static bool step(struct phr_chunked_decoder *d, char c, bool *is_end)
{
    if (d->state <= SIZE_LF)
        return step_size(d, c);
    if (d->state > DATA_LF)
        return step_trailer(d, c, is_end);
    bool is_cr = d->state == DATA_CR;
    d->state = is_cr ? DATA_LF : IN_SIZE;
    return c == (is_cr ? '\r' : '\n');
}

ssize_t phr_decode_chunked(struct phr_chunked_decoder *d, char *buf, size_t *bytes)
{
    size_t from = 0, to = 0, end = *bytes;
    bool is_end = false, is_fine = true;
    while (from < end && !is_end && is_fine) {
        if (d->state == IN_DATA) {
            size_t n = end - from < d->bytes_left ? end - from : d->bytes_left;
            memmove(buf + to, buf + from, n);
            from += n;
            to += n;
            d->bytes_left -= n;
            if (d->bytes_left == 0)
                d->state = DATA_CR;
        } else {
            is_fine = step(d, buf[from++], &is_end) &&
                      (d->state != IN_DATA || d->bytes_left <= body_bytes_max);
        }
    }
    bool is_too_large = !is_fine && d->state == IN_DATA;
    if (!is_fine && on_refused_body != NULL)
        on_refused_body(buf, is_too_large ? 413 : 400);
    memmove(buf + to, buf + from, end - from);
    *bytes = to;
    return !is_fine ? -1 : is_end ? (ssize_t)(end - from) : -2;
}
