#include "devices/cpu/encoder/encoder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/encoder/internal.h"

/* Tokens of a sequence when no position table limits them. */
#define LENGTH_MAX 8192

size_t cpu_encoder_length_max(const encoder *s)
{
    if (!s->position_table)
        return LENGTH_MAX;
    int64_t rows = s->position_table->dims[0];
    int64_t before =
        s->positions == ENCODER_POSITIONS_FROM_IDS ? s->pad_id + 1 : s->position_offset;
    return rows > before ? (size_t)(rows - before) : 0;
}

static status check(const encoder *s, const graph *g)
{
    const tensor *tables[] = {s->word_table, s->position_table, s->token_type_table,
                              s->relative_table};
    for (int i = 0; i < 4; i++)
        if (tables[i] && (tables[i]->dtype != DTYPE_F32 || tables[i]->rank != 2))
            return status_fail(STATUS_UNSUPPORTED, "an embedding table is %s",
                               dtype_name(tables[i]->dtype));
    if (s->word_table && s->word_table->dims[1] > 3 * s->hidden)
        return status_fail(STATUS_UNSUPPORTED, "embeddings of %lld numbers for layers of %lld",
                           (long long)s->word_table->dims[1], (long long)s->hidden);
    const graph_value *ids = &g->values[g->inputs[s->ids_input]];
    if (ids->shape.dims[1].sequence == 0)
        return status_fail(STATUS_UNSUPPORTED, "rows of input \"%s\" have a fixed length",
                           ids->name);
    for (int i = 0; i < g->output_count; i++) {
        const graph_value *v = &g->values[g->outputs[i]];
        if (v->has_dtype && v->dtype != DTYPE_F32)
            return status_fail(STATUS_UNSUPPORTED, "output \"%s\" is %s", v->name,
                               dtype_name(v->dtype));
    }
    if (s->word_table == NULL || s->output_count != g->output_count ||
        s->hidden != s->heads * s->head_dim)
        return status_fail(STATUS_UNSUPPORTED, "an encoder of an unknown shape");
    return STATUS_OK;
}

/* T5's bidirectional buckets ("Exploring the Limits of Transfer Learning", appendix; Mesh
 * TensorFlow's relative_position_bucket): half of them for each direction, the nearer half of those
 * one by one, the others logarithmically. */
static int64_t bucket_of(const encoder *s, int64_t distance)
{
    int64_t buckets = s->relative_table->dims[0] / 2, exact = buckets / 2;
    int64_t bucket = distance > 0 ? buckets : 0, away = distance < 0 ? -distance : distance;
    if (away < exact)
        return bucket + away;
    double ratio = __builtin_log((double)away / (double)exact) /
                   __builtin_log((double)s->relative_distance_max / (double)exact);
    int64_t far = exact + (int64_t)(ratio * (double)(buckets - exact));
    return bucket + (far < buckets - 1 ? far : buckets - 1);
}

static bool make_relative_bias(cpu_encoder *e)
{
    const encoder *s = &e->source;
    if (!s->relative_table)
        return true;
    size_t span = 2 * e->length_max - 1;
    e->relative_bias = malloc((size_t)s->heads * span * sizeof(float));
    if (!e->relative_bias)
        return false;
    const float *table = s->relative_table->data;
    for (size_t i = 0; i < span; i++) {
        int64_t bucket = bucket_of(s, (int64_t)i - (int64_t)(e->length_max - 1));
        for (int64_t h = 0; h < s->heads; h++)
            e->relative_bias[(size_t)h * span + i] = table[bucket * s->heads + h];
    }
    return true;
}

status cpu_encoder_create(encoder *source, const cpu_encoder_options *options, cpu_encoder **out)
{
    cpu_encoder *e = calloc(1, sizeof *e);
    if (!e) {
        encoder_dispose(source);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    }
    e->source = *source;
    e->options = *options;
    e->length_max = cpu_encoder_length_max(&e->source);
    status s = check(&e->source, options->graph);
    if (s)
        goto fail;
    size_t layers = (size_t)e->source.layer_count;
    e->plan = calloc(layers * ENCODER_LINEARS + 1, sizeof *e->plan);
    e->layers = calloc(layers + 1, sizeof *e->layers);
    if (!e->plan || !e->layers || !make_relative_bias(e)) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
        goto fail;
    }
    for (int o = 0; o < e->source.output_count; o++) {
        const encoder_output *output = &e->source.outputs[o];
        e->has_hidden |= output->pooling == ENCODER_POOLING_NONE;
        for (int h = 0; h < output->head_count; h++) {
            const encoder_linear *l = &output->head[h].linear;
            size_t width = (size_t)l->weight->dims[l->is_transposed ? 0 : 1];
            e->head_width_max = width > e->head_width_max ? width : e->head_width_max;
        }
    }
    cpu_encoder_plan_all(e, options->precision);
    if (cpu_encoder_cache_load(e) != STATUS_OK) {
        s = cpu_encoder_check_accuracy(e);
        if (s)
            goto fail;
        cpu_encoder_cache_store(e);
    }
    e->options.cancel = NULL;
    *out = e;
    return STATUS_OK;
fail:
    cpu_encoder_destroy(e);
    return s;
}

void cpu_encoder_destroy(cpu_encoder *e)
{
    if (!e)
        return;
    cpu_encoder_drop_image(e);
    encoder_dispose(&e->source);
    free(e->plan);
    free(e->layers);
    free(e->relative_bias);
    free(e->report);
    free(e);
}
