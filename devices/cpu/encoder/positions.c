#include <math.h>
#include <stdlib.h>

#include "devices/cpu/encoder/internal.h"

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
    return s;
}

void cpu_encoder_drop_positions(cpu_encoder *e)
{
    for (int i = 0; i < e->bias_count; i++)
        free(e->biases[i].values);
    for (int i = 0; i < e->rotary_count; i++) {
        free(e->rotaries[i].cosines);
        free(e->rotaries[i].sines);
    }
}
