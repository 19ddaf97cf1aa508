#ifndef TESTS_UNIT_GRAPH_ONNX_BUILDER_H
#define TESTS_UNIT_GRAPH_ONNX_BUILDER_H

#include "graph/import.h"
#include "graph/onnx/onnx.pb-c.h"

/* Writes small ONNX models in memory. Everything is kept until the test's process ends; names are
 * borrowed. "" stands for an absent input or output. */
typedef struct onnx_builder {
    Onnx__Model model;
    Onnx__Graph graph;
    Onnx__OperatorSet opset, *opsets[4];
    const char *folder; /* of external data */
} onnx_builder;

/* A list of texts that ends in NULL. */
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

onnx_builder *onnx_begin(int64_t opset);
void onnx_import_domain(onnx_builder *b, const char *domain, int64_t version);
/* A float input; dims: a number, a symbol, or "?" for an unnamed one. */
void onnx_add_input(onnx_builder *b, const char *name, const char *const *dims);
void onnx_add_output(onnx_builder *b, const char *name);
Onnx__Node *onnx_add(onnx_builder *b, const char *op_type, const char *const *inputs,
                     const char *const *outputs);
/* The same, but in no graph: for functions and branches. */
Onnx__Node *onnx_make_node(const char *op_type, const char *const *inputs,
                           const char *const *outputs);
Onnx__Tensor *onnx_add_floats(onnx_builder *b, const char *name, int count, const float *data);
Onnx__Tensor *onnx_add_ints(onnx_builder *b, const char *name, int count, const int64_t *data);
Onnx__Tensor *onnx_make_tensor(const char *name, int type, int rank, const int64_t *dims);
Onnx__Tensor *onnx_add_tensor(onnx_builder *b, Onnx__Tensor *t);
void onnx_set_external(Onnx__Tensor *t, const char *key, const char *value);
Onnx__Attribute *onnx_set(Onnx__Node *n, const char *name, int type);
void onnx_set_int(Onnx__Node *n, const char *name, int64_t i);
void onnx_set_float(Onnx__Node *n, const char *name, float f);
void onnx_set_string(Onnx__Node *n, const char *name, const char *s);
void onnx_set_floats(Onnx__Node *n, const char *name, int count, const float *floats);
void onnx_set_ints(Onnx__Node *n, const char *name, int count, const int64_t *ints);
void onnx_set_reference(Onnx__Node *n, const char *name, int type, const char *refers_to);
Onnx__Function *onnx_add_function(onnx_builder *b, const char *domain, const char *name,
                                  const char *const *inputs, const char *const *outputs,
                                  int node_count, Onnx__Node **nodes);

uint8_t *onnx_pack(const onnx_builder *b, size_t *bytes);
status onnx_import(const onnx_builder *b, graph **out);

/* Imports, expects success, and gives the graph. */
graph *onnx_expect(const onnx_builder *b);
/* Expects this failure and every part of `words` (NULL-ended) in its message. */
void onnx_expect_failure(const onnx_builder *b, status code, const char *const *words);
/* "Relu Add MatMul": the operators in order. Static. */
const char *onnx_operators(const graph *g);
const graph_node *onnx_node_of(const graph *g, graph_op op);
/* The integers of a constant input as "1,2,3"; "?" when it is not one. Static. */
const char *onnx_constant_text(const graph *g, graph_value_index value);

#endif
