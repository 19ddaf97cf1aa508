#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "graph/encoder/emit.h"
#include "graph/hugging_face/hugging_face.h"

static void add_token_input(graph *g, const char *name)
{
    graph_dim dims[] = {{.batch = 1}, {.sequence = 1}};
    graph_add_input(g, name, DTYPE_I64, 2, dims);
}

static bool has_types_input(const hf_config *c)
{
    switch (c->family) {
    case HF_BERT:
    case HF_ELECTRA:
    case HF_ALBERT:
    case HF_NOMIC_BERT:
    case HF_GTE:
    case HF_JINA_BERT:
    case HF_DEBERTA:
        return c->types > 1;
    default:
        return false;
    }
}

static void add_inputs(hf_builder *b)
{
    add_token_input(b->g, "input_ids");
    add_token_input(b->g, "attention_mask");
    b->e->ids_input = 0;
    b->e->mask_input = 1;
    b->e->token_type_input = -1;
    if (!has_types_input(b->config))
        return;
    add_token_input(b->g, "token_type_ids");
    b->e->token_type_input = 2;
}

/* What every family has. */
static void describe_sizes(hf_builder *b)
{
    const hf_config *c = b->config;
    encoder *e = b->e;
    e->hidden = c->hidden;
    e->heads = c->heads;
    e->kv_heads = c->kv_heads;
    e->head_dim = c->head_dim;
    e->intermediate = c->intermediate;
    e->attention_scale = (float)(1 / sqrt((double)c->head_dim));
    e->is_causal = c->is_causal;
    e->layer_count = (int)c->layers;
    e->layers = arena_allocate_zeroed(&b->g->memory, (size_t)c->layers, sizeof e->layers[0]);
    if (e->layers == NULL)
        hf_lack_memory(b);
}

static void describe_family(hf_builder *b)
{
    switch (b->config->family) {
    case HF_MODERN_BERT:
        hf_describe_modern_bert(b);
        break;
    case HF_DECODER:
        hf_describe_decoder(b);
        break;
    case HF_NOMIC_BERT:
    case HF_GTE:
        hf_describe_rotary_bert(b);
        break;
    case HF_JINA_BERT:
        hf_describe_jina_bert(b);
        break;
    case HF_DEBERTA:
        hf_describe_deberta(b);
        break;
    case HF_ALBERT:
        hf_describe_albert(b);
        break;
    default:
        hf_describe_bert(b);
        break;
    }
}

static status describe(hf_builder *b, const char *folder, const hf_pooling *pooling,
                       const graph_import_options *options, const char **names)
{
    describe_sizes(b);
    if (b->failed)
        return b->failed;
    describe_family(b);
    if (b->failed)
        return b->failed;
    if (pooling->is_present) {
        names[0] = "sentence_embedding";
        return hf_describe_pooling(b, folder, pooling, options);
    }
    hf_describe_head(b, names);
    if (b->failed && b->config->head != HF_NO_HEAD)
        return status_prefix(b->failed, "config.json: architectures names a head");
    return b->failed;
}

/* Tokens do not use the positions up to that of the pad token. */
static int64_t longest_of(const hf_config *c)
{
    bool numbers_tokens = c->family == HF_ROBERTA || c->family == HF_MPNET;
    return numbers_tokens ? c->positions - (c->pad_token + 1) : c->positions;
}

static status build(graph *g, hf_weights *weights, const char *folder, const char *pooling_wish,
                    const graph_import_options *options)
{
    static const char *const words[] = {"embeddings.word_embeddings.weight",
                                        "embeddings.tok_embeddings.weight", "embed_tokens.weight"};
    char transformer[PATH_MAX];
    const char *names[ENCODER_OUTPUTS_MAX];
    hf_pooling pooling;
    hf_config config;
    encoder e = {.hidden = 0};
    status s = hf_read_pooling(folder, pooling_wish, &pooling);
    if (s)
        return s;
    snprintf(transformer, sizeof transformer, "%s%s%s", folder,
             pooling.transformer_folder[0] ? "/" : "", pooling.transformer_folder);
    s = hf_read_config(transformer, &config);
    if (s == STATUS_OK)
        s = hf_weights_open(weights, g, transformer, options);
    if (s == STATUS_OK)
        s = hf_weights_find_prefix(weights, sizeof words / sizeof words[0], words);
    if (s)
        return s;
    hf_builder b = {.g = g, .weights = weights, .config = &config, .e = &e};
    add_inputs(&b);
    s = describe(&b, folder, &pooling, options, names);
    if (s)
        return s;
    const char *chain = pooling.is_present ? hf_chain_text(&b, &pooling) : "";
    g->source =
        hf_text(&b, arena_format(&g->memory, "hugging face %s%s", config.model_type, chain));
    g->sequence_max = e.length_max = longest_of(&config);
    s = b.failed ? b.failed : encoder_emit(&e, g, names);
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
