#ifndef GRAPH_INDEPENDENCE_ROWS_H
#define GRAPH_INDEPENDENCE_ROWS_H

#include "graph/graph.h"

/* How a value of b rows relates to the values of b runs of one row each; and the helpers that the
 * rules of the operators are written with. Nothing outside graph/independence includes this. */

typedef enum row_kind {
    /* Equal to the value of each single run. */
    ROWS_SAME,
    /* In memory order: `outer` blocks, in each of them b parts, and part i of all blocks together
     * is the value of row i alone. With outer 1 the rows lie one after the other. Views keep it. */
    ROWS_SPLIT,
    /* Known from shapes alone, and not the same: the number of rows, indices of rows. The data of
     * both runs is there; rows_lie() compares it. */
    ROWS_COUNTED,
    /* Split, but that every element of row i is i more than in a single run: numbers of rows, where
     * they are too many to be known. */
    ROWS_NUMBERED,
    /* Tuples along the last axis that index rows: split, but that in the tuples of row i the
     * element `column` is i more than in a single run. */
    ROWS_INDEXED,
    ROWS_MIXED,
    ROWS_UNDECIDED,
} row_kind;

typedef struct row_relation {
    row_kind kind;
    int64_t outer;      /* ROWS_SPLIT, ROWS_NUMBERED, ROWS_INDEXED */
    int64_t column;     /* ROWS_INDEXED */
    const char *reason; /* ROWS_MIXED, ROWS_UNDECIDED: what the node does; static */
    int32_t node;       /* the node that is to blame; set by the walk */
} row_relation;

typedef struct row_value {
    tensor one, many; /* in a run of one row, and of b rows; data is NULL where it is not known */
    row_relation relation;
} row_value;

/* A split value seen as dims: it has `axis`, whose index counts `outer` blocks, then rows, then the
 * rest. */
typedef struct row_axis {
    int axis;
    int64_t outer;
} row_axis;

/* One node, for a rule. */
typedef struct row_call {
    const graph_node *node;
    int64_t rows;               /* b */
    const row_value *const *in; /* node->input_count; NULL where absent */
    const row_value *out;       /* node->output_count, with shapes only */
} row_call;

/* What output `output` is. Called where no input is mixed or undecided, and not all are the same;
 * neither is the output known from shapes. Inputs and output have elements. */
typedef row_relation (*row_rule)(const row_call *c, int output);

row_relation rows_same(void);
row_relation rows_mixed(const char *reason);
row_relation rows_undecided(const char *reason);
/* Reasons that several rules give. */
extern const char rows_reason_count[], rows_reason_pairs[], rows_reason_shape[],
    rows_reason_constant[], rows_reason_parameter[];

/* Input i, or NULL where it is absent. */
const row_value *rows_input(const row_call *c, int i);
bool rows_is_same(const row_value *v); /* absent counts as the same */

/* The axis that holds the rows of a split value; of a counted one, an axis by which it
 * could be split. False: there is none, or the rows do not end where an axis ends. */
bool rows_find(const row_call *c, const row_value *v, row_axis *found);
/* The axis that holds the rows of a numbered or indexed value. */
bool rows_find_numbers(const row_call *c, const row_value *v, row_axis *found);
/* Whether v is split exactly there. */
bool rows_lie(const row_call *c, const row_value *v, row_axis where);
/* Whether v is numbered there, or known, and the same is true of its data. */
bool rows_number(const row_call *c, const row_value *v, row_axis where);
/* Output shape `out` split there: a split relation, or undecided where the shapes do not fit. */
row_relation rows_split(const row_call *c, const row_value *out, row_axis where);
/* v's elements in their order, in the shape of `out`. */
row_relation rows_view(const row_call *c, const row_value *v, const row_value *out);
/* `out` has v's dims but for axes without rows, which are where axis a of v is to[a] of out; -1: v
 * must have no rows there, otherwise mixed with `reason`. All other inputs must be checked before.
 */
row_relation rows_follow(const row_call *c, const row_value *v, const int *to, const row_value *out,
                         const char *reason);
/* The same with v's axes in their places; bit a of `forbidden`: mixed where rows lie on axis a. */
row_relation rows_keep(const row_call *c, const row_value *v, uint32_t forbidden,
                       const row_value *out, const char *reason);
/* Multidirectional broadcasting of the inputs at `positions` to `out`, each element on its own. */
row_relation rows_broadcast(const row_call *c, const int *positions, int count,
                            const row_value *out);
/* Whether every input from `first` on but the ones in `except` (bits) is the same. */
bool rows_others_same(const row_call *c, uint32_t except);

/* The attribute's axis, from 0; `rank` of what it counts in. */
int rows_axis_attribute(const graph_node *node, const char *name, int64_t otherwise, int rank);
/* Integers of a known tensor, `at_most` at most; their number, or -1 where it is not known. */
int rows_integers(const tensor *t, int at_most, int64_t *values);
int64_t rows_product(const int64_t *dims, int from, int to);

#endif
