#ifndef DEVICES_CPU_PLAN_MEMORY_H
#define DEVICES_CPU_PLAN_MEMORY_H

#include <stddef.h>

#include "base/status.h"

/* Packs buffers that live for known spans of steps into one range: two may share bytes when their
 * spans do not meet. Largest first, each into the smallest gap that fits (after Pisarchyk and Lee,
 * "Efficient Memory Management for Deep Neural Net Inference", 2020, greedy by size). */
typedef struct cpu_memory_buffer {
    int first, last; /* steps, both included */
    size_t bytes;    /* 0: nothing to place */
    size_t offset;   /* set by cpu_memory_place */
} cpu_memory_buffer;

/* Writes offsets and the bytes of the whole range. STATUS_OUT_OF_MEMORY. */
status cpu_memory_place(cpu_memory_buffer *buffers, size_t count, size_t *total_bytes) MUST_CHECK;

#endif
