#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include <stdbool.h>

typedef enum graph_op {
#define GRAPH_OP(identifier, name) GRAPH_OP_##identifier,
#include "graph/op.inc"
#undef GRAPH_OP
    GRAPH_OP_COUNT
} graph_op;

/* The operator's ONNX name. Static. */
const char *graph_op_name(graph_op op);
/* What people know it as: without "penstock.", or the operator of the file that it stands for.
 * Static. */
const char *graph_op_title(graph_op op);
bool graph_op_from_name(const char *name, graph_op *out);

#endif
