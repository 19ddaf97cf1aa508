#ifndef DEVICES_PJRT_RANGES_H
#define DEVICES_PJRT_RANGES_H

#include "base/arena.h"
#include "graph/graph.h"

/* Inputs that a model uses as indices (token ids, token types, position ids). XLA clamps an index
 * that is out of range and computes a wrong result, so the server rejects it first, as the CPU
 * does. */

typedef struct pjrt_range {
    int input;        /* of the graph */
    int64_t limit;    /* indices are -limit .. limit - 1 */
    const char *name; /* of the input, copied */
} pjrt_range;

/* Gathers whose indices are a graph input, as it is or through nodes that change no value. `*out`
 * is in `memory`. */
int pjrt_ranges_find(const graph *specialised, arena *memory, pjrt_range **out);

/* STATUS_INVALID_ARGUMENT: an index is out of range; the message is that of the CPU
 * (devices/cpu/encoder/batch.c). Any thread. */
status pjrt_ranges_check(const pjrt_range *ranges, int count, const tensor *inputs) MUST_CHECK;

#endif
