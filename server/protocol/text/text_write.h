#ifndef SERVER_PROTOCOL_TEXT_TEXT_WRITE_H
#define SERVER_PROTOCOL_TEXT_TEXT_WRITE_H

#include <stdint.h>

#include "base/text/text_buffer.h"

/* Appends numbers and JSON strings to a text buffer. */

void text_write_u64(text_buffer *t, uint64_t value);
void text_write_i64(text_buffer *t, int64_t value);
/* The shortest digits that read back as the same value. */
void text_write_f64(text_buffer *t, double value);
/* With quotes; bytes that are not UTF-8 become U+FFFD. */
void text_write_json_string(text_buffer *t, const char *data, size_t bytes);
/* The same; `text` ends with NUL. */
void text_write_json_text(text_buffer *t, const char *text);

#endif
