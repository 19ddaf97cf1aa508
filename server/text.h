#ifndef SERVER_TEXT_H
#define SERVER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing piece of text: answers are written here and kept by the thread for the next one. A
 * zeroed one is empty. Out of memory aborts: an answer that cannot be written has no other way. */
typedef struct text {
    char *data;
    size_t bytes, capacity;
} text;

void text_dispose(text *t);
/* Empties it; gives memory back beyond `keep_bytes`. */
void text_reset(text *t, size_t keep_bytes);
/* Room for `bytes` more; returns where to write. The caller adds what it used to t->bytes. */
char *text_reserve(text *t, size_t bytes);
void text_append(text *t, const char *data, size_t bytes);
void text_put(text *t, const char *string);
void text_format(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_u64(text *t, uint64_t value);
void text_i64(text *t, int64_t value);
void text_f64(text *t, double value);
/* With quotes; bytes that are no UTF-8 become U+FFFD. */
void text_json_string(text *t, const char *data, size_t bytes);

#endif
