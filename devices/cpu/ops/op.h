#ifndef DEVICES_CPU_OPS_OP_H
#define DEVICES_CPU_OPS_OP_H

#include "base/cancel.h"
#include "graph/graph.h"
#include "kernels/kernels.h"

struct cpu_weights; /* devices/cpu/ops/weights.h */

/* How the CPU computes each operator: one row per operator, in one table per family (a file in
 * ops/, elementwise/ or fused/). A row is prepared once per plan, where it may allocate, pack
 * weights and ask for scratch, and then runs any number of times, on several threads at once,
 * allocating nothing.
 */

#define CPU_SCRATCH_ALIGNMENT 64

/* What an operator is given when a plan is made, and what it sets. */
typedef struct cpu_prepare {
    const graph_node *node;
    const tensor *const *inputs; /* NULL where absent; data is NULL where it is not constant */
    const tensor *outputs;       /* shapes; data is NULL */
    const kernels *kernels;
    arena *memory;               /* for `state`; lives as long as the plan */
    struct cpu_weights *weights; /* constants packed once per model; NULL: do not pack */
    const void *state;           /* set by the operator: passed to each run */
    size_t scratch_bytes;        /* set by the operator: of each run */
    size_t part_bytes;           /* the same, of each thread of a run (split.h) */
} cpu_prepare;

/* One run. Inputs and outputs are dense and do not overlap. */
typedef struct cpu_call {
    const graph_node *node;
    const tensor *const *inputs; /* NULL where absent */
    tensor *outputs;             /* data is NULL where not wanted */
    const kernels *kernels;
    const void *state;
    void *scratch; /* CPU_SCRATCH_ALIGNMENT aligned, uninitialised */
    void *parts;   /* the same: one part of cpu_prepare.part_bytes per thread, part_stride apart */
    size_t part_stride;
    const struct cpu_team *team; /* of split.h; NULL: nobody helps */
    /* Of a load, or NULL. An operator whose work grows faster than its tensors checks it about once
     * per 100 ms of work, and returns the failure. */
    const cancel_token *cancel;
} cpu_call;

/* Element types that a row does not compute itself: the operator then runs on F32 copies. */
enum {
    CPU_WIDEN_HALF = 1,   /* F16 and BF16 */
    CPU_WIDEN_DOUBLE = 2, /* F64, at the precision of F32 */
    CPU_WIDEN_BYTE = 4,   /* U8 and I8: exact in F32 */
};
#define CPU_WIDEN_FLOATS (CPU_WIDEN_HALF | CPU_WIDEN_DOUBLE)

typedef struct cpu_op {
    graph_op op;
    status (*prepare)(cpu_prepare *p); /* NULL: nothing to prepare */
    status (*run)(const cpu_call *c);
    unsigned widen;
    bool is_view; /* the output holds the bytes of input 0: a plan shares them instead of running */
} cpu_op;

typedef struct cpu_op_family {
    const cpu_op *rows;
    size_t count;
} cpu_op_family;

/* The families. */
extern const cpu_op_family cpu_ops_unary, cpu_ops_binary, cpu_ops_cast, cpu_ops_move,
    cpu_ops_generate, cpu_ops_gather, cpu_ops_scatter, cpu_ops_select, cpu_ops_reduce,
    cpu_ops_softmax, cpu_ops_normalise, cpu_ops_matmul, cpu_ops_einsum, cpu_ops_conv, cpu_ops_pool,
    cpu_ops_quantise, cpu_ops_integer, cpu_ops_resize, cpu_ops_grid_sample, cpu_ops_conv_dense,
    cpu_ops_pool_add, cpu_ops_recurrent, cpu_ops_fourier, cpu_ops_windows, cpu_ops_detect,
    cpu_ops_conv_transpose, cpu_ops_trees, cpu_ops_vectors;

/* The row of an operator, or NULL when the CPU does not know it. */
const cpu_op *cpu_op_find(graph_op op);

/* Prepares and runs one node, widening where the row asks for it; failures name the node. Errors of
 * prepare: STATUS_UNSUPPORTED. Errors of run: STATUS_INVALID_ARGUMENT when the inputs' values are
 * out of range (an index, mostly): the request's fault. Nothing is read out of bounds. */
status cpu_op_prepare(cpu_prepare *p) MUST_CHECK;
status cpu_op_run(const cpu_call *c) MUST_CHECK;

/* For the rows: fails because the dtype of an input is not supported; names dtype and operator. */
status cpu_op_fail_dtype(const graph_node *node, dtype type) MUST_CHECK;

/* For the rows: a `prepare` that takes any numbers as its first input, and needs nothing. */
status cpu_op_prepare_numbers(cpu_prepare *p) MUST_CHECK;

/* Rounds scratch up, so that several pieces can follow each other, each aligned. */
static inline size_t cpu_scratch_round(size_t bytes)
{
    return (bytes + CPU_SCRATCH_ALIGNMENT - 1) & ~(size_t)(CPU_SCRATCH_ALIGNMENT - 1);
}

/* `axis` counted from the front, for -rank <= axis < rank (graph_infer_node has checked it). */
static inline int cpu_axis(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

/* Product of dims[from .. to). */
static inline int64_t cpu_dims_product(const int64_t *dims, int from, int to)
{
    int64_t product = 1;
    for (int i = from; i < to; i++)
        product *= dims[i];
    return product;
}

/* Optional input i, or NULL. */
static inline const tensor *cpu_input(const tensor *const *inputs, const graph_node *node, int i)
{
    return i < node->input_count ? inputs[i] : NULL;
}

#endif
