#ifndef DEVICES_CPU_TENSOR_LOOPS_WALK_H
#define DEVICES_CPU_TENSOR_LOOPS_WALK_H

#include "base/tensor.h"
#include "kernels/kernels.h"

/* Walks several arrays of one index space in step. Strides count elements; 0 repeats a value.
 * Neighbouring dims that are one run in every array are merged, so the last dim is as long as it
 * can be: operators loop over it themselves. */

#define CPU_WALK_OPERANDS_MAX 4

typedef struct cpu_walk {
    int rank; /* at least 1 */
    int operand_count;
    int64_t dims[TENSOR_RANK_MAX];
    int64_t strides[CPU_WALK_OPERANDS_MAX][TENSOR_RANK_MAX];
} cpu_walk;

/* Where a walk stands: element offsets of the run's first element in each array. */
typedef struct cpu_cursor {
    int64_t index[TENSOR_RANK_MAX];
    int64_t offsets[CPU_WALK_OPERANDS_MAX];
} cpu_cursor;

/* `strides[o]` has `rank` entries. */
void cpu_walk_init(cpu_walk *w, int rank, const int64_t *dims, int operand_count,
                   const int64_t *const *strides);

/* Operand 0 is the dense `out`, operands 1.. are the dense `inputs`, broadcast to its shape. */
void cpu_walk_broadcast(cpu_walk *w, const tensor *out, int input_count,
                        const tensor *const *inputs);

/* The first run; false when there is nothing to visit. Then the next one. */
bool cpu_walk_start(const cpu_walk *w, cpu_cursor *c);
bool cpu_walk_next(const cpu_walk *w, cpu_cursor *c);

/* Offsets of element `index`, counted over the whole index space, in each array. */
void cpu_walk_find(const cpu_walk *w, int64_t index, int64_t offsets[CPU_WALK_OPERANDS_MAX]);

/* Length of a run, and the step of operand o along it. */
static inline int64_t cpu_walk_run(const cpu_walk *w)
{
    return w->dims[w->rank - 1];
}

static inline int64_t cpu_walk_step(const cpu_walk *w, int operand)
{
    return w->strides[operand][w->rank - 1];
}

/* Row-major strides of a dense array. */
void cpu_dense_strides(int rank, const int64_t *dims, int64_t *strides);

/* Copies an index space between arrays of any strides (negative too). Elements of 1, 2, 4, 8 or 16
 * bytes. Transposes go in tiles that fit L1. */
void cpu_copy_strided(const kernels *k, size_t element_bytes, int rank, const int64_t *dims,
                      const void *from, const int64_t *from_strides, void *to,
                      const int64_t *to_strides);

/* Copies into a dense array through one table per dim: element [i, j, ...] comes from
 * from[maps[0][i] + maps[1][j] + ...] (offsets in elements), or is `*fill` where one of these is
 * negative. */
void cpu_copy_mapped(size_t element_bytes, int rank, const int64_t *dims,
                     const int64_t *const *maps, const void *from, const void *fill, void *to);

/* Repeats one element. */
void cpu_fill(size_t element_bytes, const void *element, void *to, int64_t count);

#endif
