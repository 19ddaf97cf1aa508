#include "graph/op.h"

#include <assert.h>
#include <string.h>

static const char *const names[GRAPH_OP_COUNT] = {
#define GRAPH_OP(identifier, name) [GRAPH_OP_##identifier] = name,
#include "graph/op.inc"
#undef GRAPH_OP
};

const char *graph_op_name(graph_op op)
{
    assert((unsigned)op < GRAPH_OP_COUNT);
    return names[op];
}

const char *graph_op_title(graph_op op)
{
    static const char ours[] = "penstock.";
    const char *name = graph_op_name(op);
    if (op == GRAPH_OP_ROUNDED_LSTM)
        return "DynamicQuantizeLSTM";
    if (op == GRAPH_OP_TREES)
        return "TreeEnsemble";
    return strncmp(name, ours, strlen(ours)) == 0 ? name + strlen(ours) : name;
}

bool graph_op_from_name(const char *name, graph_op *out)
{
    for (int i = 0; i < GRAPH_OP_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (graph_op)i;
            return true;
        }
    }
    return false;
}
