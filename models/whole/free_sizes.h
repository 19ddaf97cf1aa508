#ifndef MODELS_WHOLE_FREE_SIZES_H
#define MODELS_WHOLE_FREE_SIZES_H

#include "graph/cost/cost.h"
#include "graph/graph.h"

/* The sizes that a model's file leaves open: rows, tokens, frames, heights and widths. Shapes alone
 * are tried, nothing is computed: a window must fit, strides must divide, parts that are joined
 * must agree. */

#define FREE_SIZES_MAX 32 /* of all inputs; dims of one name are one size */

typedef struct free_size {
    const char *name; /* as in the file, or "x[2]": input and dim */
    bool is_named;    /* in the file: model.json can fix it */
    bool is_batch;    /* the rows */
    int64_t at;       /* where the model accepts it */
    /* Accepted around it: every `step`-th; 0: no other size that was tried; -1: not tried. */
    int64_t step;
    int64_t least; /* the smallest of these */
} free_size;

typedef struct free_sizes {
    free_size sizes[FREE_SIZES_MAX];
    int count;
} free_sizes;

/* Finds sizes that the graph accepts together, then how far each may change alone. `inputs`: one
 * for each graph input, gets dtype and shape; `outputs`: the same, or NULL. Names are borrowed from
 * the graph, or made in `memory`. STATUS_INVALID_ARGUMENT: none was found; the message is that of
 * the first try. STATUS_UNSUPPORTED: a shape depends on values. STATUS_TOO_LARGE,
 * STATUS_OUT_OF_MEMORY, those of cancel_check(). */
status free_sizes_find(const graph *g, const graph_budget *budget, arena *memory, free_sizes *out,
                       tensor *inputs, tensor *outputs) MUST_CHECK;

/* "height: multiples of 32; width: any; samples: 400 or more"; without the rows. From `memory`; ""
 * where there is none. NULL when memory is out. */
const char *free_sizes_text(const free_sizes *sizes, arena *memory);
/* What to write into model.json to fix all of them but the rows: "\"height\": SIZE, \"width\":
 * SIZE". From `memory`; "" where one of them has no name. NULL when memory is out. */
const char *free_sizes_dims(const free_sizes *sizes, arena *memory);

#endif
