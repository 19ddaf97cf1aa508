#ifndef LOADTEST_WIRE_BUFFER_H
#define LOADTEST_WIRE_BUFFER_H

#include <stddef.h>

/* Bytes that grow at the end: what goes to a socket, a body, a report. A zeroed buffer is an empty
 * one. Owned by one thread. Running out of memory ends the program with a sentence: a load test
 * that cannot hold its own numbers has nothing left to say. */
typedef struct buffer {
    char *data; /* NULL while nothing was ever appended */
    size_t used, capacity;
} buffer;

void buffer_dispose(buffer *b);
static inline void buffer_clear(buffer *b)
{
    b->used = 0;
}
/* Room for `bytes` more; returns where they go. The caller adds to `used` what it wrote. */
char *buffer_reserve(buffer *b, size_t bytes);
void buffer_append(buffer *b, const void *data, size_t bytes);
void buffer_text(buffer *b, const char *text);
void buffer_printf(buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The bytes with a zero after them, which does not count in `used`. */
const char *buffer_string(buffer *b);

/* Zeroed memory, or the end of the program. Freed with free(). */
void *memory_take(size_t count, size_t item_bytes);
void *memory_resize(void *old, size_t count, size_t item_bytes);
char *memory_string(const char *text, size_t bytes);

#endif
