#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "graph/hugging_face/hugging_face.h"

static graph_value_index add_token_input(graph *g, const char *name)
{
    graph_dim dims[] = {{.batch = 1}, {.sequence = 1}};
    return graph_add_input(g, name, DTYPE_I64, 2, dims);
}

static void add_inputs(hf_builder *b)
{
    const hf_config *c = b->config;
    b->ids = add_token_input(b->g, "input_ids");
    b->mask = add_token_input(b->g, "attention_mask");
    b->types = GRAPH_NO_VALUE;
    if ((c->family == HF_BERT || c->family == HF_ELECTRA) && c->types > 1)
        b->types = add_token_input(b->g, "token_type_ids");
}

static graph_value_index add_pooler(hf_builder *b, graph_value_index hidden)
{
    graph_value_index x = hf_linear(b, hf_first_token(b, hidden), hf_name(b, "pooler.dense"));
    return hf_unary(b, GRAPH_OP_TANH, x);
}

/* [B,S,hidden] to [B,labels]. */
static graph_value_index add_sequence_head(hf_builder *b, graph_value_index hidden)
{
    const char *dense = hf_root_name(b, "classifier.dense");
    graph_value_index x;
    switch (b->config->family) {
    case HF_BERT:
        return hf_linear(b, add_pooler(b, hidden), hf_root_name(b, "classifier"));
    case HF_DISTILBERT:
        x = hf_linear(b, hf_first_token(b, hidden), hf_root_name(b, "pre_classifier"));
        x = hf_unary(b, GRAPH_OP_RELU, x);
        return hf_linear(b, x, hf_root_name(b, "classifier"));
    case HF_ELECTRA:
        x = hf_activation(b, hf_linear(b, hf_first_token(b, hidden), dense), "gelu");
        break;
    case HF_ROBERTA:
    case HF_MPNET:
    default:
        x = hf_unary(b, GRAPH_OP_TANH, hf_linear(b, hf_first_token(b, hidden), dense));
        break;
    }
    return hf_linear(b, x, hf_root_name(b, "classifier.out_proj"));
}

/* Extractive question answering: [B,S,hidden] to the logits of the start and the end of the answer
 * at each token, [B,S] each. */
static void add_answer_spans(hf_builder *b, graph_value_index hidden)
{
    graph_value_index spans = hf_linear(b, hidden, hf_root_name(b, "qa_outputs"));
    graph_attribute axis = graph_make_int("axis", -1);
    graph_value_index start[] = {spans, hf_int(b, 0)}, end[] = {spans, hf_int(b, 1)};
    graph_add_output(b->g, graph_add(b->g, GRAPH_OP_GATHER, 2, start, 1, &axis), "start_logits");
    graph_add_output(b->g, graph_add(b->g, GRAPH_OP_GATHER, 2, end, 1, &axis), "end_logits");
}

static status add_outputs(hf_builder *b, const char *folder, const hf_pooling *pooling,
                          const graph_import_options *options, graph_value_index hidden)
{
    if (pooling->is_present) {
        graph_value_index embedding;
        status s = hf_add_pooling(b, folder, pooling, options, hidden, &embedding);
        if (s == STATUS_OK)
            graph_add_output(b->g, embedding, "sentence_embedding");
        return s;
    }
    if (b->config->head == HF_SEQUENCE_CLASSES) {
        graph_add_output(b->g, add_sequence_head(b, hidden), "logits");
    } else if (b->config->head == HF_TOKEN_CLASSES) {
        graph_add_output(b->g, hf_linear(b, hidden, hf_root_name(b, "classifier")), "logits");
    } else if (b->config->head == HF_ANSWER_SPANS) {
        add_answer_spans(b, hidden);
    } else {
        graph_add_output(b->g, hidden, "last_hidden_state");
        if (hf_has(b, hf_name(b, "pooler.dense")))
            graph_add_output(b->g, add_pooler(b, hidden), "pooler_output");
    }
    if (b->failed && b->config->head != HF_NO_HEAD)
        return status_prefix(b->failed, "config.json: architectures names a head");
    return b->failed;
}

static status build(graph *g, hf_weights *weights, const char *folder, const char *pooling_wish,
                    const graph_import_options *options)
{
    char transformer[PATH_MAX];
    hf_pooling pooling;
    hf_config config;
    status s = hf_read_pooling(folder, pooling_wish, &pooling);
    if (s)
        return s;
    snprintf(transformer, sizeof transformer, "%s%s%s", folder,
             pooling.transformer_folder[0] ? "/" : "", pooling.transformer_folder);
    s = hf_read_config(transformer, &config);
    if (s == STATUS_OK)
        s = hf_weights_open(weights, g, transformer, options);
    if (s == STATUS_OK)
        s = hf_weights_find_prefix(weights);
    if (s)
        return s;
    hf_builder b = {.g = g, .weights = weights, .config = &config};
    add_inputs(&b);
    graph_value_index hidden = hf_add_encoder(&b);
    if (b.failed)
        return b.failed;
    g->source = arena_format(&g->memory, "hugging face %s", config.model_type);
    /* Tokens do not use the positions up to that of the pad token. */
    g->sequence_max = config.positions;
    if (config.family == HF_ROBERTA || config.family == HF_MPNET)
        g->sequence_max -= config.pad_token + 1;
    s = add_outputs(&b, folder, &pooling, options, hidden);
    return s ? s : hf_weights_read(weights);
}

status graph_import_hugging_face(const char *folder, const char *pooling,
                                 const graph_import_options *options, graph **out)
{
    hf_weights *weights = calloc(1, sizeof *weights);
    graph *g = graph_create("");
    status s;
    if (g != NULL)
        g->copies_files = options != NULL && options->copies_files;
    if (weights == NULL || g == NULL)
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory");
    else
        s = build(g, weights, folder, pooling, options);
    if (weights != NULL)
        hf_weights_close(weights);
    free(weights);
    if (s) {
        graph_destroy(g);
        return status_prefix(s, "%s", folder);
    }
    *out = g;
    return STATUS_OK;
}
