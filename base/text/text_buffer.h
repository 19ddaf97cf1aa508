#ifndef BASE_TEXT_TEXT_BUFFER_H
#define BASE_TEXT_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Text or bytes that grow at the end: a response, a report, what goes to a socket. A zeroed one is
 * empty. One thread uses it at a time.
 *
 * Without memory it is broken: what is added is dropped, until it is emptied. Whoever hands its
 * content on looks at `is_broken` first: what is there is not all. */
typedef struct text_buffer {
    char *data; /* NULL until something is reserved */
    size_t bytes, capacity;
    bool is_broken;
} text_buffer;

void text_buffer_dispose(text_buffer *t);
/* Empties it; frees the memory if it holds more than `keep_bytes`. */
void text_buffer_reset(text_buffer *t, size_t keep_bytes);
/* Empties it and keeps its memory. */
static inline void text_buffer_clear(text_buffer *t)
{
    t->bytes = 0;
    t->is_broken = false;
}
/* Makes room for `bytes` more and returns where to write, or NULL: it is broken. The caller adds
 * what it wrote to t->bytes. The pointer is valid until the next call. */
char *text_buffer_reserve(text_buffer *t, size_t bytes);
/* For programs that have nobody to refuse: a broken one ends the process with a message. */
char *text_buffer_require(text_buffer *t, size_t bytes);
void text_buffer_append(text_buffer *t, const void *data, size_t bytes);
static inline void text_buffer_put(text_buffer *t, const char *string)
{
    text_buffer_append(t, string, strlen(string)); /* mostly a literal's: known when compiled */
}
void text_buffer_format(text_buffer *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The content with a zero byte after it, which `bytes` does not count. Borrowed from `t` until the
 * next call. Of a broken one the process ends, as by text_buffer_require(). */
const char *text_buffer_string(text_buffer *t);

#endif
