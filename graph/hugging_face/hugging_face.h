#ifndef GRAPH_HUGGING_FACE_HUGGING_FACE_H
#define GRAPH_HUGGING_FACE_HUGGING_FACE_H

#include <jansson.h>

#include "graph/encoder/encoder.h"
#include "graph/graph.h"
#include "graph/import.h"
#include "graph/safetensors.h"

/* The parts of the Hugging Face importer. Only the files of graph/hugging_face may include this;
 * everybody else includes graph/import.h. */

typedef enum hf_family {
    HF_BERT,
    HF_ROBERTA,
    HF_DISTILBERT,
    HF_MPNET,
    HF_ELECTRA,
    HF_ALBERT,
    HF_MODERN_BERT,
    HF_DECODER, /* Llama, Mistral, Qwen2, Qwen3 */
    HF_NOMIC_BERT,
    HF_GTE,
    HF_JINA_BERT,
    HF_DEBERTA
} hf_family;
typedef enum hf_head { HF_NO_HEAD, HF_SEQUENCE_CLASSES, HF_TOKEN_CLASSES, HF_ANSWER_SPANS } hf_head;

#define HF_LAYERS_MAX 1000

/* How positions turn queries and keys; theta 0: not at all. */
typedef struct hf_rotary {
    double theta;
    double factor; /* what frequencies are divided by, 1: nothing */
    double ntk;    /* scaling by a larger base, 1: none */
} hf_rotary;

/* DeBERTa's relative positions: encoder.distance_table and what reads it. */
typedef struct hf_distances {
    bool is_relative, reads_keys, reads_queries, shares_projections, has_norm;
    bool has_positions; /* a table of absolute ones too */
    int64_t buckets, longest;
} hf_distances;

/* The contents of config.json. */
typedef struct hf_config {
    hf_family family;
    char model_type[40];
    int64_t hidden, layers, heads, kv_heads, head_dim, positions, pad_token;
    int64_t types, vocabulary, intermediate, embedding; /* 0: absent */
    int64_t relative_buckets;                           /* MPNet */
    int64_t groups, group_layers; /* ALBERT: groups of layers with the same weights, and the layers
                                     that one of num_hidden_layers runs; `layers` counts them all */
    double epsilon;
    char activation[40];
    hf_head head;
    hf_rotary rotary, local_rotary; /* the latter of layers with a window */
    int64_t window;                 /* encoder_layer.window of the layers that are local */
    bool is_local[HF_LAYERS_MAX];
    bool is_causal;
    encoder_pooling class_pooling; /* ModernBERT: what its classifier reads */
    char class_activation[40];
    hf_distances distances;
} hf_config;

/* config.c: STATUS_UNSUPPORTED names the model type or setting; STATUS_CORRUPT the key
 * that is missing, of another type or out of range. */
status hf_read_config(const char *folder, hf_config *out) MUST_CHECK;
/* The names of these keys in config.json, by family; also for messages. */
typedef struct hf_keys {
    const char *hidden, *layers, *heads, *intermediate, *activation;
} hf_keys;
const hf_keys *hf_keys_of(hf_family family);

/* config_keys.c: a key that changes results must not silently get its default: a key that is
 * present has the right type and range, or an error names it. `null` counts as absent. */
bool hf_is_there(const json_t *json, const char *key);
/* An integer from at_least to at_most; `otherwise` where the key is absent. A key whose `otherwise`
 * is out of range is required. */
status hf_read_size(const json_t *json, const char *key, int64_t otherwise, int64_t at_least,
                    int64_t at_most, int64_t *out) MUST_CHECK;
/* A size that is only compared with the tensors; 0 where config.json lacks it. */
status hf_read_said(const json_t *json, const char *key, int64_t *out) MUST_CHECK;
/* The sizes that all encoders with heads of one width have, and vocab_size; what `otherwise` says
 * where a key is absent. A size of 0 there is required, but intermediate: four times hidden. Sets
 * kv_heads and head_dim too. */
typedef struct hf_sizes {
    int64_t hidden, layers, heads, intermediate;
} hf_sizes;
status hf_read_sizes(const json_t *json, const hf_keys *k, const hf_sizes *otherwise,
                     hf_config *c) MUST_CHECK;
