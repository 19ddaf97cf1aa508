#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/status.h"
#include "base/tensor.h"
#include "graph/op.h"

/* The IR of a model: nodes in topological order, in single-assignment form, with typed values.
 * Operators have the semantics of ONNX opset 21 (onnx Operators.md); importers rewrite other
 * versions to it, so that the rest of the program knows one version of each operator. Values are
 * referred to by index; GRAPH_NO_VALUE marks an absent optional input or output.
 *
 * An imported graph is symbolic: its input dims may depend on B (batch) and S (sequence).
 * graph_specialise() makes a graph for one (B, S) from it, in which every dim is constant and all
 * shape arithmetic is folded: devices compile that. Both have this type. */

typedef int32_t graph_value_index;
#define GRAPH_NO_VALUE ((graph_value_index)-1)

/* A dimension: constant + batch*B + sequence*S + batch_sequence*B*S, or unknown. */
typedef struct graph_dim {
    int64_t constant, batch, sequence, batch_sequence;
    bool is_unknown; /* unrelated to B and S; false in a specialised graph */
} graph_dim;

typedef struct graph_shape {
    int rank; /* -1: not known yet */
    graph_dim dims[TENSOR_RANK_MAX];
} graph_shape;

typedef struct graph_value {
    const char *name; /* unique, never empty */
    dtype dtype;
    bool has_dtype;
    graph_shape shape;
    const tensor *constant; /* initialiser or folded value, which outlives the graph; NULL:
                               computed, or an input */
    int32_t producer;       /* node index, or -1 for inputs and constants */
    /* Of an input: the names of its dims in the file, NULL where a dim has none; NULL: no names. */
    const char *const *dim_names;
} graph_value;

typedef enum graph_attribute_kind {
    GRAPH_ATTRIBUTE_INT,
    GRAPH_ATTRIBUTE_FLOAT,
    GRAPH_ATTRIBUTE_STRING,
    GRAPH_ATTRIBUTE_INTS,
    GRAPH_ATTRIBUTE_FLOATS,
    GRAPH_ATTRIBUTE_STRINGS,
    GRAPH_ATTRIBUTE_TENSOR,
    GRAPH_ATTRIBUTE_GRAPH,
} graph_attribute_kind;

typedef struct graph_attribute {
    const char *name;
    graph_attribute_kind kind;
    int64_t i;
    float f;
    const char *s;
    const tensor *t;
    const struct graph *graph; /* a body, owned by the graph of the node */
    size_t count;              /* of the lists */
    const int64_t *ints;
    const float *floats;
    const char *const *strings;
} graph_attribute;

typedef struct graph_node {
    graph_op op;
    const char *name; /* as in the file, or made from the first output's name; for messages */
    int input_count, output_count, attribute_count;
    graph_value_index *inputs;  /* GRAPH_NO_VALUE where an optional input is absent */
    graph_value_index *outputs; /* GRAPH_NO_VALUE where an optional output is absent */
    graph_attribute *attributes;
} graph_node;

typedef struct graph {
    arena memory; /* owns all below, except constants' data in mapped files */
    const char *name;
    const char *source; /* "onnx opset 17 by pytorch 2.1", "hugging face bert": for inspect */
    graph_value *values;
    int32_t value_count, value_capacity;
    graph_node *nodes;
    int32_t node_count, node_capacity;
    graph_value_index *inputs, *outputs;
    int input_count, output_count;
    bool is_dynamic; /* shapes or ways depend on values: it runs node by node, not specialised */
    /* The whole graph as an encoder (graph/encoder/encoder.h), by the importer that built it from
     * this description; in `memory`. NULL: nobody described it. */
    const struct encoder *described;
    int64_t sequence_max; /* longest sequence that the position table allows; 0: unknown */
    bool copies_files;    /* none of them stays mapped (import.h) */
    /* Called by graph_destroy(): releases the files and memory of the constants. */
    void (*release)(void *context);
    void *release_context;
    struct graph *bodies; /* of its Loops and Scans, linked by next_body */
    struct graph *next_body;
    struct name_map *names;           /* value index by name, kept by the building functions */
    bool is_out_of_memory;            /* a building function had none: see graph_check_memory() */
    graph_value_index *spare_outputs; /* of the spare node */
    tensor spare_constant;            /* of the spare value */
} graph;

/* An empty graph, or NULL when memory is out. */
graph *graph_create(const char *name);
/* Accepts NULL. */
void graph_destroy(graph *g);

