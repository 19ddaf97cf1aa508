#include "server/protocol/language/write_language.h"

#include <math.h>
#include <stdlib.h>

#include "server/protocol/language/parts.h"
#include "server/protocol/language/vectors.h"
#include "server/protocol/text/base64.h"
#include "server/protocol/text/number_write.h"
#include "server/protocol/text/text_write.h"

void language_write_floats(text_buffer *out, const float *values, int64_t count)
{
    char *start = text_buffer_reserve(out, (size_t)count * (NUMBER_F32_CHARS + 1) + 2), *at = start;
    if (start == NULL)
        return; /* whoever sends it looks at is_broken */
    *at++ = '[';
    for (int64_t i = 0; i < count; i++) {
        at = number_write_f32(at, values[i]);
        *at++ = ',';
    }
    at[-(count > 0)] = ']';
    out->bytes += (size_t)(at - start) + (count == 0);
}

/* Little-endian float32, as OpenAI has it. */
static void write_base64(text_buffer *out, const float *values, int64_t count)
{
    size_t bytes = (size_t)count * sizeof(float);
    char *start = text_buffer_reserve(out, (bytes + 2) / 3 * 4 + 2), *at = start;
    if (start == NULL)
        return;
    *at++ = '"';
    at = base64_encode(at, (const uint8_t *)values, bytes);
    *at++ = '"';
    out->bytes += (size_t)(at - start);
}

static status fail_memory(void)
{
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the response");
}

static status write_vectors(text_buffer *out, const infer_request *r)
{
    const language_request *l = r->language;
    bool is_openai = l->dialect == ROUTE_OPENAI;
    int64_t width = language_vector_width(r);
    float *values = malloc((size_t)width * sizeof(float));
    status failure = values != NULL ? STATUS_OK : fail_memory();
    text_buffer_put(out, is_openai ? "{\"object\":\"list\",\"data\":[" : "[");
    for (int64_t row = 0; row < r->row_count && !failure; row++) {
        failure = language_vector(r, row, values);
        text_buffer_put(out, row > 0 ? "," : "");
        if (is_openai) {
            text_buffer_put(out, "{\"object\":\"embedding\",\"index\":");
            text_write_i64(out, row);
            text_buffer_put(out, ",\"embedding\":");
        }
        if (l->as_base64)
            write_base64(out, values, width);
        else
            language_write_floats(out, values, width);
        text_buffer_put(out, is_openai ? "}" : "");
    }
    free(values);
    text_buffer_put(out, "]");
    if (is_openai) {
        text_buffer_put(out, ",\"model\":");
        text_write_json_text(out, r->model->name);
        text_buffer_put(out, ",\"usage\":{\"prompt_tokens\":");
        text_write_i64(out, l->tokens);
        text_buffer_put(out, ",\"total_tokens\":");
        text_write_i64(out, l->tokens);
        text_buffer_put(out, "}}");
    }
    return failure;
}

static status write_token_vectors(text_buffer *out, const infer_request *r)
{
    int64_t width = language_row(r, 0, 0).width;
    float *values = malloc((size_t)width * sizeof(float));
    if (values == NULL)
        return fail_memory();
    text_buffer_put(out, "[");
    for (int64_t row = 0; row < r->row_count; row++) {
        row_values v = language_row(r, 0, row);
        text_buffer_put(out, row > 0 ? ",[" : "[");
        for (int64_t token = 0; token < v.length; token++) {
            for (int64_t i = 0; i < width; i++)
                values[i] = language_value(&v, token * width + i);
            text_buffer_put(out, token > 0 ? "," : "");
            language_write_floats(out, values, width);
        }
        text_buffer_put(out, "]");
    }
    text_buffer_put(out, "]");
    free(values);
    return STATUS_OK;
}

/* SPLADE: the largest log(1 + relu(x)) over the tokens, for each word of the vocabulary; words of
 * weight 0 are left out. Source: Formal et al., "SPLADE v2", 2021. */
static void write_sparse(text_buffer *out, const infer_request *r)
{
    text_buffer_put(out, "[");
    for (int64_t row = 0; row < r->row_count; row++) {
        row_values v = language_row(r, 0, row);
        int written = 0;
        text_buffer_put(out, row > 0 ? ",[" : "[");
        for (int64_t word = 0; word < v.width; word++) {
            float most = 0;
            for (int64_t token = 0; token < v.length; token++)
                most = fmaxf(most, language_value(&v, token * v.width + word));
            if (most <= 0)
                continue;
            text_buffer_put(out, written++ > 0 ? ",{\"index\":" : "{\"index\":");
            text_write_i64(out, word);
            text_buffer_put(out, ",\"value\":");
            language_write_float(out, v.t->rank == 3 ? log1pf(most) : most);
            text_buffer_put(out, "}");
        }
        text_buffer_put(out, "]");
    }
    text_buffer_put(out, "]");
}

static status write_similarities(text_buffer *out, const infer_request *r)
{
    int64_t width = language_vector_width(r);
    float *values = malloc(2 * (size_t)width * sizeof(float));
    if (values == NULL)
        return fail_memory();
    status failure = language_vector(r, 0, values);
    text_buffer_put(out, "[");
    for (int64_t row = 1; row < r->row_count && !failure; row++) {
        double product = 0;
        failure = language_vector(r, row, values + width);
        for (int64_t i = 0; i < width; i++)
            product += (double)values[i] * values[width + i];
        text_buffer_put(out, row > 1 ? "," : "");
        language_write_float(out, (float)product);
    }
    text_buffer_put(out, "]");
    free(values);
    return failure;
}

void language_write_float(text_buffer *out, float value)
{
    char *start = text_buffer_reserve(out, NUMBER_F32_CHARS);
    if (start != NULL)
        out->bytes += (size_t)(number_write_f32(start, value) - start);
}

/* A value that is not finite has no place in JSON. */
static status check_finite(const infer_request *r)
{
    for (int o = 0; o < r->output_count; o++) {
        for (int j = 0; j < r->job_count; j++) {
            const tensor *t = &r->jobs[j]->outputs[r->outputs[o].index];
            for (int64_t i = 0, count = tensor_count(t); i < count; i++) {
                if (!isfinite(tensor_get_number(t, i)))
                    return status_fail(STATUS_INTERNAL,
                                       "the result holds a value that is not a finite number");
            }
        }
    }
    return STATUS_OK;
}

status language_write(text_buffer *out, const infer_request *r, tokenizer_scratch *scratch)
{
    language_task task = r->language->task;
    if (task == LANGUAGE_EMBED)
        return write_vectors(out, r); /* checks what it writes */
    if (task == LANGUAGE_SIMILARITY)
        return write_similarities(out, r);
    status failure = check_finite(r);
    if (failure)
        return failure;
    switch (task) {
    case LANGUAGE_EMBED_TOKENS:
        return write_token_vectors(out, r);
    case LANGUAGE_EMBED_SPARSE:
        write_sparse(out, r);
        return STATUS_OK;
    case LANGUAGE_RERANK:
        return language_write_ranks(out, r);
    default:
        return language_write_predictions(out, r, scratch);
    }
}
