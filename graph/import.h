#ifndef GRAPH_IMPORT_H
#define GRAPH_IMPORT_H

#include "graph/graph.h"

/* A size for a named dim of an ONNX model that is neither batch nor sequence, such as "height". */
typedef struct graph_fixed_dim {
    const char *symbol;
    int64_t size;
} graph_fixed_dim;

/* Limits and options of an import; zero means the default. */
typedef struct graph_import_options {
    size_t file_bytes_max; /* default 8 GiB */
    int32_t nodes_max;     /* default 200,000 */
    const graph_fixed_dim *fixed_dims;
    int fixed_dim_count;
    bool copies_files; /* none stays mapped: they may be written into later */
} graph_import_options;

/* ONNX (IR version 4 and later, opsets 11-21). External data is read from the folder of the
 * model and nowhere else (a path with ".." or a leading "/" is rejected). Symbolic dims: the first
 * dim of the inputs is B when symbolic; the first other symbol shared by the inputs' second dims is
 * S. Errors: STATUS_IO, STATUS_CORRUPT (not ONNX, or cut short), STATUS_UNSUPPORTED (node name,
 * operator, opset, and what is supported). */
status graph_import_onnx(const char *path, const graph_import_options *options,
                         graph **out) MUST_CHECK;

/* The same from memory; external data is rejected when `folder` is NULL. `data` may be freed
 * afterwards. */
status graph_import_onnx_bytes(const void *data, size_t bytes, const char *folder,
                               const graph_import_options *options, graph **out) MUST_CHECK;

/* A folder with config.json and model.safetensors (or sharded with model.safetensors.index.json):
 * BERT, RoBERTa/XLM-R, DistilBERT, MPNet, ELECTRA, ALBERT encoders with or without a sequence
 * classification head. Inputs: input_ids, attention_mask[, token_type_ids], INT64 [B,S]. Where
 * sentence-transformers files lie beside (modules.json, 1_Pooling/config.json, 2_Normalize), the
 * graph ends in that pooling: one output "sentence_embedding" [B,hidden]; without:
 * "last_hidden_state" [B,S,hidden] (and "pooler_output"), or "logits" [B,labels]. Weights may be
 * F32, F16, BF16; they are mapped, not copied, when F32. `pooling` NULL: as the files say; or
 * "none", "mean", "cls", "max". */
status graph_import_hugging_face(const char *folder, const char *pooling,
                                 const graph_import_options *options, graph **out) MUST_CHECK;

#endif
