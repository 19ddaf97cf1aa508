#ifndef SERVER_REQUEST_DEADLINES_H
#define SERVER_REQUEST_DEADLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The deadlines of one loop's requests: a binary heap whose entries are embedded in what has the
 * deadline. One thread. */
typedef struct deadline {
    uint64_t due_ns;
    size_t place; /* in the heap, from 1; 0: not in it */
} deadline;

typedef struct deadlines {
    deadline **heap; /* [0] is not used */
    size_t count, count_max;
} deadlines;

/* Room for `count_max` entries. STATUS_OUT_OF_MEMORY. */
status deadlines_init(deadlines *d, size_t count_max) MUST_CHECK;
void deadlines_dispose(deadlines *d);

/* `e` is not in the heap, and there is room. It must stay where it is until it is removed. */
void deadlines_add(deadlines *d, deadline *e, uint64_t due_ns);
/* Nothing happens if it is not in the heap. */
void deadlines_remove(deadlines *d, deadline *e);
/* Removes and returns an entry that is due at `now_ns`, the earliest first; NULL: none is. */
deadline *deadlines_pop_due(deadlines *d, uint64_t now_ns);

#endif
