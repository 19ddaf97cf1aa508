#include "graph/encoder/encoder.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xorshift.h"
#include "graph/encoder/internal.h"

/* Longest sequences of the last checks: their cost grows with the square of the length. */
#define LENGTH_CHECKED_MAX 1024
#define BIAS_CHECKED_MAX 300

double recogniser_draw_number(encoder_recogniser *r)
{
    return (double)(xorshift64_next(&r->random) >> 11) / 4503599627370496.0 - 1;
}

static status allocate_like(const encoder_recogniser *r, arena *memory, graph_value_index v,
                            tensor *out)
{
    const graph_value *value = &r->m.g->values[v];
    int64_t dims[TENSOR_RANK_MAX];
    for (int i = 0; i < value->shape.rank; i++)
        dims[i] = value->shape.dims[i].constant;
    return tensor_allocate(out, memory, value->dtype, value->shape.rank, dims);
}

status recogniser_draw_tensor(encoder_recogniser *r, arena *memory, graph_value_index v,
                              double reach, tensor *out)
{
    status s = allocate_like(r, memory, v, out);
    for (int64_t i = 0; s == STATUS_OK && i < tensor_count(out); i++)
        tensor_set_number(out, i, reach * recogniser_draw_number(r));
    return s;
}

status recogniser_draw_mask(encoder_recogniser *r, arena *memory, graph_value_index v, bool is_full,
                            tensor *out)
{
    status s = allocate_like(r, memory, v, out);
    if (s)
        return s;
    for (int64_t i = 0; i < tensor_count(out); i++)
        tensor_set_number(out, i, is_full || recogniser_draw_number(r) > 0 ? 1 : 0);
    for (int64_t row = 0; row < r->batch; row++) {
        int64_t one = (int64_t)(fabs(recogniser_draw_number(r)) * (double)r->length) % r->length;
        tensor_set_number(out, row * r->length + one, 1);
    }
    return STATUS_OK;
}

double recogniser_tolerance(const encoder_recogniser *r, graph_value_index v)
{
    switch (r->m.g->values[v].dtype) {
    case DTYPE_F16:
        return 4e-3;
    case DTYPE_BF16:
        return 3e-2;
    default:
        return 1e-5;
    }
}

