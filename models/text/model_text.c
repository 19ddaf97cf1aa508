#include "models/text/model_text.h"

#include <stdlib.h>
#include <string.h>

const model_prompt *model_text_prompt(const model_text *t, const char *name, size_t bytes)
{
    for (int i = 0; i < t->prompt_count; i++) {
        const model_prompt *p = &t->prompts[i];
        if (strlen(p->name) == bytes && memcmp(p->name, name, bytes) == 0)
            return p;
    }
    return NULL;
}

static status fail_length(const model_text_input *in, size_t count)
{
    return status_fail(STATUS_TOO_LARGE, "a text of %zu tokens: the model's limit is %lld", count,
                       (long long)in->tokens_max);
}

status model_text_encode(const model_text *t, tokenizer_scratch *s, const model_text_input *in,
                         tokenizer_tokens *out)
{
    tokenizer_text text = {in->text, in->text_bytes}, pair = {in->pair, in->pair_bytes};
    tokenizer_options o = {.omits_special_tokens = in->without_special,
                           .tokens_max = in->truncates ? (size_t)in->tokens_max : 0,
                           .truncates_left = in->cuts_left};
    tokenizer_tokens tokens;
    char *joined = NULL;
    if (in->prompt_bytes > 0) {
        joined = malloc(in->prompt_bytes + in->text_bytes);
        if (joined == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a text and its prompt");
        memcpy(joined, in->prompt, in->prompt_bytes);
        memcpy(joined + in->prompt_bytes, in->text, in->text_bytes);
        text = (tokenizer_text){joined, in->prompt_bytes + in->text_bytes};
    }
    status failure =
        tokenizer_encode(t->tokenizer, s, text, in->pair != NULL ? &pair : NULL, &o, &tokens);
    free(joined);
    if (failure)
        return failure;
    if (in->tokens_max > 0 && tokens.count > (size_t)in->tokens_max)
        return fail_length(in, tokens.count);
    if (tokens.count == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "a text without tokens");
    *out = tokens;
    return STATUS_OK;
}
