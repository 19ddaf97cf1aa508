#include <string.h>

#include "graph/hugging_face/hugging_face.h"

/* BERT and those that differ from it in names, positions and heads. */

/* By family. */
static const hf_layer_names bert_names = {
    "encoder.layer",        "attention.self.query",   "attention.self.key",
    "attention.self.value", "attention.output.dense", "attention.output.LayerNorm",
    "intermediate.dense",   "output.dense",           "output.LayerNorm",
};
static const hf_layer_names distilbert_names = {
    "transformer.layer", "attention.q_lin",   "attention.k_lin",
    "attention.v_lin",   "attention.out_lin", "sa_layer_norm",
    "ffn.lin1",          "ffn.lin2",          "output_layer_norm",
};
static const hf_layer_names mpnet_names = {
    "encoder.layer",      "attention.attn.q", "attention.attn.k",
    "attention.attn.v",   "attention.attn.o", "attention.LayerNorm",
    "intermediate.dense", "output.dense",     "output.LayerNorm",
};

/* Checks config.json against the tensors, so that an error names the key. */
static void check_sizes(hf_builder *b, const hf_layer_names *names)
{
    const hf_config *c = b->config;
    const hf_keys *keys = hf_keys_of(c->family);
    const char *words = hf_name(b, "embeddings.word_embeddings.weight");
    const char *relative = hf_name(b, "encoder.relative_attention_bias.weight");
    const char *query = hf_name(b, "%s.%%lld.%s.weight", names->layers, names->query);
    bool is_electra = c->family == HF_ELECTRA;
    hf_check_axis(b, words, 0, "vocab_size", c->vocabulary);
    hf_check_axis(b, words, 1, is_electra ? "embedding_size" : keys->hidden,
                  is_electra ? c->embedding : c->hidden);
    hf_check_axis(b, hf_name(b, "embeddings.position_embeddings.weight"), 0,
                  "max_position_embeddings", c->positions);
    hf_check_axis(b, hf_name(b, "embeddings.token_type_embeddings.weight"), 0, "type_vocab_size",
                  c->types);
    hf_check_axis(b, relative, 0, "relative_attention_num_buckets", c->relative_buckets);
    hf_check_axis(b, relative, 1, keys->heads, c->heads);
    hf_check_axis(b, hf_name(b, "%s.0.%s.weight", names->layers, names->query), 0, keys->hidden,
                  c->hidden);
    hf_check_axis(b, hf_name(b, "%s.0.%s.weight", names->layers, names->up), 0, keys->intermediate,
                  c->intermediate);
    hf_check_layer_count(b, keys->layers, query + strlen(b->weights->prefix));
}

static void describe_embeddings(hf_builder *b)
{
    const hf_config *c = b->config;
    encoder *e = b->e;
    bool numbers_tokens = c->family == HF_ROBERTA || c->family == HF_MPNET;
    e->word_table = hf_table(b, hf_name(b, "embeddings.word_embeddings.weight"), -1, -1);
    int64_t width = b->failed ? 1 : e->word_table->dims[1];
    e->position_table =
        hf_table(b, hf_name(b, "embeddings.position_embeddings.weight"), c->positions, width);
    if (c->family != HF_DISTILBERT && c->family != HF_MPNET)
        e->token_type_table =
            hf_table(b, hf_name(b, "embeddings.token_type_embeddings.weight"), -1, width);
    e->positions = numbers_tokens ? ENCODER_POSITIONS_FROM_IDS : ENCODER_POSITIONS_COUNTED;
    e->pad_id = c->pad_token;
    e->position_offset = numbers_tokens ? c->pad_token + 1 : 0;
    e->embedding_norm = hf_norm(b, hf_name(b, "embeddings.LayerNorm"), width);
    if (c->family == HF_ELECTRA && hf_has(b, hf_name(b, "embeddings_project")))
        e->embedding_projection = hf_linear(b, hf_name(b, "embeddings_project"), c->hidden, width);
    else if (width != c->hidden && b->failed == STATUS_OK)
        b->failed =
            status_fail(STATUS_CORRUPT, "the word embeddings have %lld numbers, and %s is %lld",
                        (long long)width, hf_keys_of(c->family)->hidden, (long long)c->hidden);
}

static encoder_linear part(hf_builder *b, const hf_layer_names *names, int64_t layer,
                           const char *name, int64_t out, int64_t in)
{
    return hf_linear(b, hf_name(b, "%s.%lld.%s", names->layers, (long long)layer, name), out, in);
}

static encoder_norm norm(hf_builder *b, const hf_layer_names *names, int64_t layer,
                         const char *name)
{
    return hf_norm(b, hf_name(b, "%s.%lld.%s", names->layers, (long long)layer, name),
                   b->config->hidden);
}

void hf_describe_bert_layer(hf_builder *b, const hf_layer_names *names, int64_t n, encoder_layer *l)
{
    int64_t hidden = b->config->hidden, wide = b->e->intermediate;
    l->query = part(b, names, n, names->query, hidden, hidden);
    l->key = part(b, names, n, names->key, hidden, hidden);
    l->value = part(b, names, n, names->value, hidden, hidden);
    l->attention_output = part(b, names, n, names->output, hidden, hidden);
    l->attention_norm = norm(b, names, n, names->output_norm);
    l->up = part(b, names, n, names->up, wide > 0 ? wide : -1, hidden);
    b->e->intermediate = hf_width(&l->up);
    l->down = part(b, names, n, names->down, hidden, b->e->intermediate);
    l->output_norm = norm(b, names, n, names->down_norm);
    l->activation = b->e->layers[0].activation;
}

void hf_describe_bert(hf_builder *b)
{
    const hf_config *c = b->config;
    encoder *e = b->e;
    const hf_layer_names *names = c->family == HF_DISTILBERT ? &distilbert_names
                                  : c->family == HF_MPNET    ? &mpnet_names
                                                             : &bert_names;
    check_sizes(b, names);
    describe_embeddings(b);
    if (c->family == HF_MPNET) {
        e->relative_table = hf_table(b, hf_name(b, "encoder.relative_attention_bias.weight"),
                                     c->relative_buckets, c->heads);
        e->relative_distance_max = 128; /* T5's */
    }
    e->layers[0].activation = hf_activation(b, hf_keys_of(c->family)->activation, c->activation);
    for (int64_t i = 0; i < c->layers && b->failed == STATUS_OK; i++)
        hf_describe_bert_layer(b, names, i, &e->layers[i]);
}
