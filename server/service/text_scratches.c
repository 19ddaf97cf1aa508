#include "server/service/text_scratches.h"

void text_scratches_dispose(text_scratches *s)
{
    for (int i = 0; i < SERVER_HELPERS_MAX; i++)
        tokenizer_scratch_destroy(atomic_exchange(&s->idle[i], NULL));
}

tokenizer_scratch *text_scratches_take(text_scratches *s)
{
    for (int i = 0; i < SERVER_HELPERS_MAX; i++) {
        tokenizer_scratch *idle = atomic_exchange(&s->idle[i], NULL);
        if (idle != NULL)
            return idle;
    }
    return tokenizer_scratch_create();
}

void text_scratches_return(text_scratches *s, tokenizer_scratch *scratch)
{
    for (int i = 0; i < SERVER_HELPERS_MAX; i++) {
        tokenizer_scratch *none = NULL;
        if (atomic_compare_exchange_strong(&s->idle[i], &none, scratch))
            return;
    }
    tokenizer_scratch_destroy(scratch);
}
