#ifndef GRAPH_HUGGING_FACE_HUGGING_FACE_H
#define GRAPH_HUGGING_FACE_HUGGING_FACE_H

#include <jansson.h>

#include "graph/graph.h"
#include "graph/import.h"
#include "graph/safetensors.h"

/* The parts of the Hugging Face importer. Only the files of graph/hugging_face may include this;
 * everybody else includes graph/import.h. */

typedef enum hf_family { HF_BERT, HF_ROBERTA, HF_DISTILBERT, HF_MPNET, HF_ELECTRA } hf_family;
typedef enum hf_head { HF_NO_HEAD, HF_SEQUENCE_CLASSES, HF_TOKEN_CLASSES, HF_ANSWER_SPANS } hf_head;

/* The contents of config.json. */
typedef struct hf_config {
    hf_family family;
    char model_type[40];
    int64_t hidden, layers, heads, positions, pad_token;
    int64_t types, vocabulary, intermediate, embedding; /* 0: absent */
    int64_t relative_buckets;                           /* MPNet */
    double epsilon;
    char activation[40];
    hf_head head;
} hf_config;

/* config.c: STATUS_UNSUPPORTED names the model type or setting; STATUS_CORRUPT the key
 * that is missing, of another type or out of range. */
status hf_read_config(const char *folder, hf_config *out) MUST_CHECK;
/* The names of these keys in config.json, by family; also for messages. */
typedef struct hf_keys {
    const char *hidden, *layers, *heads, *intermediate, *activation;
} hf_keys;
const hf_keys *hf_keys_of(hf_family family);

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
    char prefix[160]; /* before "embeddings.word_embeddings.weight" */
    char root[160];   /* before the names of heads: the prefix without the encoder's name */
} hf_weights;

status hf_weights_open(hf_weights *w, graph *g, const char *folder,
                       const graph_import_options *options) MUST_CHECK;
/* Finds the prefix of the encoder's tensors by its word embeddings. */
status hf_weights_find_prefix(hf_weights *w) MUST_CHECK;
void hf_weights_close(hf_weights *w);
const safetensors_entry *hf_weights_find(const hf_weights *w, const char *name);
/* Adds a tensor as an F32 constant of the graph. Its shape must be [rows] (columns 0) or [rows,
 * columns]; negative: any size. The data is valid after hf_weights_read(). `is_matrix`: the weights
 * of a dense layer, used in place if possible: where the cache has packed weights, it is never
 * read. */
status hf_weights_add(hf_weights *w, graph *g, const char *name, int64_t rows, int64_t columns,
                      bool is_matrix, graph_value_index *out) MUST_CHECK;
/* Reads the data of all added tensors at once. */
status hf_weights_read(hf_weights *w) MUST_CHECK;

/* State of the builders below. The first failure is kept in `failed`; later calls return any value,
 * so that callers need not check each call. */
typedef struct hf_builder {
    graph *g;
    hf_weights *weights;
    const hf_config *config;
    status failed;
    graph_value_index ids, mask, types; /* inputs; types may be GRAPH_NO_VALUE */
} hf_builder;

/* layers.c. `x` is [B,S,in] or [B,in]; names lack ".weight" and ".bias". */
graph_value_index hf_unary(hf_builder *b, graph_op op, graph_value_index x);
graph_value_index hf_binary(hf_builder *b, graph_op op, graph_value_index x, graph_value_index y);
graph_value_index hf_reduce(hf_builder *b, graph_op op, graph_value_index x, int64_t axis,
                            bool keeps_dim);
graph_value_index hf_cast(hf_builder *b, graph_value_index x, dtype type);
graph_value_index hf_float(hf_builder *b, float f);
graph_value_index hf_int(hf_builder *b, int64_t i);
graph_value_index hf_ints(hf_builder *b, int count, const int64_t *ints);
graph_value_index hf_linear(hf_builder *b, graph_value_index x, const char *name);
graph_value_index hf_layer_normalization(hf_builder *b, graph_value_index x, const char *name);
graph_value_index hf_activation(hf_builder *b, graph_value_index x, const char *activation);
graph_value_index hf_first_token(hf_builder *b, graph_value_index x);
graph_value_index hf_weight(hf_builder *b, const char *name, int64_t rows, int64_t columns);
/* A formatted name: "encoder.layer.3.output.dense", in the graph's memory. */
const char *hf_name(hf_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *hf_root_name(hf_builder *b, const char *name);
bool hf_has(const hf_builder *b, const char *name);

/* encoder.c: the last hidden state [B,S,hidden]. */
graph_value_index hf_add_encoder(hf_builder *b);

/* pooling.c: the modules of sentence-transformers. */
typedef struct hf_pooling {
    bool is_present, cls, max, mean, mean_sqrt_length;
    bool normalizes;
    char transformer_folder[64]; /* below the model's folder; usually "" */
    char dense_folders[4][64];
    int dense_count;
} hf_pooling;
status hf_read_pooling(const char *folder, const char *pooling, hf_pooling *out) MUST_CHECK;
/* [B,S,hidden] to [B,hidden]. */
status hf_add_pooling(hf_builder *b, const char *folder, const hf_pooling *pooling,
                      const graph_import_options *options, graph_value_index hidden,
                      graph_value_index *out) MUST_CHECK;

#endif
