#ifndef SERVER_PROTOCOL_ROWS_TEXT_ROWS_H
#define SERVER_PROTOCOL_ROWS_TEXT_ROWS_H

#include "models/text/model_text.h"
#include "server/protocol/infer.h"

/* Texts become tokens, tokens rows, and rows jobs. */

/* Whether tokenizing would hold an event loop. */
bool text_rows_are_long(const text_list *l);

/* The prompt that the options name, or the model's default; NULL: none. STATUS_INVALID_ARGUMENT:
 * the model has no such prompt, or none at all. */
status text_rows_find_prompt(const model_text *t, const text_options *o,
                             const model_prompt **out) MUST_CHECK;

/* Item `index` as the tokenizer takes it. */
model_text_input text_rows_input(const model_text *t, const text_item *item, const text_options *o,
                                 const model_prompt *prompt);

/* Makes jobs of `l`, for r->model, which takes text; `*tokens` is their sum. r->jobs has one job or
 * none. Any thread, with its own scratch. Errors begin with the text's index: those of
 * model_text_encode() and row_jobs_make(). */
status text_rows_make(infer_request *r, const infer_context *c, const text_list *l,
                      const text_options *o, tokenizer_scratch *scratch,
                      int64_t *tokens) MUST_CHECK;

#endif
