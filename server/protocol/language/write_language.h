#ifndef SERVER_PROTOCOL_LANGUAGE_WRITE_LANGUAGE_H
#define SERVER_PROTOCOL_LANGUAGE_WRITE_LANGUAGE_H

#include "base/text/text_buffer.h"
#include "models/text/model_text.h"
#include "server/budget/budget.h"
#include "server/protocol/infer.h"
#include "server/protocol/language/language.h"

/* The responses of the routes that take text. Any thread. */

/* Which output of the model the task needs, in r->outputs. STATUS_UNSUPPORTED: the model has none
 * for it; STATUS_INVALID_ARGUMENT: it cannot be cut to those dimensions, or rejects pairs. */
status language_choose_outputs(infer_request *r) MUST_CHECK;

/* Appends the response to r->language, whose jobs are done. `scratch` is the thread's own.
 * STATUS_INTERNAL: a result is no finite number; STATUS_OUT_OF_MEMORY. */
status language_write(text_buffer *out, const infer_request *r,
                      tokenizer_scratch *scratch) MUST_CHECK;

/* The responses of tokenize and decode, which need no device. Errors as model_text_encode() and
 * model_text_decode(); STATUS_UNAVAILABLE: there is no room in `held`, which counts what is written
 * until the caller gives it back. */
status language_write_tokens(text_buffer *out, const language_request *l, const model *m,
                             tokenizer_scratch *scratch, const cancel_token *cancel,
                             budget_account *held) MUST_CHECK;

#endif