status hf_read_real(const json_t *json, const char *key, double otherwise, double at_least,
                    double at_most, double *out) MUST_CHECK;
/* Borrowed from `json`. */
status hf_read_text(const json_t *json, const char *key, const char *otherwise,
                    const char **out) MUST_CHECK;
/* The same as a copy. STATUS_CORRUPT: longer than that. */
status hf_copy_text(const json_t *json, const char *key, const char *otherwise,
                    char out[40]) MUST_CHECK;
/* A setting of which one value is supported: other values are rejected by name. */
typedef struct hf_setting {
    const char *key;
    enum { HF_FALSE, HF_TRUE, HF_NULL, HF_TEXT, HF_NUMBER } kind;
    const char *text; /* HF_TEXT */
    double number;    /* HF_NUMBER */
} hf_setting;
/* A key that is absent has the supported value. */
status hf_check_settings(const json_t *json, size_t count, const hf_setting *settings) MUST_CHECK;
/* layer_types: which layers have a window; they keep what they have where the key is absent. */
status hf_read_layer_types(const json_t *json, hf_config *c) MUST_CHECK;
/* rope_theta, rope_scaling and rope_parameters in any of their places; `key` is an object in
 * rope_parameters, or NULL. */
status hf_read_rotary(const json_t *json, const char *theta_key, double theta, const char *key,
                      hf_rotary *out) MUST_CHECK;

/* weights.c: the tensors of model.safetensors, or of the shards that
 * model.safetensors.index.json lists. */
#define HF_SHARDS_MAX 256
typedef struct hf_shard {
    safetensors tensors;
    const uint8_t *data; /* of the file, mapped until the graph is destroyed */
    int descriptor;      /* of the same file */
    bool is_large;       /* its tensors are used in place */
} hf_shard;
typedef struct hf_weights {
    hf_shard shards[HF_SHARDS_MAX];
    int shard_count;
    struct file_range *pending; /* tensors to be read into the graph */
    size_t pending_count, pending_capacity;
    char prefix[160]; /* before the name of the word embeddings */
    char root[160];   /* before the names of heads: the prefix without the encoder's name */
} hf_weights;

status hf_weights_open(hf_weights *w, graph *g, const char *folder,
                       const graph_import_options *options) MUST_CHECK;
/* Finds the prefix of the encoder's tensors by its word embeddings, whose name ends with one of
 * these. */
status hf_weights_find_prefix(hf_weights *w, size_t count, const char *const *endings) MUST_CHECK;
void hf_weights_close(hf_weights *w);
const safetensors_entry *hf_weights_find(const hf_weights *w, const char *name);
/* A tensor as F32, in or by the graph's memory. Its shape must be [rows] (columns 0) or [rows,
 * columns]; negative: any size. The data is valid after hf_weights_read(). `is_matrix`: the weights
 * of a dense layer, used in place if possible: where the cache has packed weights, it is never
 * read. */
status hf_weights_load(hf_weights *w, graph *g, const char *name, int64_t rows, int64_t columns,
                       bool is_matrix, tensor *out) MUST_CHECK;
/* Reads the data of all loaded tensors at once. */
status hf_weights_read(hf_weights *w) MUST_CHECK;

/* State of the functions below, which describe an encoder. The first failure is kept in `failed`;
 * later calls return anything, so that callers need not check each call. What they return lives as
 * long as the graph; every tensor in it is a constant of the graph. */
typedef struct hf_builder {
    graph *g;
    hf_weights *weights;
    const hf_config *config;
    encoder *e; /* being filled */
    status failed;
} hf_builder;

/* layers.c; names lack ".weight" and ".bias". */
/* The builder fails: an allocation in the graph's memory did. */
void hf_lack_memory(hf_builder *b);
/* `text`; "" and the builder fails where it is NULL. */
const char *hf_text(hf_builder *b, const char *text);
const tensor *hf_table(hf_builder *b, const char *name, int64_t rows, int64_t columns);
/* [out, in]; negative: any size. The bias is there, or not. */
encoder_linear hf_linear(hf_builder *b, const char *name, int64_t out, int64_t in);
/* Several layers of one input in one tensor, one below the other: rows [first, first + count). */
encoder_linear hf_linear_rows(hf_builder *b, const encoder_linear *whole, const char *name,
                              int64_t first, int64_t count);
