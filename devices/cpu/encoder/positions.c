#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/encoder/internal.h"
#include "kernels/gemm_f32.h"
#include "kernels/rows.h"

/* Tables for attention: what distances add to scores, and the turns of rotary positions. */

/* Added where a token may not attend to another: no score comes near it, and it stays finite beside
 * every score. */
#define SCORE_OF_HIDDEN (-1e30f)

static bool is_hidden(const encoder *s, int64_t window, int64_t distance)
{
    int64_t away = distance < 0 ? -distance : distance;
    return (s->is_causal && distance > 0) || (window != 0 && away >= window);
}

static float bias_at(const encoder *s, int64_t window, int64_t head, int64_t distance)
{
    float bias = 0;
    if (is_hidden(s, window, distance))
        return SCORE_OF_HIDDEN;
    if (s->relative_table) {
        int64_t bucket =
            encoder_relative_bucket(s->relative_table->dims[0], s->relative_distance_max, distance);
        bias = ((const float *)s->relative_table->data)[bucket * s->heads + head];
    }
    return s->slopes ? bias - s->slopes[head] * (float)(distance < 0 ? -distance : distance) : bias;
}

static status make_bias(cpu_encoder *e, int64_t window)
{
    const encoder *s = &e->source;
    size_t span = 2 * e->length_max - 1;
    int64_t heads = s->relative_table || s->slopes ? s->heads : 1;
    if (e->bias_count == CPU_ENCODER_WINDOWS_MAX)
        return status_fail(STATUS_UNSUPPORTED, "more than %d windows of attention",
                           CPU_ENCODER_WINDOWS_MAX);
    cpu_encoder_bias *b = &e->biases[e->bias_count];
    *b = (cpu_encoder_bias){.window = window, .head_stride = heads > 1 ? span : 0};
    if (s->relative_table || s->slopes || s->is_causal || window != 0) {
        b->values = malloc((size_t)heads * span * sizeof(float));
        if (!b->values)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
        for (int64_t h = 0; h < heads; h++)
            for (size_t i = 0; i < span; i++)
                b->values[(size_t)h * span + i] =
                    bias_at(s, window, h, (int64_t)i - (int64_t)(e->length_max - 1));
    }
    e->bias_count++;
    return STATUS_OK;
}

static status make_rotary(cpu_encoder *e, const encoder_rotary *source)
{
    size_t half = (size_t)source->dims / 2, count = e->length_max * half;
    if (e->rotary_count == CPU_ENCODER_ROTARIES_MAX)
        return status_fail(STATUS_UNSUPPORTED, "more than %d rotations", CPU_ENCODER_ROTARIES_MAX);
    cpu_encoder_rotary r = {.source = source,
                            .cosines = malloc((count + 1) * sizeof(float)),
                            .sines = malloc((count + 1) * sizeof(float))};
    e->rotaries[e->rotary_count++] = r;
    if (!r.cosines || !r.sines)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    for (size_t i = 0; i < count; i++) {
        /* In binary32, as in the code that trained these models. */
        float angle = (float)(i / half) * source->frequencies[i % half];
        r.cosines[i] = cosf(angle);
        r.sines[i] = sinf(angle);
    }
    return STATUS_OK;
}

const cpu_encoder_bias *cpu_encoder_bias_of(const cpu_encoder *e, int64_t window)
{
    for (int i = 0; i < e->bias_count; i++)
        if (e->biases[i].window == window)
            return &e->biases[i];
    return NULL;
}

const cpu_encoder_rotary *cpu_encoder_rotary_of(const cpu_encoder *e, const encoder_rotary *source)
{
    for (int i = 0; i < e->rotary_count; i++)
        if (e->rotaries[i].source == source)
            return &e->rotaries[i];
    return NULL;
}

/* The table of distances, normalised: [rows, hidden]. NULL: no memory. */
static float *normalised_table(const cpu_encoder *e)
{
    const encoder *s = &e->source;
    const encoder_norm *norm = &s->distance_norm;
    size_t rows = 2 * (size_t)s->distance_span, width = (size_t)s->hidden;
    float *x = malloc(rows * width * sizeof *x);
    if (!x)
        return NULL;
    memcpy(x, s->distance_table->data, rows * width * sizeof *x);
    if (norm->scale)
        e->options.kernels->layer_norm_f32(
            &(layer_norm_f32){.rows = rows,
                              .width = width,
                              .x = x,
                              .x_stride = width,
                              .gamma = norm->scale->data,
                              .beta = norm->bias ? norm->bias->data : NULL,
                              .epsilon = norm->epsilon,
                              .out = x,
                              .out_stride = width});
    return x;
}

/* NULL: no memory. */
static float *apply_to_table(const cpu_encoder *e, const encoder_linear *l, const float *x)
{
    const encoder *s = &e->source;
    size_t rows = 2 * (size_t)s->distance_span, in = (size_t)s->hidden;
    size_t out = cpu_encoder_attended_width(s);
    float *y = malloc(rows * out * sizeof *y);
    if (!y)
        return NULL;
    e->options.kernels->gemm_unpacked_f32(
        &(gemm_f32_unpacked){.m = rows,
                             .n = out,
                             .k = in,
                             .a = x,
                             .a_stride = in,
                             .b = l->weight->data,
                             .b_row_stride = l->is_transposed ? 1 : out,
                             .b_column_stride = l->is_transposed ? in : 1,
                             .c = y,
                             .c_stride = out,
                             .epilogue = {.bias = l->bias ? l->bias->data : NULL}});
    return y;
}

static status make_distances(cpu_encoder *e)
{
    const encoder *s = &e->source;
    float *x = normalised_table(e);
    e->distances = calloc((size_t)s->layer_count + 1, sizeof *e->distances);
    e->distance_rows = malloc((2 * e->length_max) * sizeof *e->distance_rows);
    bool is_made = x && e->distances && e->distance_rows;
    for (size_t i = 0; i + 1 < 2 * e->length_max && is_made; i++)
        e->distance_rows[i] =
            (int32_t)encoder_distance_row(s, (int64_t)i - (int64_t)(e->length_max - 1));
    for (int i = 0; i < s->layer_count && is_made; i++) {
        const encoder_layer *l = &s->layers[i];
        cpu_encoder_distances *d = &e->distances[i];
        if (l->position_key.weight)
            is_made = (d->keys = apply_to_table(e, &l->position_key, x)) != NULL;
        if (is_made && l->position_query.weight)
            is_made = (d->queries = apply_to_table(e, &l->position_query, x)) != NULL;
    }
    free(x);
    return is_made ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
}

status cpu_encoder_make_positions(cpu_encoder *e)
{
    status s = STATUS_OK;
    for (int i = 0; i < e->source.layer_count && !s; i++) {
        const encoder_layer *l = &e->source.layers[i];
        if (!cpu_encoder_bias_of(e, l->window))
            s = make_bias(e, l->window);
        if (!s && l->rotary && !cpu_encoder_rotary_of(e, l->rotary))
            s = make_rotary(e, l->rotary);
    }
    return s || !e->source.distance_table ? s : make_distances(e);
}

void cpu_encoder_drop_positions(cpu_encoder *e)
{
    for (int i = 0; i < e->bias_count; i++)
        free(e->biases[i].values);
    for (int i = 0; i < e->rotary_count; i++) {
        free(e->rotaries[i].cosines);
        free(e->rotaries[i].sines);
    }
    for (int i = 0; i < e->source.layer_count && e->distances; i++) {
        free(e->distances[i].keys);
        free(e->distances[i].queries);
    }
    free(e->distances);
    free(e->distance_rows);
}
