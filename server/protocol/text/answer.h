#ifndef SERVER_PROTOCOL_TEXT_ANSWER_H
#define SERVER_PROTOCOL_TEXT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing piece of text: answers are written here and kept by the thread for the next one. A
 * zeroed one is empty. Out of memory aborts: an answer that cannot be written has no other way. */
typedef struct answer {
    char *data;
    size_t bytes, capacity;
} answer;

void answer_dispose(answer *t);
/* Empties it; gives memory back beyond `keep_bytes`. */
void answer_reset(answer *t, size_t keep_bytes);
/* Room for `bytes` more; returns where to write. The caller adds what it used to t->bytes. */
char *answer_reserve(answer *t, size_t bytes);
void answer_append(answer *t, const char *data, size_t bytes);
void answer_put(answer *t, const char *string);
void answer_format(answer *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_u64(answer *t, uint64_t value);
void answer_i64(answer *t, int64_t value);
void answer_f64(answer *t, double value);
/* With quotes; bytes that are no UTF-8 become U+FFFD. */
void answer_json_string(answer *t, const char *data, size_t bytes);

#endif
