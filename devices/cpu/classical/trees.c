#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"

/* penstock.Trees: decision trees (graph/op.inc). The layout of the constants is that of
 * graph/onnx/rewrite/forest.h: a place is a node, or ~leaf. Splits are doubles, so that FP32 is
 * compared exactly; sums are rounded to the type of the result after each tree, as ONNX Runtime
 * does, in the order of the trees. */

enum { X, NODES, LEAVES, TARGETS, WEIGHTS, ROOTS };
enum { NODE_INTS = 5, SPLIT = 3 };
enum { LEQ, LT, GTE, GT, EQ, NEQ, MODE = 7, MISSING = 8, COLUMN_SHIFT = 4 };

typedef enum aggregate { AGGREGATE_SUM, AGGREGATE_MIN, AGGREGATE_MAX } aggregate;

static aggregate aggregate_of(const graph_node *node)
{
    const char *name = graph_attribute_string(node, "aggregate", "SUM");
    return strcmp(name, "MIN") == 0   ? AGGREGATE_MIN
           : strcmp(name, "MAX") == 0 ? AGGREGATE_MAX
                                      : AGGREGATE_SUM;
}

static double element(const tensor *t, int64_t i)
{
    switch (t->dtype) {
    case DTYPE_F32:
        return ((const float *)t->data)[i];
    case DTYPE_F64:
        return ((const double *)t->data)[i];
    default: /* integers are compared as FP32 */
        return (double)(float)tensor_get_integer(t, i);
    }
}

static bool compare(int32_t what, double x, double split)
{
    switch (what & MODE) {
    case LEQ:
        return x <= split;
    case LT:
        return x < split;
    case GTE:
        return x >= split;
    case GT:
        return x > split;
    case EQ:
        return x == split;
    default:
        return x != split;
    }
}

/* The leaf of a row. */
static int32_t find_leaf(const tensor *x, int64_t row, const int32_t *nodes, int32_t place)
{
    int64_t first = row * x->dims[1];
    while (place >= 0) {
        const int32_t *node = nodes + (int64_t)place * NODE_INTS;
        double value = element(x, first + (node[0] >> COLUMN_SHIFT)), split;
        memcpy(&split, &node[SPLIT], sizeof split);
        bool is_true = compare(node[0], value, split) || ((node[0] & MISSING) && isnan(value));
        place = node[is_true ? 1 : 2];
    }
    return ~place;
}

/* Adds the weights of a leaf. `is_there`: of each target, whether it has a score yet. */
static void add_leaf(const cpu_call *c, int32_t leaf, aggregate how, double *sums, bool *is_there)
{
    const int32_t *starts = c->inputs[LEAVES]->data, *targets = c->inputs[TARGETS]->data;
    bool is_wide = c->outputs[0].dtype == DTYPE_F64;
    for (int32_t w = starts[leaf]; w < starts[leaf + 1]; w++) {
        double weight = element(c->inputs[WEIGHTS], w), *sum = &sums[targets[w]];
        bool *is_scored = &is_there[targets[w]];
        if (how == AGGREGATE_SUM)
            *sum = is_wide ? *sum + weight : (double)(float)(*sum + weight);
        else if (!*is_scored || (how == AGGREGATE_MIN ? weight < *sum : weight > *sum))
            *sum = weight;
        *is_scored = true;
    }
}

static void run_rows(const cpu_call *c, void *memory, size_t first, size_t count)
{
    const tensor *x = c->inputs[X], *roots = c->inputs[ROOTS];
    tensor *out = &c->outputs[0];
    int64_t targets = out->dims[1];
    aggregate how = aggregate_of(c->node);
    double *sums = memory;
    bool *is_there = (bool *)(sums + targets);
    for (size_t row = first; row < first + count; row++) {
        memset(memory, 0, (size_t)targets * (sizeof *sums + sizeof *is_there));
        for (int64_t t = 0; t < roots->dims[0]; t++)
            add_leaf(c,
                     find_leaf(x, (int64_t)row, c->inputs[NODES]->data,
                               ((const int32_t *)roots->data)[t]),
                     how, sums, is_there);
        for (int64_t t = 0; t < targets; t++)
            if (out->dtype == DTYPE_F64)
                ((double *)out->data)[(int64_t)row * targets + t] = sums[t];
            else
                ((float *)out->data)[(int64_t)row * targets + t] = (float)sums[t];
    }
}

static status prepare_trees(cpu_prepare *p)
{
    dtype type = p->inputs[X]->dtype;
    if (type != DTYPE_F32 && type != DTYPE_F64 && !dtype_is_integer(type))
        return cpu_op_fail_dtype(p->node, type);
    for (int i = NODES; i <= ROOTS; i++)
        if (p->inputs[i]->data == NULL)
            return status_fail(STATUS_UNSUPPORTED, "trees that are not constant");
    p->part_bytes = (size_t)p->outputs[0].dims[1] * (sizeof(double) + sizeof(bool));
    return STATUS_OK;
}

#define TREE_NS 20 /* from root to leaf */

static status run_trees(const cpu_call *c)
{
    size_t rows = (size_t)c->inputs[X]->dims[0];
    double trees = (double)c->inputs[ROOTS]->dims[0];
    if (rows > 0)
        cpu_split_rows(c, (double)rows * trees * TREE_NS, run_rows, rows);
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_TREES, prepare_trees, run_trees, 0, false},
};

const cpu_op_family cpu_ops_trees = {table, sizeof table / sizeof table[0]};
