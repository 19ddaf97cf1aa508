#include "models/text/roles.h"

#include <string.h>

static bool is_one_of(const char *name, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static status find_inputs(model_text *t, const model *m)
{
    static const char *const ids[] = {"input_ids", "ids", "input_word_ids", "tokens", NULL};
    static const char *const masks[] = {"attention_mask", "input_mask", "mask", NULL};
    static const char *const types[] = {"token_type_ids", "segment_ids", "input_type_ids", NULL};
    t->ids = t->mask = t->types = -1;
    for (int i = 0; i < m->input_count; i++) {
        const model_tensor *in = &m->inputs[i];
        bool fits = (in->dtype == DTYPE_I64 || in->dtype == DTYPE_I32) && in->rank == 2 &&
                    in->batch_axis == 0 && in->sequence_axis == 1;
        int *role = is_one_of(in->name, ids)     ? &t->ids
                    : is_one_of(in->name, masks) ? &t->mask
                    : is_one_of(in->name, types) ? &t->types
                                                 : NULL;
        if (fits && role != NULL)
            *role = i;
        else if (!in->is_optional)
            return status_fail(STATUS_UNSUPPORTED,
                               "input \"%s\" holds no tokens that a tokenizer gives", in->name);
    }
    return t->ids >= 0 ? STATUS_OK
                       : status_fail(STATUS_UNSUPPORTED, "the model has no input \"input_ids\"");
}

static bool is_per_row(const model_tensor *t)
{
    return t->rank == 2 && t->batch_axis == 0 && t->sequence_axis < 0;
}

static bool is_per_token(const model_tensor *t, int rank)
{
    return t->rank == rank && t->batch_axis == 0 && t->sequence_axis == 1;
}

static void find_heads(model_text *t, const model *m, text_head head)
{
    int64_t vocabulary = m->inputs[t->ids].id_limit;
    for (int i = 0; i < m->output_count; i++) {
        const model_tensor *out = &m->outputs[i];
        bool is_logits = strstr(out->name, "logits") != NULL || strcmp(out->name, "output") == 0;
        if (is_per_token(out, 2) && strstr(out->name, "start") != NULL)
            t->start_logits = i;
        else if (is_per_token(out, 2) && strstr(out->name, "end") != NULL)
            t->end_logits = i;
        else if (is_per_row(out) && (is_logits || head == TEXT_HEAD_SEQUENCE) &&
                 head != TEXT_HEAD_WORDS)
            t->logits = i;
        else if (is_per_token(out, 3) && head == TEXT_HEAD_TOKENS)
            t->token_logits = i;
        else if (out->rank > 1 && vocabulary > 0 && out->dims[out->rank - 1] == vocabulary &&
                 (is_per_row(out) || is_per_token(out, 3)))
            t->words = i;
    }
}

static void find_vectors(model_text *t, const model *m)
{
    static const char *const named[] = {"sentence_embedding", "sentence_embeddings", "embedding",
                                        "embeddings",         "text_embeds",         NULL};
    for (int i = 0; i < m->output_count; i++) {
        const model_tensor *out = &m->outputs[i];
        if (!dtype_is_float(out->dtype) || i == t->logits || i == t->words || i == t->token_logits)
            continue;
        bool is_named = is_one_of(out->name, named);
        bool is_pooler = strcmp(out->name, "pooler_output") == 0; /* trained for another task */
        if (is_per_row(out) && !is_pooler && (t->sentence < 0 || is_named))
            t->sentence = i;
        if (is_per_token(out, 3) && t->tokens < 0)
            t->tokens = i;
    }
}

status text_roles_find(model_text *t, const model *m, text_head head)
{
    t->sentence = t->tokens = t->logits = t->token_logits = -1;
    t->start_logits = t->end_logits = t->words = -1;
    status failure = find_inputs(t, m);
    if (failure)
        return failure;
    find_heads(t, m, head);
    find_vectors(t, m);
    return STATUS_OK;
}