/* The tensors for hf_linear_rows(): they are no constants of the graph. */
encoder_linear hf_fused(hf_builder *b, const char *name, int64_t out, int64_t in);
encoder_norm hf_norm(hf_builder *b, const char *name, int64_t width);
/* The activation `name` of config.json's `key`. */
encoder_activation hf_activation(hf_builder *b, const char *key, const char *name);
encoder_head_activation hf_head_activation(hf_builder *b, const char *key, const char *name);
/* NULL where theta is 0, or where the builder fails. */
const encoder_rotary *hf_make_rotary(hf_builder *b, const hf_rotary *rotary, int64_t dims);
int64_t hf_width(const encoder_linear *l);
/* A formatted name: "encoder.layer.3.output.dense", in the graph's memory. */
const char *hf_name(hf_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *hf_root_name(hf_builder *b, const char *name);
bool hf_has(const hf_builder *b, const char *name);
/* Checks axis 0 or 1 of a matrix against the size in config.json (0: absent there). A tensor that
 * is missing or no matrix is reported where it is used. */
void hf_check_axis(hf_builder *b, const char *name, int axis, const char *key, int64_t expected);
/* Checks that the weights have the layers that config.json counts; `format` is the name of a tensor
 * of layer %lld. */
void hf_check_layer_count(hf_builder *b, const char *key, const char *format);

/* Embeddings and layers of the families, and what config.json says of them: bert.c, ... */
void hf_describe_bert(hf_builder *b);
/* The names of the tensors of a layer like BERT's, below "<layers>.<number>.", and layer `n`. Its
 * feed-forward size becomes encoder.intermediate where that is 0. */
typedef struct hf_layer_names {
    const char *layers;
    const char *query, *key, *value, *output, *output_norm, *up, *down, *down_norm;
} hf_layer_names;
void hf_describe_bert_layer(hf_builder *b, const hf_layer_names *names, int64_t n,
                            encoder_layer *l);
status hf_read_modern_bert(const json_t *json, hf_config *c) MUST_CHECK;
void hf_describe_modern_bert(hf_builder *b);
status hf_read_decoder(const json_t *json, hf_config *c) MUST_CHECK;
void hf_describe_decoder(hf_builder *b);
status hf_read_nomic_bert(const json_t *json, hf_config *c) MUST_CHECK;
status hf_read_gte(const json_t *json, hf_config *c) MUST_CHECK;
void hf_describe_rotary_bert(hf_builder *b);
/* What it does not have in common with BERT. */
status hf_read_jina_bert(const json_t *json, hf_config *c) MUST_CHECK;
void hf_describe_jina_bert(hf_builder *b);
/* What it does not have in common with BERT. */
status hf_read_albert(const json_t *json, hf_config *c) MUST_CHECK;
void hf_describe_albert(hf_builder *b);
status hf_read_deberta(const json_t *json, hf_config *c) MUST_CHECK;
void hf_describe_deberta(hf_builder *b);

/* heads.c: outputs that config.json's architecture has; `names` is filled as e->outputs is. */
void hf_describe_head(hf_builder *b, const char **names);

/* pooling.c: the modules of sentence-transformers. */
typedef enum hf_module_kind { HF_DENSE, HF_LAYER_NORM, HF_NORMALIZE } hf_module_kind;
typedef struct hf_module {
    hf_module_kind kind;
    char folder[64];
} hf_module;
#define HF_MODULES_MAX 8
typedef struct hf_pooling {
    bool is_present;
    encoder_pooling modes[ENCODER_POOLINGS_MAX];
    int mode_count;
    bool excludes_prompt;
    char transformer_folder[64]; /* below the model's folder; usually "" */
    hf_module modules[HF_MODULES_MAX];
    int module_count;
} hf_pooling;
status hf_read_pooling(const char *folder, const char *pooling, hf_pooling *out) MUST_CHECK;
/* Fills the encoder's only output. */
status hf_describe_pooling(hf_builder *b, const char *folder, const hf_pooling *pooling,
                           const graph_import_options *options) MUST_CHECK;
/* " > Pooling (mean) > Dense (768 to 256, Tanh) > Normalize", in the graph's memory. */
const char *hf_chain_text(hf_builder *b, const hf_pooling *pooling);

#endif
