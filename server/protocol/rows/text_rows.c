#include "server/protocol/rows/text_rows.h"

#include "server/protocol/row_jobs.h"

#define LONG_TEXT_BYTES 4096 /* a few hundred microseconds */
#define LONG_ITEMS 32

bool text_rows_are_long(const text_list *l)
{
    return l->bytes > LONG_TEXT_BYTES || l->count > LONG_ITEMS;
}

status text_rows_find_prompt(const model_text *t, const text_options *o, const model_prompt **out)
{
    *out = o->ignores_prompt ? NULL : t->default_prompt;
    if (o->prompt.text == NULL)
        return STATUS_OK;
    *out = model_text_prompt(t, o->prompt.text, o->prompt.bytes);
    if (*out != NULL)
        return STATUS_OK;
    int bytes = (int)(o->prompt.bytes < 100 ? o->prompt.bytes : 100);
    return status_fail(STATUS_INVALID_ARGUMENT, "the model has no prompt \"%.*s\"%s%s", bytes,
                       o->prompt.text, t->prompt_count > 0 ? "; it has " : "",
                       t->prompt_count > 0 ? t->prompts[0].name : "");
}

model_text_input text_rows_input(const model_text *t, const text_item *item, const text_options *o,
                                 const model_prompt *prompt)
{
    return (model_text_input){.prompt = prompt != NULL ? prompt->text : NULL,
                              .prompt_bytes = prompt != NULL ? prompt->bytes : 0,
                              .text = item->text.text,
                              .text_bytes = item->text.bytes,
                              .pair = item->pair.text,
                              .pair_bytes = item->pair.bytes,
                              .truncates = o->truncates,
                              .cuts_left = o->cuts_left,
                              .tokens_max = t->tokens_max};
}

/* Room for `count` more elements of that input; where they go. */
static status reserve(row_set *rows, int input, int64_t count, void **out)
{
    infer_scratch *scratch = rows->context->scratch;
    size_t element = dtype_bytes(rows->request->model->inputs[input].dtype);
    int64_t before = rows->counts[input];
    status failure = row_reserve(&scratch->data[input], &scratch->bytes[input],
                                 (size_t)(before + count) * element);
    if (failure)
        return failure;
    *out = (char *)scratch->data[input] + (size_t)before * element;
    rows->counts[input] += count;
    return STATUS_OK;
}

/* One row's value of an input: `values`, or ones where that is NULL. */
static status append(row_set *rows, int64_t row, int input, const uint32_t *values, int64_t count)
{
    void *to;
    if (input < 0)
        return STATUS_OK;
    row_record(rows, row)[1 + input] = rows->counts[input];
    rows->is_given[input] = true;
    status failure = reserve(rows, input, count, &to);
    if (failure)
        return failure;
    bool is_wide = rows->request->model->inputs[input].dtype == DTYPE_I64;
    for (int64_t i = 0; i < count; i++) {
        uint32_t v = values != NULL ? values[i] : 1;
        if (is_wide)
            ((int64_t *)to)[i] = v;
        else
            ((int32_t *)to)[i] = (int32_t)v;
    }
    return STATUS_OK;
}

/* Marks the first `count` tokens of the row just added as those of a prompt. */
static void mark_prompt(const row_set *rows, int64_t row, int64_t count)
{
    int input = rows->request->model->text->mask;
    int64_t first = input >= 0 ? row_record(rows, row)[1 + input] : 0;
    for (int64_t i = first; input >= 0 && i < first + count && i < rows->counts[input]; i++) {
        if (rows->request->model->inputs[input].dtype == DTYPE_I64)
            ((int64_t *)rows->context->scratch->data[input])[i] = 2;
        else
            ((int32_t *)rows->context->scratch->data[input])[i] = 2;
    }
}

