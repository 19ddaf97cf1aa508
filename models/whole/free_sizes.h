#ifndef MODELS_WHOLE_FREE_SIZES_H
#define MODELS_WHOLE_FREE_SIZES_H

#include "graph/cost/cost.h"
#include "graph/graph.h"

/* The sizes that a model's file leaves open: rows, tokens, frames, heights and widths. Shapes alone
 * are tried, nothing is computed: a window must fit, strides must divide, parts that are joined
 * must agree. */

#define FREE_SIZES_MAX 32 /* of all inputs; dims of one name are one size */

typedef struct free_size {
    const char *name;   /* as in the file, or "x[2]": input and dim */
    const char *places; /* "x[2], mask[1]": the dims that have this size */
    bool is_named;      /* in the file */
    bool is_batch;      /* the rows */
    bool is_sequence;   /* the importer took it for the tokens */
    int64_t at;         /* where the model accepts it */
    /* Accepted around it: every `step`-th; 0: no other size that was tried; -1: not tried. */
    int64_t step;
    int64_t least; /* the smallest of these */
    /* What the graph said to the nearest size that it refused; NULL: it refused none. */
    const char *refusal;
    int64_t refused;
} free_size;

typedef struct free_sizes {
    free_size sizes[FREE_SIZES_MAX];
    int count;
} free_sizes;

/* The sizes alone, not tried. Names are borrowed from the graph, or made in `memory`.
 * STATUS_UNSUPPORTED: too many; STATUS_OUT_OF_MEMORY. */
status free_sizes_list(const graph *g, arena *memory, free_sizes *out) MUST_CHECK;

/* Finds sizes that the graph accepts together, then how far each may change alone. `inputs`: one
 * for each graph input, gets dtype and shape; `outputs`: the same, or NULL. Names are borrowed from
 * the graph, or made in `memory`. STATUS_INVALID_ARGUMENT: none was found; the message is that of
 * the first try. STATUS_UNSUPPORTED: a shape depends on values. STATUS_TOO_LARGE,
 * STATUS_OUT_OF_MEMORY, those of cancel_check(). */
status free_sizes_find(const graph *g, const graph_budget *budget, arena *memory, free_sizes *out,
                       tensor *inputs, tensor *outputs) MUST_CHECK;

/* "any", "400 or more", "multiples of 32"; "" where it was not tried. From `memory`; NULL when
 * memory is out. */
const char *free_size_text(const free_size *size, arena *memory);
/* "height: multiples of 32; width: any; samples: 400 or more"; without the rows. From `memory`; ""
 * where there is none. NULL when memory is out. */
const char *free_sizes_text(const free_sizes *sizes, arena *memory);
/* What to write into model.json to fix all of them but the rows: "\"height\": SIZE, \"x[3]\":
 * SIZE". From `memory`; "" where there is none. NULL when memory is out. */
const char *free_sizes_dims(const free_sizes *sizes, arena *memory);

#endif
