/* Responses of /predict: classes of a text, groups of its tokens, or the answer to a question. The
 * last two have the shapes of the pipelines of transformers ("token-classification" with the simple
 * strategy, "question-answering"), since text-embeddings-inference has none for them. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/protocol/language/parts.h"
#include "server/protocol/language/vectors.h"
#include "server/protocol/rows/text_rows.h"
#include "server/protocol/text/text_write.h"

#define ANSWER_TOKENS_MAX 15 /* as transformers has it */

typedef struct prediction {
    int64_t label;
    float score;
} prediction;

static void write_label(text_buffer *out, const model_text *t, int64_t label)
{
    char text[32];
    if (label < t->label_count) {
        text_write_json_text(out, t->labels[label]);
        return;
    }
    snprintf(text, sizeof text, "LABEL_%lld", (long long)label);
    text_write_json_text(out, text);
}

static int compare(const void *a, const void *b)
{
    const prediction *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->label < y->label ? -1 : 1;
}

/* Values [from, from + count) become probabilities that sum to 1. */
static void softmax(const row_values *v, int64_t from, int64_t count, float *out)
{
    double sum = 0;
    float most = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        most = fmaxf(most, language_value(v, from + i));
    for (int64_t i = 0; i < count; i++) {
        out[i] = expf(language_value(v, from + i) - most);
        sum += out[i];
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)(out[i] / sum);
}

static void write_classes(text_buffer *out, const infer_request *r, int64_t row,
                          prediction *classes, float *scores)
{
    const model_text *t = r->model->text;
    row_values v = language_row(r, 0, row);
    bool are_independent = t->is_multi_label || v.width == 1;
    softmax(&v, 0, v.width, scores);
    for (int64_t i = 0; i < v.width; i++) {
        float value = language_value(&v, i);
        float score = r->language->raw_scores ? value
                      : are_independent       ? 1 / (1 + expf(-value))
                                              : scores[i];
        classes[i] = (prediction){i, score};
    }
    qsort(classes, (size_t)v.width, sizeof classes[0], compare);
    text_buffer_put(out, "[");
    for (int64_t i = 0; i < v.width; i++) {
        text_buffer_put(out, i > 0 ? ",{\"score\":" : "{\"score\":");
        language_write_float(out, classes[i].score);
        text_buffer_put(out, ",\"label\":");
        write_label(out, t, classes[i].label);
        text_buffer_put(out, "}");
    }
    text_buffer_put(out, "]");
}

/* Where character `index` of a text begins, in bytes. */
static size_t byte_of(json_string text, uint32_t index)
{
    size_t at = 0;
    while (at < text.bytes && index > 0) {
        at++;
        while (at < text.bytes && ((unsigned char)text.text[at] & 0xC0) == 0x80)
            at++;
        index--;
    }
    return at;
}

static void write_span(text_buffer *out, const char *key, json_string text, tokenizer_span span)
{
    size_t from = byte_of(text, span.begin), to = byte_of(text, span.end);
    text_buffer_format(out, "\"%s\":", key);
    text_write_json_string(out, text.text + from, to > from ? to - from : 0);
    text_buffer_format(out, ",\"start\":%u,\"end\":%u}", span.begin, span.end);
}

/* The tokens of a row again, for where they stand in the text. */
static status encode_again(const infer_request *r, int64_t row, tokenizer_scratch *scratch,
                           tokenizer_tokens *out)
{
    const language_request *l = r->language;
    model_text_input in = text_rows_input(r->model->text, &l->texts.items[row], &l->options, NULL);
    return model_text_encode(r->model->text, scratch, &in, out);
}

/* Tokens of one kind that follow each other. */
typedef struct entity {
    const char *kind; /* "PER" of "B-PER" and "I-PER"; NULL: none is open */
    double score;
    int64_t count;
    tokenizer_span span;
} entity;

static void write_entity(text_buffer *out, const entity *e, json_string text, int *written)
{
    if (e->kind == NULL)
        return;
    text_buffer_put(out, (*written)++ > 0 ? ",{\"entity_group\":" : "{\"entity_group\":");
    text_write_json_text(out, e->kind);
    text_buffer_put(out, ",\"score\":");
    language_write_float(out, (float)(e->score / (double)e->count));
    text_buffer_put(out, ",");
    write_span(out, "word", text, e->span);
}

/* "B-PER" is of kind "PER" and begins; a label without such a letter is a kind itself. NULL: "O",
 * nothing. */
static const char *kind_of(const char *label, bool *begins)
{
    bool has_letter = (label[0] == 'B' || label[0] == 'I') && label[1] == '-';
    *begins = has_letter && label[0] == 'B';
    if (label[0] == 'O' && label[1] == '\0')
        return NULL;
    return has_letter ? label + 2 : label;
}

