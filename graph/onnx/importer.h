#ifndef GRAPH_ONNX_IMPORTER_H
#define GRAPH_ONNX_IMPORTER_H

#include "graph/graph.h"
#include "graph/import.h"
#include "graph/name_map.h"
#include "graph/onnx/onnx.pb-c.h"

/* The parts of the ONNX importer. Only the files of graph/onnx may include this; everybody else
 * includes graph/import.h. Each node passes through: order.c -> node.c and attribute.c (read) ->
 * inline.c or rewrite/ (opset 21) -> schema.c (check) -> graph_add_node_to(). */

#define ONNX_NESTING_MAX 64 /* graphs in attributes of nodes of graphs, and function calls */
#define ONNX_OPSET_MIN 7
#define ONNX_OPSET_MAX 28
#define ONNX_INPUTS_MAX 4096 /* of one node; the same limit for outputs */

typedef struct onnx_importer {
    graph *graph;
    arena scratch; /* freed when the import ends */
    const Onnx__Model *model;
    const char *folder;      /* where external data lies, or NULL */
    const char *real_folder; /* the folder after symbolic links of the model file, or NULL */
    graph_import_options options;
    name_map functions; /* key: "domain\nname\noverload"; number: index in model->functions */
    name_map ranks;     /* key: value name; number: rank, where the file has it */
    int64_t emitted;    /* nodes so far, including those of inlined bodies */
} onnx_importer;

/* The names that nodes of one body may use. */
typedef struct onnx_scope {
    onnx_importer *importer;
    const struct onnx_scope *outer; /* the body around a branch; NULL for the model and functions */
    struct onnx_closure *closure;   /* closure.c: `outer` is of another graph; or NULL */
    name_map values;    /* number: graph_value_index, GRAPH_NO_VALUE for an absent one */
    const char *prefix; /* put before the names of values and nodes: "" or "call/" */
    Onnx__OperatorSet *const *opsets;
    size_t opset_count;
    /* In the body of a function: what its attribute references refer to. */
    const Onnx__Function *function;
    const graph_attribute *call_attributes;
    int call_attribute_count;
    int depth;
} onnx_scope;

/* One node while it is imported; rewrites change it in place. */
typedef struct onnx_node {
    onnx_importer *importer;
    graph *graph;
    const onnx_scope *scope;
    const Onnx__Node *proto;
    const char *name, *domain, *op_type; /* domain is "" for the standard one */
    int64_t opset;                       /* version of the domain */
    int input_count, output_count, attribute_count;
    graph_value_index *inputs;   /* room for input_count + 8 */
    graph_value_index *outputs;  /* made before the node; GRAPH_NO_VALUE where absent */
    graph_attribute *attributes; /* room for attribute_count + 8 */
    bool is_emitted;             /* a rewrite added nodes that write `outputs` */
} onnx_node;

/* wire.c: STATUS_CORRUPT when messages nest deeper than ONNX_NESTING_MAX; the generated parser
 * recurses without a limit. */
status onnx_check_nesting(const uint8_t *data, size_t bytes) MUST_CHECK;

/* tensor.c: `where` names the tensor in messages. The data stays in the parsed model, in the
 * graph's memory or in a file of the file store. */
status onnx_read_tensor(onnx_importer *m, const Onnx__Tensor *proto, const char *where,
                        tensor *out) MUST_CHECK;
/* STATUS_UNSUPPORTED for element types that base/dtype.h does not have. */
status onnx_read_dtype(int onnx_type, const char *where, dtype *out) MUST_CHECK;
/* external.c: finds the bytes of an external tensor of `bytes` bytes. */
status onnx_find_external(onnx_importer *m, const Onnx__Tensor *proto, size_t bytes,
                          const uint8_t **data) MUST_CHECK;

/* symbol.c: adds the graph's inputs, with B and S for symbolic dims. */
status onnx_add_inputs(onnx_scope *scope) MUST_CHECK;

/* order.c: indices of the nodes in topological order; the given order where that is one already.
 * STATUS_CORRUPT: a cycle, or a name written twice. */
status onnx_order_nodes(arena *memory, Onnx__Node *const *nodes, size_t count,
                        int32_t **order) MUST_CHECK;

