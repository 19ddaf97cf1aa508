#ifndef SERVER_PROTOCOL_TEXT_TEXT_FIELDS_H
#define SERVER_PROTOCOL_TEXT_TEXT_FIELDS_H

#include "base/tensor.h"
#include "server/protocol/text/text_item.h"

/* Texts in the bodies of TensorFlow Serving and KServe, for models with a tokenizer. The names
 * "text" and "text_pair" stand beside the model's inputs; the strings are copied into s->memory. */

#define TEXT_INPUT "text"
#define TEXT_PAIR_INPUT "text_pair"

/* Is the value at the cursor a text: a string, or an object that begins with "text" or
 * "text_pair"? */
bool text_is_next(const json_scan *s);
/* "..." or {"text": "...", "text_pair": "..."}. */
status text_read_row(json_scan *s, text_list *out) MUST_CHECK;

/* The same of columns: ["..."] or {"text": ["..."], "text_pair": ["..."]}. */
bool text_columns_are_next(const json_scan *s);
status text_read_columns(json_scan *s, text_list *out) MUST_CHECK;

/* A tensor of strings, one for each row: the texts, or the second ones of pairs. Of those that come
 * second, there must be as many. The strings stay where they are. */
status text_take_tensor(const tensor *t, bool is_pair, arena *memory, text_list *out) MUST_CHECK;

/* Are all texts there, and the pairs complete or absent? */
status text_check(const text_list *l) MUST_CHECK;

#endif
