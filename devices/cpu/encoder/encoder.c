#include "devices/cpu/encoder/encoder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/encoder/internal.h"

/* Tokens of a sequence when no position table limits them. */
#define LENGTH_MAX 8192

size_t cpu_encoder_length_max(const encoder *s)
{
    size_t longest = s->length_max > 0 ? (size_t)s->length_max : LENGTH_MAX;
    if (!s->position_table)
        return longest;
    int64_t rows = s->position_table->dims[0];
    int64_t before =
        s->positions == ENCODER_POSITIONS_FROM_IDS ? s->pad_id + 1 : s->position_offset;
    size_t known = rows > before ? (size_t)(rows - before) : 0;
    return s->length_max > 0 && known > longest ? longest : known;
}

static status check(const encoder *s, const graph *g)
{
    const tensor *tables[] = {s->word_table, s->position_table, s->token_type_table,
                              s->relative_table};
    for (int i = 0; i < 4; i++)
        if (tables[i] && (tables[i]->dtype != DTYPE_F32 || tables[i]->rank != 2))
            return status_fail(STATUS_UNSUPPORTED, "an embedding table is %s",
                               dtype_name(tables[i]->dtype));
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
    for (int i = 0; i < s->layer_count; i++)
        if ((s->layers[i].gate.weight != NULL) != (s->layers[0].gate.weight != NULL))
            return status_fail(STATUS_UNSUPPORTED, "only some layers are gated");
    if (s->word_table == NULL || s->output_count != g->output_count || s->kv_heads < 1 ||
        s->heads % s->kv_heads != 0)
        return status_fail(STATUS_UNSUPPORTED, "an encoder of an unknown shape");
    return STATUS_OK;
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
    if (!e->plan || !e->layers) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
        goto fail;
    }
    s = cpu_encoder_make_positions(e);
    if (s)
        goto fail;
    for (int o = 0; o < e->source.output_count; o++) {
        const encoder_output *output = &e->source.outputs[o];
        size_t pooled = (size_t)e->source.hidden * (size_t)(1 + output->also_count);
        e->pooled_width_max = pooled > e->pooled_width_max ? pooled : e->pooled_width_max;
        e->has_hidden |= output->pooling == ENCODER_POOLING_NONE;
        for (int h = 0; h < output->head_count; h++) {
            const encoder_linear *l = &output->head[h].linear;
            if (!l->weight)
                continue;
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
    cpu_encoder_drop_positions(e);
    encoder_dispose(&e->source);
    free(e->plan);
    free(e->layers);
    free(e->report);
    free(e);
}