/* node.c: adds all nodes of a body. */
status onnx_emit_nodes(onnx_scope *scope, Onnx__Node *const *nodes, size_t count) MUST_CHECK;
/* Adds the initialisers of a graph or branch to the scope. */
status onnx_add_initializers(onnx_scope *scope, const Onnx__Graph *proto) MUST_CHECK;
/* STATUS_CORRUPT when the scope already has that name. */
status onnx_scope_define(onnx_scope *scope, const char *name, graph_value_index value) MUST_CHECK;
bool onnx_scope_find(const onnx_scope *scope, const char *name, graph_value_index *value);
int64_t onnx_scope_opset(const onnx_scope *scope, const char *domain);
/* The name of a value of the scope in the graph. Without memory: NULL, and the graph lacks it. */
const char *onnx_scope_name(const onnx_scope *scope, const char *name);
/* Fails with the message "node 'encoder/add': Add (opset 17): ...". */
status onnx_fail(const onnx_node *n, status code, const char *format, ...)
    __attribute__((format(printf, 3, 4))) MUST_CHECK;

/* inline.c: calls of model-local functions, and If. */
status onnx_index_functions(onnx_importer *m) MUST_CHECK;
/* The function that the node calls to *out; NULL: none. */
status onnx_find_function(const onnx_importer *m, const onnx_node *n,
                          const Onnx__Function **out) MUST_CHECK;
status onnx_inline_function(onnx_scope *scope, const onnx_node *n,
                            const Onnx__Function *function) MUST_CHECK;
status onnx_inline_if(onnx_scope *scope, const onnx_node *n) MUST_CHECK;

/* closure.c: reads the body of a Loop or Scan, whose inputs and attributes have been read, and adds
 * what it captures and the body to them. */
status onnx_attach_body(onnx_scope *scope, onnx_node *n) MUST_CHECK;
/* The value of a body that stands for a value of the graph around it. False: too many. */
bool onnx_closure_capture(struct onnx_closure *c, graph_value_index outer,
                          graph_value_index *inner) MUST_CHECK;
/* symbol.c: the type of an output as the file declares it, where it does. */
void onnx_declare_type(graph *g, graph_value_index value, const Onnx__ValueInfo *info);

/* attribute.c */
status onnx_read_attributes(const onnx_scope *scope, onnx_node *n) MUST_CHECK;

/* rewrite/normalise.c: rewrites the node to opset 21. */
status onnx_normalise(onnx_node *n) MUST_CHECK;
typedef status (*onnx_normalise_fn)(onnx_node *n);
typedef struct onnx_rewriting {
    const char *op_type;
    onnx_normalise_fn rewrite;
} onnx_rewriting;
/* NULL: not in the table. */
onnx_normalise_fn onnx_find_rewriting(const onnx_rewriting *table, size_t count,
                                      const char *op_type);
/* "9 operators of DOMAIN: NAME, NAME, ..."; returns `text`. */
const char *onnx_list_rewritings(const onnx_rewriting *table, size_t count, const char *domain,
                                 char *text, size_t text_bytes);
/* rewrite/contrib.c: the rewrite of a com.microsoft operator, or NULL. */
onnx_normalise_fn onnx_find_contrib(const char *op_type);
/* rewrite/ml.c: that of an ai.onnx.ml operator, or NULL. */
onnx_normalise_fn onnx_find_ml(const char *op_type);
/* "34 operators of com.microsoft: Attention, ..."; returns `text`. */
const char *onnx_list_contrib(char *text, size_t text_bytes);
const char *onnx_list_ml(char *text, size_t text_bytes);

/* schema.c: STATUS_UNSUPPORTED for an unknown operator or attribute; STATUS_CORRUPT for an
 * attribute that is missing or of the wrong type, or a wrong number of inputs or outputs. */
status onnx_check_schema(const onnx_node *n, graph_op op) MUST_CHECK;
status onnx_reject_operator(const onnx_node *n) MUST_CHECK;

/* node.c: STATUS_OUT_OF_MEMORY with the message of all that finds no memory in an import. */
status onnx_fail_memory(void) MUST_CHECK;

#endif
