#ifndef SERVER_PROTOCOL_LANGUAGE_PARTS_H
#define SERVER_PROTOCOL_LANGUAGE_PARTS_H

#include "server/protocol/language/write_language.h"

/* Parts of responses. For the writers of this folder. */

void language_write_float(text_buffer *out, float value);
void language_write_floats(text_buffer *out, const float *values, int64_t count);

/* write_ranks.c */
status language_write_ranks(text_buffer *out, const infer_request *r) MUST_CHECK;
/* write_predictions.c */
status language_write_predictions(text_buffer *out, const infer_request *r,
                                  tokenizer_scratch *scratch) MUST_CHECK;

#endif
