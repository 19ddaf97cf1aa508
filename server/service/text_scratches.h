#ifndef SERVER_SERVICE_TEXT_SCRATCHES_H
#define SERVER_SERVICE_TEXT_SCRATCHES_H

#include <stdatomic.h>

#include "models/text/model_text.h"
#include "server/options/options.h"

/* Memory with which helper threads tokenize, kept between their tasks. Any thread, without a lock.
 * Zeroed is empty. */
typedef struct text_scratches {
    _Atomic(tokenizer_scratch *) idle[SERVER_HELPERS_MAX];
} text_scratches;

void text_scratches_dispose(text_scratches *s);

/* An idle one, or a new one; NULL: memory is out. */
tokenizer_scratch *text_scratches_take(text_scratches *s);
void text_scratches_return(text_scratches *s, tokenizer_scratch *scratch);

#endif