status recogniser_reject(const encoder_recogniser *r, graph_value_index v, const char *format, ...)
{
    char why[STATUS_MESSAGE_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    const graph *g = r->m.g;
    if (g->values[v].producer < 0)
        return status_fail(STATUS_UNSUPPORTED, "value \"%.200s\": %.700s", g->values[v].name, why);
    const graph_node *n = &g->nodes[g->values[v].producer];
    return status_fail(STATUS_UNSUPPORTED, "node \"%.200s\" (%s): %.700s", n->name,
                       graph_op_title(n->op), why);
}

status recogniser_set_mask(encoder_recogniser *r, uint32_t inputs, graph_value_index reader)
{
    const graph *g = r->m.g;
    bool is_first = !r->is_mask_known;
    r->is_mask_known = true;
    if (inputs == 0)
        return r->e->mask_input < 0 ? STATUS_OK
                                    : recogniser_reject(r, reader,
                                                        "it does not use the mask that "
                                                        "another part uses");
    if (!is_first && r->e->mask_input < 0)
        return recogniser_reject(r, reader, "it uses a mask, and another part does not");
    int input = 0;
    while (!(inputs >> input & 1))
        input++;
    if (inputs >> input != 1 || input >= 31)
        return recogniser_reject(r, reader, "the mask depends on more than one input");
    graph_value_index v = g->inputs[input];
    if (r->e->mask_input >= 0 && r->e->mask_input != input)
        return recogniser_reject(r, reader, "another mask, input \"%s\", is used elsewhere",
                                 g->values[g->inputs[r->e->mask_input]].name);
    if (input == r->e->ids_input || input == r->e->token_type_input)
        return recogniser_reject(r, reader, "the mask is computed from input \"%s\"",
                                 g->values[v].name);
    if (match_count(&r->m, v) != r->batch * r->length || match_dim(&r->m, v, -1) != r->length)
        return recogniser_reject(r, reader, "the mask \"%s\" is not one number per token",
                                 g->values[v].name);
    r->e->mask_input = input;
    return STATUS_OK;
}

static status reject_quantised(const graph *g)
{
    for (int32_t i = 0; i < g->node_count; i++)
        switch (g->nodes[i].op) {
        case GRAPH_OP_QUANTIZE_LINEAR:
        case GRAPH_OP_DEQUANTIZE_LINEAR:
        case GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR:
        case GRAPH_OP_MATMUL_INTEGER:
        case GRAPH_OP_QLINEAR_MATMUL:
            return status_fail(STATUS_UNSUPPORTED,
                               "node \"%.200s\" (%s): the dense layers are quantised by the model "
                               "itself",
                               g->nodes[i].name, graph_op_title(g->nodes[i].op));
        default:
            break;
        }
    return STATUS_OK;
}

/* The last layer normalisation over [batch, length, hidden]: its result is the hidden states. */
static status find_hidden(encoder_recogniser *r, graph_value_index *hidden)
{
    const graph *g = r->m.g;
    for (int32_t i = g->node_count - 1; i >= 0; i--) {
        graph_value_index v = g->nodes[i].outputs[0], x;
        encoder_norm norm;
        if (v == GRAPH_NO_VALUE || !r->m.is_hidden[v] || !dtype_is_float(g->values[v].dtype) ||
            match_dim(&r->m, v, -1) <= 1 ||
            match_count(&r->m, v) != r->batch * r->length * match_dim(&r->m, v, -1))
            continue;
        if (g->values[v].shape.rank < 2 || match_skip_views(&r->m, v) != v ||
            !recogniser_find_norm(r, v, &x, &norm))
            continue;
        *hidden = v;
        r->e->hidden = match_dim(&r->m, v, -1);
        return STATUS_OK;
    }
    return status_fail(STATUS_UNSUPPORTED, ENCODER_WITHOUT_NORM);
}

/* Reads batch and length off the input of token ids: exporters may have fixed one or both. */
static status find_sizes(encoder_recogniser *r)
{
    const graph *g = r->m.g;
    for (int i = 0; i < g->input_count; i++) {
        graph_value_index v = g->inputs[i];
        if (g->values[v].shape.rank != 2 || !dtype_is_integer(g->values[v].dtype))
            continue;
        r->batch = match_dim(&r->m, v, 0);
        r->length = match_dim(&r->m, v, 1);
        return r->batch > 0 && r->length > 0
                   ? STATUS_OK
                   : status_fail(STATUS_UNSUPPORTED, "input \"%s\" is empty", g->values[v].name);
    }
    return status_fail(STATUS_UNSUPPORTED, "no input of token ids [batch, length]");
}

static status read_outputs(encoder_recogniser *r, graph_value_index hidden)
{
    const graph *g = r->m.g;
    encoder *e = r->e;
    if (g->output_count > ENCODER_OUTPUTS_MAX)
        return status_fail(STATUS_UNSUPPORTED, "more than %d outputs", ENCODER_OUTPUTS_MAX);
    e->output_count = g->output_count;
    for (int i = 0; i < g->output_count; i++) {
        if (g->values[g->outputs[i]].dtype != DTYPE_F32)
            return status_fail(STATUS_UNSUPPORTED, "output \"%s\" is %s, not f32",
                               g->values[g->outputs[i]].name,
                               dtype_name(g->values[g->outputs[i]].dtype));
        status s = recogniser_read_output(r, g->outputs[i], hidden, &e->outputs[i]);
        if (s)
            return status_prefix(s, "output \"%.200s\"", g->values[g->outputs[i]].name);
    }
    return STATUS_OK;
}

/* Reads the whole graph, from its outputs back to its inputs. Inputs that nothing reads do no harm;
 * a graph of which only some part reads an input has been rejected by then. */
static status recognise_parts(encoder_recogniser *r)
{
    graph_value_index hidden = GRAPH_NO_VALUE, embedded = GRAPH_NO_VALUE;
    status s = find_sizes(r);
    if (s || (s = find_hidden(r, &hidden)) || (s = recogniser_read_layers(r, hidden, &embedded)) ||
        r->is_for_bias || (s = recogniser_read_embeddings(r, embedded)))
        return s;
    if (r->e->mask_input >= 0 &&
        (r->e->mask_input == r->e->ids_input || r->e->mask_input == r->e->token_type_input))
        return status_fail(STATUS_UNSUPPORTED, "the attention mask is computed from the token ids");
    return read_outputs(r, hidden);
}

static status specialise_at(const encoder_recogniser *r, int64_t batch, int64_t sequence,
                            graph **out)
{
    const graph *g = r->source;
    tensor *inputs = calloc((size_t)g->input_count + 1, sizeof inputs[0]);
    status s = inputs == NULL ? status_fail(STATUS_OUT_OF_MEMORY, "no memory")
                              : graph_bind(g, batch, sequence, inputs);
    if (s == STATUS_OK)
        s = graph_specialise(g, &(graph_binding){inputs, r->budget}, r->evaluate, out);
    free(inputs);
    return s;
}

/* Recognises the graph at one size. What encoder_recognise() sets in `r` is set; fills *e, also
 * when it fails, so the caller disposes of it in any case. */
static status recognise_at(encoder_recogniser *r, int64_t batch, int64_t sequence, encoder *e)
{
    graph *made = NULL;
    *e = (encoder){.ids_input = -1, .mask_input = -1, .token_type_input = -1};
    r->e = e;
    r->random = 0x9E3779B97F4A7C15u;
    r->is_mask_known = false;
    r->counted_term = GRAPH_NO_VALUE;
    r->counted_table = NULL;
    status s = specialise_at(r, batch, sequence, &made);
    if (s == STATUS_OK)
        s = graph_cost_check(made, r->budget); /* before experiments compute parts of it */
    if (s == STATUS_OK)
        s = reject_quantised(made);
    if (s == STATUS_OK && (s = match_open(&r->m, made, r->budget, r->evaluate)) == STATUS_OK)
        s = recognise_parts(r);
    match_close(&r->m);
    graph_destroy(made);
    return s;
}

static bool same_tensor(const tensor *a, const tensor *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->dtype == b->dtype && tensor_same_shape(a, b) &&
           (a->data == b->data || memcmp(a->data, b->data, tensor_bytes(a)) == 0);
}

static bool same_linear(const encoder_linear *a, const encoder_linear *b)
{
    return same_tensor(a->weight, b->weight) && same_tensor(a->bias, b->bias) &&
           a->is_transposed == b->is_transposed;
}

static bool same_norm(const encoder_norm *a, const encoder_norm *b)
{
    return same_tensor(a->scale, b->scale) && same_tensor(a->bias, b->bias) &&
           a->epsilon == b->epsilon;
}

static bool same_layer(const encoder_layer *a, const encoder_layer *b)
{
    return same_linear(&a->query, &b->query) && same_linear(&a->key, &b->key) &&
           same_linear(&a->value, &b->value) &&
           same_linear(&a->attention_output, &b->attention_output) &&
           same_norm(&a->attention_norm, &b->attention_norm) && same_linear(&a->up, &b->up) &&
           same_linear(&a->down, &b->down) && a->activation == b->activation &&
           same_norm(&a->output_norm, &b->output_norm);
}

static bool same_output(const encoder_output *a, const encoder_output *b)
{
    bool is_same = a->pooling == b->pooling && a->head_count == b->head_count &&
                   a->is_normalised == b->is_normalised && a->norm_epsilon == b->norm_epsilon &&
                   a->is_column == b->is_column;
    for (int i = 0; is_same && i < a->head_count; i++)
        is_same = same_linear(&a->head[i].linear, &b->head[i].linear) &&
                  a->head[i].activation == b->head[i].activation;
    return is_same;
}

/* Recognition at two sizes must find the same encoder: otherwise two sizes were confused that
 * happened to be equal, or the graph behaves differently at another length. */
static bool same_encoder(const encoder *a, const encoder *b)
{
    bool is_same = a->hidden == b->hidden && a->heads == b->heads &&
                   a->intermediate == b->intermediate && a->attention_scale == b->attention_scale &&
                   a->ids_input == b->ids_input && a->mask_input == b->mask_input &&
                   a->token_type_input == b->token_type_input && a->positions == b->positions &&
                   a->position_offset == b->position_offset && a->pad_id == b->pad_id &&
                   a->relative_distance_max == b->relative_distance_max &&
                   a->layer_count == b->layer_count && a->output_count == b->output_count &&
                   same_tensor(a->word_table, b->word_table) &&
                   same_tensor(a->position_table, b->position_table) &&
                   same_tensor(a->token_type_table, b->token_type_table) &&
                   same_tensor(a->relative_table, b->relative_table) &&
                   same_norm(&a->embedding_norm, &b->embedding_norm) &&
                   same_linear(&a->embedding_projection, &b->embedding_projection);
    for (int i = 0; is_same && i < a->layer_count; i++)
        is_same = same_layer(&a->layers[i], &b->layers[i]);
    for (int i = 0; is_same && i < a->output_count; i++)
        is_same = same_output(&a->outputs[i], &b->outputs[i]);
    return is_same;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The longest sequence that the graph and the position table allow. */
static int64_t longest_of(const graph *g, const encoder *e)
{
    int64_t longest = g->sequence_max > 0 ? g->sequence_max : INT64_MAX;
    if (e->positions != ENCODER_POSITIONS_NONE)
        longest = least(longest, e->position_table->dims[0] - e->position_offset);
    return longest;
}

/* Checks that `made`, specialised for a longer sequence, adds the position embeddings that the
 * encoder expects: consecutive rows from position_offset on. */
static status check_positions(const encoder_recogniser *r, const graph *made, const encoder *e)
{
    if (e->positions != ENCODER_POSITIONS_COUNTED || r->counted_term == GRAPH_NO_VALUE)
        return STATUS_OK;
    const char *name = r->source->values[r->counted_term].name;
    graph_value_index v = graph_find_value(made, name);
    const tensor *t = v == GRAPH_NO_VALUE ? NULL : made->values[v].constant;
    const tensor *table = r->counted_table;
    if (t == NULL)
        return STATUS_OK;
    int64_t width = table->dims[table->rank - 1], rows = tensor_count(t) / width;
    size_t row_bytes = (size_t)width * dtype_bytes(table->dtype);
    if (t->dtype == table->dtype && rows <= table->dims[table->rank - 2] - e->position_offset &&
        memcmp(t->data, (const char *)table->data + (size_t)e->position_offset * row_bytes,
               (size_t)rows * row_bytes) == 0)
        return STATUS_OK;
    return status_fail(
        STATUS_UNSUPPORTED,
        "value \"%.200s\": in sequences of %lld tokens, positions are not counted one by one", name,
        (long long)rows);
}

static bool is_uniform(const tensor *t)
{
    size_t bytes = dtype_bytes(t->dtype);
    for (int64_t i = 1; i < tensor_count(t); i++)
        if (memcmp(t->data, (const char *)t->data + (size_t)i * bytes, bytes) != 0)
            return false;
    return true;
}

/* Checks that whatever is combined with hidden values and has one number per pair of tokens, such
 * as an attention window, holds the same number for all pairs while no key is masked. */
static status check_pairs(encoder_recogniser *r, const encoder *e)
{
    const graph *g = r->m.g;
    int64_t n = r->length;
    status s = STATUS_OK;
    for (int32_t i = 0; s == STATUS_OK && i < g->node_count; i++) {
        const graph_node *node = &g->nodes[i];
        for (int k = 0; s == STATUS_OK && k < node->input_count; k++) {
            graph_value_index v = node->inputs[k];
            if (v == GRAPH_NO_VALUE || node->outputs[0] == GRAPH_NO_VALUE || r->m.is_hidden[v] ||
                !r->m.is_hidden[node->outputs[0]] || match_dim(&r->m, v, -1) != n ||
                match_dim(&r->m, v, -2) != n)
                continue;
            arena memory = {0};
            tensor mask, t;
            graph_value_index bound = e->mask_input >= 0 ? g->inputs[e->mask_input] : 0;
            if (e->mask_input >= 0)
                s = recogniser_draw_mask(r, &memory, bound, true, &mask);
            if (s == STATUS_OK)
                s = match_experiment(&r->m, &memory, e->mask_input >= 0, &bound, &mask, v, &t);
            if (s == STATUS_OK && !is_uniform(&t))
                s = recogniser_reject(r, v,
                                      "in sequences of %lld tokens, attention depends on positions",
                                      (long long)n);
            arena_dispose(&memory);
        }
    }
    return s;
}

/* Checks what short sequences cannot show: clipped positions, attention windows. */
static status check_longest(encoder_recogniser *r, encoder *e)
{
    graph *made = NULL;
    int64_t length = least(longest_of(r->source, e), LENGTH_CHECKED_MAX);
    /* A length that no weight matrix has: then [length, length] means pairs of tokens. */
    while (length > 1 &&
           (length == e->hidden || length == e->intermediate || length == e->head_dim))
        length--;
    /* A graph that does not exist at this length need not be right there. */
    status s = specialise_at(r, 1, length, &made);
    if (s)
        return cancel_is_end(s) ? s : STATUS_OK;
    s = graph_cost_check(made, r->budget);
    if (s == STATUS_OK)
        s = check_positions(r, made, e);
    if (s == STATUS_OK && e->relative_table == NULL &&
        (s = match_open(&r->m, made, r->budget, r->evaluate)) == STATUS_OK) {
        s = find_sizes(r);
        if (s == STATUS_OK && r->length == length)
            s = check_pairs(r, e);
        match_close(&r->m);
    }
    graph_destroy(made);
    return s;
}

/* Finds the relative bias again in a longer sequence: at the first lengths each distance has a
 * bucket of its own. */
static status check_bias(encoder_recogniser *r, encoder *e)
{
    encoder longer = {.hidden = 0};
    if (e->relative_table == NULL)
        return STATUS_OK;
    r->is_for_bias = true;
    status s = recognise_at(r, 1, least(longest_of(r->source, e), BIAS_CHECKED_MAX), &longer);
    if (s == STATUS_OK && !same_tensor(e->relative_table, longer.relative_table))
        s = status_fail(STATUS_UNSUPPORTED, "the relative bias of longer sequences differs");
    e->relative_distance_max = longer.relative_distance_max;
    encoder_dispose(&longer);
    return s;
}

status encoder_recognise(const graph *g, const graph_budget *budget, graph_evaluate_fn evaluate,
                         encoder *out)
{
    assert(g != NULL && evaluate != NULL && out != NULL);
    encoder_recogniser r = {.source = g, .budget = budget, .evaluate = evaluate};
    encoder first = {.hidden = 0}, second = {.hidden = 0};
    if (g->described != NULL) {
        *out = *g->described;
        return STATUS_OK;
    }
    int64_t longest = longest_of(g, &first);
    status s = recognise_at(&r, 2, least(longest, 5), &first);
    if (s == STATUS_OK)
        s = recognise_at(&r, 3, least(longest, 4), &second);
    if (s == STATUS_OK && !same_encoder(&first, &second))
        s = status_fail(STATUS_UNSUPPORTED, "the graph is a different encoder at another length");
    if (s == STATUS_OK)
        s = check_longest(&r, &first);
    if (s == STATUS_OK)
        s = check_bias(&r, &first);
    first.kv_heads = first.heads;
    encoder_dispose(&second);
    if (s)
        encoder_dispose(&first);
    else
        *out = first;
    return s;
}

void encoder_dispose(encoder *e)
{
    arena_dispose(&e->memory);
    *e = (encoder){.hidden = 0};
}