/* `g` destroys `body` with itself. */
void graph_own_body(graph *g, graph *body);

/* Building. Names are copied; a NULL or taken name gets a fresh one.
 *
 * Without memory the functions go on and add nothing more: they return the graph's spare value or
 * node, which lie behind the others (index value_count, node_count) and may be read and written.
 * Inputs and outputs are not added either. Whoever builds calls graph_check_memory() before it
 * reads what it built, and at its end. */
/* STATUS_OUT_OF_MEMORY when a building function had none for `g` itself (not for its bodies). */
status graph_check_memory(const graph *g) MUST_CHECK;
/* For a builder that finds no memory itself: graph_check_memory() fails from now on. Returns the
 * spare value. */
graph_value_index graph_lack_memory(graph *g);
graph_value_index graph_add_value(graph *g, const char *name);
/* The value of that name, or GRAPH_NO_VALUE. */
graph_value_index graph_find_value(const graph *g, const char *name);
graph_value_index graph_add_input(graph *g, const char *name, dtype type, int rank,
                                  const graph_dim *dims);
/* The same as `like`, which belongs to another graph. */
graph_value_index graph_add_input_like(graph *g, const graph_value *like);
/* `t->data` must outlive the graph: take it from g->memory or from a file kept by g->release. */
graph_value_index graph_add_constant(graph *g, const char *name, const tensor *t);
/* The same with a copy of the data in g->memory. */
graph_value_index graph_add_constant_i64(graph *g, const char *name, int rank, const int64_t *dims,
                                         const int64_t *data);
graph_value_index graph_add_constant_f32(graph *g, const char *name, int rank, const int64_t *dims,
                                         const float *data);
/* Makes a node whose outputs are new values; returns the node's index. inputs/attributes are copied
 * (attribute payloads are not). */
int32_t graph_add_node(graph *g, graph_op op, const char *name, int input_count,
                       const graph_value_index *inputs, int output_count, int attribute_count,
                       const graph_attribute *attributes);
/* The same, but writes to existing values, which must have no producer yet (importers know the
 * names of outputs before the nodes). */
int32_t graph_add_node_to(graph *g, graph_op op, const char *name, int input_count,
                          const graph_value_index *inputs, int output_count,
                          const graph_value_index *outputs, int attribute_count,
                          const graph_attribute *attributes);
/* A node of one output: returns that output. */
graph_value_index graph_add(graph *g, graph_op op, int input_count, const graph_value_index *inputs,
                            int attribute_count, const graph_attribute *attributes);
/* The dtype and shape of a value whose dims are all constant, as a tensor without data. */
tensor graph_value_tensor(const graph_value *v);
/* Appends an output. With a name (NULL: that of the value) the output has exactly that name: a
 * computed value is renamed; an input, a constant or a value that is an output already gets an
 * Identity node. */
void graph_add_output(graph *g, graph_value_index value, const char *name);

graph_attribute graph_make_int(const char *name, int64_t i);
/* An attribute of products that a pass makes: which of the model's linear layers it is. */
#define GRAPH_LINEAR_NUMBER "linear"
graph_attribute graph_make_float(const char *name, float f);
graph_attribute graph_make_string(const char *name, const char *s);
/* Copies the list into g->memory. */
graph_attribute graph_make_ints(graph *g, const char *name, size_t count, const int64_t *ints);

/* Reading. */
const graph_attribute *graph_find_attribute(const graph_node *n, const char *name);
int64_t graph_attribute_int(const graph_node *n, const char *name, int64_t otherwise);
float graph_attribute_float(const graph_node *n, const char *name, float otherwise);
const char *graph_attribute_string(const graph_node *n, const char *name, const char *otherwise);
/* Sets is_read[i] of `value_count` flags where a node reads value i or it is an output. */
void graph_mark_read(const graph *g, bool *is_read);
/* Input `i` of the node, or GRAPH_NO_VALUE when absent or beyond the list. */
graph_value_index graph_input_of(const graph_node *n, int i);

graph_dim graph_dim_constant(int64_t n);
bool graph_dim_is_constant(graph_dim d);
bool graph_dim_equal(graph_dim a, graph_dim b);
/* The dim at B = batch, S = sequence; the dim must be known. */
int64_t graph_dim_at(graph_dim d, int64_t batch, int64_t sequence);
/* "batch", "sequence", "12", "2*sequence+1", "?"; returns `text`. */
const char *graph_dim_text(char text[64], graph_dim d);

#endif
