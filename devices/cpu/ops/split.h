#ifndef DEVICES_CPU_OPS_SPLIT_H
#define DEVICES_CPU_OPS_SPLIT_H

#include "devices/cpu/ops/op.h"

/* Operators of one execution on several cores: the caller's, and those that are idle. */

struct thread_pool;

/* Who may help a caller between thread_pool_begin and thread_pool_end. */
typedef struct cpu_team {
    struct thread_pool *pool;
    int caller, callers; /* the caller's number, and how many callers the pool has */
    int threads;         /* the caller and its helpers: at most as many as the plan has parts */
} cpu_team;

/* Computes unit `unit`. `memory` is the thread's own: cpu_prepare.part_bytes, uninitialised. */
typedef void (*cpu_part)(const void *context, void *memory, size_t unit);

/* 1 where nobody helps. */
size_t cpu_split_threads(const cpu_call *c);

/* Runs `part` for each unit below `units`, in no order, on the threads of the call; `ns`: about how
 * long all of them take on one. Results must not depend on who computes what. */
void cpu_split(const cpu_call *c, double ns, cpu_part part, const void *context, size_t units);

/* Items in each unit when `total` items are split evenly among the threads: at most `most`, and
 * a multiple of `step` unless they are all. */
size_t cpu_split_items(const cpu_call *c, size_t total, size_t most, size_t step);

/* Computes rows first .. first + count - 1; `memory` as for cpu_part. */
typedef void (*cpu_rows_part)(const cpu_call *c, void *memory, size_t first, size_t count);

/* `part` for all of `rows` rows, in as many pieces as threads, or in one where `ns` is too short
 * for more. */
void cpu_split_rows(const cpu_call *c, double ns, cpu_rows_part part, size_t rows);

/* cpu_copy_strided, in pieces of the longest of the outer dims. */
void cpu_split_copy(const cpu_call *c, size_t element_bytes, int rank, const int64_t *dims,
                    const void *from, const int64_t *from_strides, void *to,
                    const int64_t *to_strides);

#endif