static status write_entities(text_buffer *out, const infer_request *r, int64_t row,
                             tokenizer_scratch *scratch, float *scores)
{
    const model_text *t = r->model->text;
    json_string text = r->language->texts.items[row].text;
    row_values v = language_row(r, 0, row);
    tokenizer_tokens tokens;
    entity open = {NULL, 0, 0, {0, 0}};
    int written = 0;
    status failure = encode_again(r, row, scratch, &tokens);
    if (failure)
        return failure;
    if ((int64_t)tokens.count != v.length)
        return status_fail(STATUS_INTERNAL, "%zu tokens, but the result has %lld", tokens.count,
                           (long long)v.length);
    text_buffer_put(out, "[");
    for (int64_t token = 0; token < v.length; token++) {
        if (tokens.sequences[token] != 0)
            continue;
        int64_t best = 0;
        bool begins = false;
        softmax(&v, token * v.width, v.width, scores);
        for (int64_t i = 1; i < v.width; i++)
            best = scores[i] > scores[best] ? i : best;
        const char *kind = best < t->label_count ? kind_of(t->labels[best], &begins) : NULL;
        bool goes_on = kind != NULL && open.kind != NULL && !begins && strcmp(kind, open.kind) == 0;
        if (!goes_on) {
            write_entity(out, &open, text, &written);
            open = (entity){kind, 0, 0, tokens.spans[token]};
        }
        open.score += scores[best];
        open.count++;
        open.span.end = tokens.spans[token].end;
    }
    write_entity(out, &open, text, &written);
    text_buffer_put(out, "]");
    return STATUS_OK;
}

/* The best span of the context: the largest product of the probabilities of its ends. */
static status write_answer(text_buffer *out, const infer_request *r, int64_t row,
                           tokenizer_scratch *scratch)
{
    json_string context = r->language->texts.items[row].pair;
    row_values start = language_row(r, 0, row), end = language_row(r, 1, row);
    tokenizer_tokens tokens;
    double best = -INFINITY, sum_start = 0, sum_end = 0;
    tokenizer_span span = {0, 0};
    if (context.text == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "the model answers questions: each input is a pair of question and "
                           "context");
    status failure = encode_again(r, row, scratch, &tokens);
    if (failure)
        return failure;
    if ((int64_t)tokens.count != start.count || start.count != end.count)
        return status_fail(STATUS_INTERNAL, "%zu tokens, but the result has %lld", tokens.count,
                           (long long)start.count);
    for (int64_t i = 0; i < start.count; i++) {
        if (tokens.sequences[i] != 1)
            continue;
        sum_start += exp(language_value(&start, i));
        sum_end += exp(language_value(&end, i));
        for (int64_t j = i; j < start.count && j < i + ANSWER_TOKENS_MAX; j++) {
            double score = (double)language_value(&start, i) + language_value(&end, j);
            if (tokens.sequences[j] != 1 || score <= best)
                continue;
            best = score;
            span = (tokenizer_span){tokens.spans[i].begin, tokens.spans[j].end};
        }
    }
    bool is_raw = r->language->raw_scores;
    bool is_found = best > -INFINITY;
    text_buffer_put(out, "{\"score\":");
    language_write_float(out, !is_found ? 0
                              : is_raw  ? (float)best
                                        : (float)(exp(best) / (sum_start * sum_end)));
    text_buffer_put(out, ",");
    write_span(out, "answer", context, span);
    return STATUS_OK;
}

status language_write_predictions(text_buffer *out, const infer_request *r,
                                  tokenizer_scratch *scratch)
{
    const model_text *t = r->model->text;
    const language_request *l = r->language;
    int64_t width = language_row(r, 0, 0).width;
    size_t one = sizeof(prediction) + sizeof(float);
    prediction *classes = malloc((size_t)(width > 0 ? width : 1) * one);
    if (classes == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the response");
    float *scores = (float *)(classes + width);
    status failure = STATUS_OK;
    text_buffer_put(out, l->is_single ? "" : "[");
    for (int64_t row = 0; row < r->row_count && !failure; row++) {
        text_buffer_put(out, row > 0 ? "," : "");
        if (r->output_count == 2)
            failure = write_answer(out, r, row, scratch);
        else if (r->outputs[0].index == t->token_logits)
            failure = write_entities(out, r, row, scratch, scores);
        else
            write_classes(out, r, row, classes, scores);
    }
    text_buffer_put(out, l->is_single ? "" : "]");
    free(classes);
    return failure;
}
