#ifndef BASE_TEXT_TEXT_BUFFER_H
#define BASE_TEXT_TEXT_BUFFER_H

#include <stddef.h>
#include <string.h>

/* Text or bytes that grow at the end: a response, a report, what goes to a socket. A zeroed one is
 * empty. One thread uses it at a time. Running out of memory ends the process with a message. */
typedef struct text_buffer {
    char *data; /* NULL until something is reserved */
    size_t bytes, capacity;
} text_buffer;

void text_buffer_dispose(text_buffer *t);
/* Empties it; frees the memory if it holds more than `keep_bytes`. */
void text_buffer_reset(text_buffer *t, size_t keep_bytes);
/* Empties it and keeps its memory. */
static inline void text_buffer_clear(text_buffer *t)
{
    t->bytes = 0;
}
/* Makes room for `bytes` more and returns where to write. The caller adds what it wrote to
 * t->bytes. The pointer is valid until the next call. */
char *text_buffer_reserve(text_buffer *t, size_t bytes);
void text_buffer_append(text_buffer *t, const void *data, size_t bytes);
static inline void text_buffer_put(text_buffer *t, const char *string)
{
    text_buffer_append(t, string, strlen(string)); /* mostly a literal's: known when compiled */
}
void text_buffer_format(text_buffer *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The content with a zero byte after it, which `bytes` does not count. Borrowed from `t` until the
 * next call. */
const char *text_buffer_string(text_buffer *t);

#endif
