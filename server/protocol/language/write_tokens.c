/* Responses of /tokenize and /decode, which need no device. */
#include "server/protocol/language/write_language.h"

#include <stdlib.h>

#include "server/protocol/rows/text_rows.h"
#include "server/protocol/text/text_write.h"

#define TOKENS_PER_CHECK 1024

/* A token of a byte becomes a line of 60 and more: whoever asks for them may leave, and the room
 * for what is written must be there. */
static status check_written(const text_buffer *out, const cancel_token *cancel,
                            budget_account *held)
{
    status failure = cancel_check(cancel);
    size_t more = out->capacity > held->bytes ? out->capacity - held->bytes : 0;
    if (!failure && budget_add(held, more) != BUDGET_GRANTED)
        return status_fail(STATUS_UNAVAILABLE, "there is no room for the response now");
    return failure;
}

static void write_token(text_buffer *out, const model_text *t, const tokenizer_tokens *tokens,
                        size_t i)
{
    bool is_special = tokens->sequences[i] == TOKENIZER_NO_SEQUENCE;
    size_t bytes = 0;
    const char *text = tokenizer_token(t->tokenizer, tokens->ids[i], &bytes);
    text_buffer_format(out, "%s{\"id\":%u,\"text\":", i > 0 ? "," : "", tokens->ids[i]);
    text_write_json_string(out, text != NULL ? text : "", text != NULL ? bytes : 0);
    text_buffer_put(out, is_special ? ",\"special\":true" : ",\"special\":false");
    if (is_special)
        text_buffer_put(out, ",\"start\":null,\"stop\":null}");
    else
        text_buffer_format(out, ",\"start\":%u,\"stop\":%u}", tokens->spans[i].begin,
                           tokens->spans[i].end);
}

static status write_tokens(text_buffer *out, const language_request *l, const model_text *t,
                           const text_item *item, const model_prompt *prompt,
                           tokenizer_scratch *scratch, const cancel_token *cancel,
                           budget_account *held)
{
    tokenizer_tokens tokens;
    model_text_input in = text_rows_input(t, item, &l->options, prompt);
    in.without_special = !l->adds_special;
    in.truncates = false;
    in.tokens_max = 0;
    status failure = model_text_encode(t, scratch, &in, &tokens);
    if (failure)
        return failure;
    text_buffer_put(out, "[");
    for (size_t i = 0; i < tokens.count && !failure; i++) {
        write_token(out, t, &tokens, i);
        if (i % TOKENS_PER_CHECK == 0)
            failure = check_written(out, cancel, held);
    }
    text_buffer_put(out, "]");
    return failure;
}

static status write_decoded(text_buffer *out, const language_request *l, const model_text *t,
                            const text_item *item)
{
    text_buffer text = {0};
    uint32_t *ids = malloc((size_t)(item->id_count + 1) * sizeof(*ids));
    if (ids == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for token ids");
    status failure = STATUS_OK;
    for (int64_t i = 0; i < item->id_count && !failure; i++) {
        ids[i] = (uint32_t)item->ids[i];
        if (item->ids[i] < 0 || item->ids[i] >= tokenizer_id_count(t->tokenizer))
            failure = status_fail(STATUS_INVALID_ARGUMENT, "token id %lld is not in the vocabulary",
                                  (long long)item->ids[i]);
    }
    if (!failure)
        failure =
            tokenizer_decode(t->tokenizer, ids, (size_t)item->id_count, l->skips_special, &text);
    if (!failure && text.is_broken)
        failure = status_fail(STATUS_OUT_OF_MEMORY, "no memory for the text of tokens");
    if (!failure)
        text_write_json_string(out, text.bytes > 0 ? text.data : "", text.bytes);
    text_buffer_dispose(&text);
    free(ids);
    return failure;
}

status language_write_tokens(text_buffer *out, const language_request *l, const model *m,
                             tokenizer_scratch *scratch, const cancel_token *cancel,
                             budget_account *held)
{
    text_options options = l->options;
    const model_prompt *prompt;
    options.ignores_prompt = true; /* unless it is named */
    status failure = text_rows_find_prompt(m->text, &options, &prompt);
    text_buffer_put(out, "[");
    for (int64_t i = 0; i < l->texts.count && !failure; i++) {
        const text_item *item = &l->texts.items[i];
        failure = check_written(out, cancel, held);
        text_buffer_put(out, i > 0 ? "," : "");
        if (!failure)
            failure = l->task == LANGUAGE_DECODE
                          ? write_decoded(out, l, m->text, item)
                          : write_tokens(out, l, m->text, item, prompt, scratch, cancel, held);
    }
    text_buffer_put(out, "]");
    return failure;
}
