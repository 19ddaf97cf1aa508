#include "models/batching/describe.h"

#include <string.h>

#include "base/text/nearest.h"

static bool is_batch(graph_dim d)
{
    return !d.is_unknown && d.constant == 0 && d.batch == 1 && d.sequence == 0 &&
           d.batch_sequence == 0;
}

static bool is_sequence(graph_dim d)
{
    return !d.is_unknown && d.constant == 0 && d.batch == 0 && d.sequence == 1 &&
           d.batch_sequence == 0;
}

static status describe_value(const model *m, graph_value_index index, model_tensor *t)
{
    const graph_value *v = &m->graph->values[index];
    if (v->shape.rank < 0 || v->shape.rank > TENSOR_RANK_MAX || !v->has_dtype)
        return status_fail(STATUS_UNSUPPORTED, "tensor \"%s\": its type or shape is not known",
                           v->name);
    *t = (model_tensor){.name = v->name,
                        .dtype = v->dtype,
                        .rank = v->shape.rank,
                        .dim_names = v->dim_names,
                        .batch_axis = -1,
                        .sequence_axis = -1};
    for (int i = 0; i < t->rank; i++) {
        graph_dim d = v->shape.dims[i];
        t->dims[i] = graph_dim_is_constant(d) ? d.constant : -1;
        if (model_is_whole(m))
            continue; /* every dim that varies may be any size */
        if (i == 0 && is_batch(d))
            t->batch_axis = 0;
        else if (is_sequence(d) && t->sequence_axis < 0)
            t->sequence_axis = i;
    }
    return STATUS_OK;
}

/* The table that a Gather reads, seen through casts and dequantisation; or NULL. */
static const tensor *table_of(const graph *g, graph_value_index table)
{
    while (g->values[table].constant == NULL) {
        int32_t producer = g->values[table].producer;
        graph_op op = producer >= 0 ? g->nodes[producer].op : GRAPH_OP_COUNT;
        if (op != GRAPH_OP_CAST && op != GRAPH_OP_IDENTITY && op != GRAPH_OP_DEQUANTIZE_LINEAR)
            return NULL;
        table = graph_input_of(&g->nodes[producer], 0);
    }
    return g->values[table].constant;
}

static int64_t find_limit(const graph *g, graph_value_index value, int rank_least, int depth)
{
    int64_t limit = INT64_MAX;
    for (int32_t i = 0; i < g->node_count; i++) {
        const graph_node *n = &g->nodes[i];
        int64_t rows = INT64_MAX;
        if (n->op == GRAPH_OP_CAST && graph_input_of(n, 0) == value && depth < 4) {
            rows = find_limit(g, n->outputs[0], rank_least, depth + 1);
        } else if (n->op == GRAPH_OP_GATHER && graph_input_of(n, 1) == value &&
                   graph_attribute_int(n, "axis", 0) == 0) {
            const tensor *table = table_of(g, graph_input_of(n, 0));
            rows = table != NULL && table->rank >= rank_least ? table->dims[0] : INT64_MAX;
        }
        limit = rows < limit ? rows : limit;
    }
    return limit;
}

int64_t describe_index_limit(const graph *g, graph_value_index value, int rank_least)
{
    return find_limit(g, value, rank_least, 0);
}

static void apply(model_tensor *t, const manifest_input *declared, bool is_hugging_face)
{
    t->is_mask = strcmp(t->name, "attention_mask") == 0 && t->sequence_axis >= 0;
    /* An ONNX file requires every input; of a Hugging Face model it is known which ones a
     * tokenizer may leave out. */
    t->is_optional = is_hugging_face && (t->is_mask || strcmp(t->name, "token_type_ids") == 0);
    if (declared != NULL) {
        if (declared->has_mask)
            t->is_mask = declared->is_mask;
        if (declared->has_optional)
            t->is_optional = declared->is_optional;
        t->pad_value = declared->pad_value;
        t->default_value = declared->default_value;
    }
}

status describe_tensors(model *m, const manifest *file, bool is_hugging_face)
{
    const graph *g = m->graph;
    if (g->input_count > MODEL_TENSORS_MAX || g->output_count > MODEL_TENSORS_MAX)
        return status_fail(STATUS_UNSUPPORTED, "over %d inputs or outputs", MODEL_TENSORS_MAX);
    m->input_count = g->input_count;
    m->output_count = g->output_count;
    m->on_device.mask_input = -1;
    const char *names[MODEL_TENSORS_MAX];
    for (int i = 0; i < m->input_count; i++) {
        model_tensor *t = &m->inputs[i];
        status failure = describe_value(m, g->inputs[i], t);
        if (failure)
            return failure;
        for (int k = 0; k < t->rank; k++) {
            const graph_dim *d = &g->values[g->inputs[i]].shape.dims[k];
            if (d->is_unknown && !model_is_whole(m))
                return status_fail(STATUS_UNSUPPORTED,
                                   "input \"%s\": dim %d is neither batch nor sequence; give its "
                                   "size in model.json: \"dims\": {\"NAME\": SIZE}",
                                   t->name, k);
        }
        apply(t, manifest_find_input(file, t->name), is_hugging_face);
        /* ONNX lets an index count from the end of a table; a token id never does. */
        int64_t limit =
            dtype_is_integer(t->dtype) ? describe_index_limit(g, g->inputs[i], 2) : INT64_MAX;
        t->id_limit = limit < INT64_MAX ? limit : 0;
        if (t->is_mask && m->on_device.mask_input < 0)
            m->on_device.mask_input = i;
        names[i] = t->name;
    }
    for (int i = 0; i < m->output_count; i++) {
        status failure = describe_value(m, g->outputs[i], &m->outputs[i]);
        if (failure)
            return failure;
    }
    for (int i = 0; i < file->input_count; i++) {
        int k = 0;
        while (k < m->input_count && strcmp(names[k], file->inputs[i].name) != 0)
            k++;
        if (k < m->input_count)
            continue;
        const char *nearest = nearest_find(file->inputs[i].name, names, (size_t)m->input_count);
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "model.json: inputs.%s: the model has no such input%s%s%s",
                           file->inputs[i].name, nearest ? "; did you mean \"" : "",
                           nearest ? nearest : "", nearest ? "\"?" : "");
    }
    return STATUS_OK;
}

bool describe_has_batch(const model *m)
{
    for (int i = 0; i < m->input_count; i++)
        if (m->inputs[i].batch_axis == 0)
            return true;
    return false;
}

bool describe_has_sequence(const model *m)
{
    for (int i = 0; i < m->input_count; i++)
        if (m->inputs[i].sequence_axis >= 0)
            return true;
    return false;
}
