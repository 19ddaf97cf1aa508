#include "devices/cpu/plan/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static int larger_first(const void *a, const void *b)
{
    const cpu_memory_buffer *x = *(cpu_memory_buffer *const *)a,
                            *y = *(cpu_memory_buffer *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x < y ? -1 : x > y; /* the same plan each time */
}

static bool meet(const cpu_memory_buffer *a, const cpu_memory_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* `placed` is in order of offset. */
static size_t find_offset(cpu_memory_buffer *const *placed, size_t count,
                          const cpu_memory_buffer *b)
{
    size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        if (!meet(placed[i], b))
            continue;
        if (placed[i]->offset >= end) {
            size_t gap = placed[i]->offset - end;
            if (gap >= b->bytes && gap < best_gap) {
                best_gap = gap;
                best = end;
            }
        }
        size_t after = placed[i]->offset + placed[i]->bytes;
        end = after > end ? after : end;
    }
    return best != SIZE_MAX ? best : end;
}

status cpu_memory_place(cpu_memory_buffer *buffers, size_t count, size_t *total_bytes)
{
    cpu_memory_buffer **order = calloc(2 * count + 1, sizeof *order);
    if (!order)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a memory plan");
    cpu_memory_buffer **placed = order + count;
    size_t wanted = 0, total = 0;
    for (size_t i = 0; i < count; i++)
        if (buffers[i].bytes)
            order[wanted++] = &buffers[i];
    qsort(order, wanted, sizeof order[0], larger_first);
    for (size_t i = 0; i < wanted; i++) {
        cpu_memory_buffer *b = order[i];
        b->offset = find_offset(placed, i, b);
        size_t at = i;
        for (; at > 0 && placed[at - 1]->offset > b->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = b;
        total = b->offset + b->bytes > total ? b->offset + b->bytes : total;
    }
    free(order);
    *total_bytes = total;
    return STATUS_OK;
}
