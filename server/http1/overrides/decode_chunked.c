#include "server/http1/overrides/decode_chunked.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

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
    IN_TRAILER_LINE,
    TRAILER_LF,
    END_LF
};

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
        d->state = d->bytes_left > 0 ? IN_DATA : TRAILER_LINE_START;
        d->digits = 0;
        return c == '\n';
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

/* One byte of the trailer section; false: broken. */
static bool step_trailer(struct phr_chunked_decoder *d, char c, bool *is_end)
{
    if (++d->bytes_left > TRAILER_BYTES_MAX)
        return false;
    switch (d->state) {
    case TRAILER_LINE_START:
        d->state = c == '\r' ? END_LF : IN_TRAILER_LINE;
        return c == '\r' || (is_text(c) && c != ' ' && c != '\t' && c != ':');
    case IN_TRAILER_LINE:
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

ssize_t phr_decode_chunked(struct phr_chunked_decoder *d, char *buf, size_t *bytes)
{
    size_t from = 0, to = 0, end = *bytes;
    bool is_end = false;
    ssize_t result = -2;
    while (from < end && !is_end) {
        bool is_fine = true;
        if (d->state == IN_DATA) {
            size_t n = end - from < d->bytes_left ? end - from : d->bytes_left;
            memmove(buf + to, buf + from, n);
            from += n;
            to += n;
            d->bytes_left -= n;
            if (d->bytes_left == 0)
                d->state = DATA_CR;
            continue;
        }
        char c = buf[from++];
        if (d->state <= SIZE_LF) {
            is_fine = step_size(d, c);
        } else if (d->state == DATA_CR) {
            is_fine = c == '\r';
            d->state = DATA_LF;
        } else if (d->state == DATA_LF) {
            is_fine = c == '\n';
            d->state = IN_SIZE;
        } else {
            is_fine = step_trailer(d, c, &is_end);
        }
        if (!is_fine) {
            result = -1;
            goto done;
        }
    }
    if (is_end)
        result = (ssize_t)(end - from);
done:
    memmove(buf + to, buf + from, end - from);
    *bytes = to;
    return result;
}

int decode_chunked_is_in_place(void)
{
    return dlsym(RTLD_DEFAULT, "phr_decode_chunked") == (void *)phr_decode_chunked;
}