static status add_tokens(row_set *rows, int64_t row, const tokenizer_tokens *tokens)
{
    const model_text *t = rows->request->model->text;
    int64_t count = (int64_t)tokens->count;
    row_record(rows, row)[0] = count;
    status failure = append(rows, row, t->ids, tokens->ids, count);
    if (!failure)
        failure = append(rows, row, t->mask, NULL, count);
    return failure ? failure : append(rows, row, t->types, tokens->type_ids, count);
}

/* Token ids that the client has made itself: as they are, of type 0. */
static status add_ids(row_set *rows, int64_t row, const text_item *item)
{
    const model_text *t = rows->request->model->text;
    const model_tensor *in = &rows->request->model->inputs[t->ids];
    int64_t limit = in->id_limit > 0 ? in->id_limit : INT32_MAX;
    void *to;
    if (item->id_count > t->tokens_max)
        return status_fail(STATUS_TOO_LARGE, "%lld tokens: the model's limit is %lld",
                           (long long)item->id_count, (long long)t->tokens_max);
    row_record(rows, row)[0] = item->id_count;
    row_record(rows, row)[1 + t->ids] = rows->counts[t->ids];
    rows->is_given[t->ids] = true;
    status failure = reserve(rows, t->ids, item->id_count, &to);
    for (int64_t i = 0; !failure && i < item->id_count; i++) {
        if (item->ids[i] < 0 || item->ids[i] >= limit)
            return status_fail(STATUS_INVALID_ARGUMENT, "token id %lld; ids are 0 to %lld",
                               (long long)item->ids[i], (long long)limit - 1);
        if (in->dtype == DTYPE_I64)
            ((int64_t *)to)[i] = item->ids[i];
        else
            ((int32_t *)to)[i] = (int32_t)item->ids[i];
    }
    if (!failure)
        failure = append(rows, row, t->mask, NULL, item->id_count);
    if (failure || t->types < 0)
        return failure;
    row_record(rows, row)[1 + t->types] = rows->counts[t->types];
    rows->is_given[t->types] = true;
    failure = reserve(rows, t->types, item->id_count, &to);
    if (!failure)
        memset(to, 0,
               (size_t)item->id_count * dtype_bytes(rows->request->model->inputs[t->types].dtype));
    return failure;
}

static status add_item(row_set *rows, int64_t row, const text_item *item, const text_options *o,
                       const model_prompt *prompt, tokenizer_scratch *scratch)
{
    const model_text *t = rows->request->model->text;
    status failure = row_begin(rows, row);
    if (failure)
        return failure;
    if (item->ids != NULL)
        return add_ids(rows, row, item);
    tokenizer_tokens tokens;
    model_text_input in = text_rows_input(t, item, o, prompt);
    failure = model_text_encode(t, scratch, &in, &tokens);
    if (!failure)
        failure = add_tokens(rows, row, &tokens);
    if (!failure && prompt != NULL && !o->cuts_left)
        mark_prompt(rows, row, prompt->tokens);
    return failure;
}

status text_rows_make(infer_request *r, const infer_context *c, const text_list *l,
                      const text_options *o, tokenizer_scratch *scratch, int64_t *tokens)
{
    row_set rows = {.request = r, .context = c, .row_count = l->count};
    const model_prompt *prompt;
    status failure = text_rows_find_prompt(r->model->text, o, &prompt);
    for (int64_t i = 0; !failure && i < l->count; i++) {
        failure = cancel_check(c->cancel);
        if (!failure)
            failure = add_item(&rows, i, &l->items[i], o, prompt, scratch);
        if (failure && l->count > 1)
            status_prefix(failure, "text %lld", (long long)i);
    }
    if (failure)
        return failure;
    if (r->job_count == 0) {
        job *j = c->acquire_job(c->context);
        if (j == NULL)
            return status_fail(STATUS_UNAVAILABLE, "no job is free: too many are in use");
        r->jobs[r->job_count++] = j;
    }
    *tokens = rows.counts[r->model->text->ids];
    return row_jobs_make(&rows);
}
