#ifndef SERVER_PROTOCOL_TEXT_TEXT_BUFFER_H
#define SERVER_PROTOCOL_TEXT_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing piece of text: answers are written here and kept by the thread for the next one. A
 * zeroed one is empty. Out of memory aborts: an answer that cannot be written has no other way. */
typedef struct text_buffer {
    char *data;
    size_t bytes, capacity;
} text_buffer;

void text_buffer_dispose(text_buffer *t);
/* Empties it; gives memory back beyond `keep_bytes`. */
void text_buffer_reset(text_buffer *t, size_t keep_bytes);
/* Room for `bytes` more; returns where to write. The caller adds what it used to t->bytes. */
char *text_buffer_reserve(text_buffer *t, size_t bytes);
void text_buffer_append(text_buffer *t, const char *data, size_t bytes);
void text_buffer_put(text_buffer *t, const char *string);
void text_buffer_format(text_buffer *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_buffer_u64(text_buffer *t, uint64_t value);
void text_buffer_i64(text_buffer *t, int64_t value);
void text_buffer_f64(text_buffer *t, double value);
/* With quotes; bytes that are no UTF-8 become U+FFFD. */
void text_buffer_json_string(text_buffer *t, const char *data, size_t bytes);

#endif
